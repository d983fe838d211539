// In a component, this is the host.
export { default } from "cofferdam:plugin/files@0.1.0";
