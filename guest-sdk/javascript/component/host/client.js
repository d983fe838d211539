// In a component: the host itself.
export { default } from "cofferdam:plugin/client@0.1.0";
