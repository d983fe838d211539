// In a component: the host itself.
export { default } from "cofferdam:plugin/call@0.1.0";
