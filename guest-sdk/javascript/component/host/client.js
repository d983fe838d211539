// In a component, this is the host.
export { default } from "cofferdam:plugin/client@0.1.0";
