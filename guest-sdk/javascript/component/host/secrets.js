// In a component: the host itself.
export { default } from "cofferdam:plugin/secrets@0.1.0";
