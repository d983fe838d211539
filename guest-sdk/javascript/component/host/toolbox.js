// In a component, this is the host.
export { default } from "cofferdam:plugin/toolbox@0.1.0";
