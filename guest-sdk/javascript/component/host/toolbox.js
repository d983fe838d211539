// In a component: the host itself.
export { default } from "cofferdam:plugin/toolbox@0.1.0";
