export {
  CallCancelled,
  CallError,
  CofferdamError,
  HostExited,
  RefusedCall,
  StartError,
  ToolError,
  ToolFailure,
} from "./errors.js";
export { Cofferdam } from "./host.js";
export { Result } from "./result.js";
