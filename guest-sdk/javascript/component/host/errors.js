// In a component, this is the host.
export { default } from "cofferdam:plugin/errors@0.1.0";
