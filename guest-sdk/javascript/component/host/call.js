// In a component, this is the host.
export { default } from "cofferdam:plugin/call@0.1.0";
