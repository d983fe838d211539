// In a component: the host itself.
export { default } from "cofferdam:plugin/files@0.1.0";
