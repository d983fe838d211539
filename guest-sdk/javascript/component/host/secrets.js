// In a component, this is the host.
export { default } from "cofferdam:plugin/secrets@0.1.0";
