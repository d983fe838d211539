/**
 * Other tools that are granted to the plugin. A called tool runs with its own grants and limits, in
 * its own sandbox. Its file changes belong to the call that made it. Tools that need the user's
 * approval cannot be called.
 *
 * ```ts
 * import * as toolbox from "cofferdam/toolbox";
 *
 * const counts = toolbox.call("word_count", { text: "to be or not to be" });
 * ```
 *
 * @module cofferdam/toolbox
 */

import { Annotations, Content, FailureOptions, JsonSchema, ToolFailure } from "./index.js";

export interface Granted {
  name: string;
  title: string | undefined;
  description: string;
  inputSchema: JsonSchema;
  outputSchema: JsonSchema | undefined;
  annotations: Annotations;
}

/** Returns the granted tools. */
export function granted(): Granted[];

/**
 * Calls a tool and returns its value as a model would see it: null, a string or a JSON value; for
 * several items, an array. A blob is shown as its media type and its length. Integers beyond 2^53 -
 * 1 lose digits, as with `JSON.parse`; `contents` has them.
 *
 * @throws {ToolboxError}
 */
export function call(name: string, args?: object): any;

/**
 * Calls a tool and returns the items of its result.
 *
 * @throws {ToolboxError}
 */
export function contents(name: string, args?: object): Content[];

/**
 * Reason of a `ToolboxError`:
 *
 * - `unknown-tool`: no tool of this name is granted.
 * - `invalid-arguments`: they do not match the tool's schema. The message names every problem.
 * - `failed`: the tool reported a failure; message, suggestion, `transient` and `value` are its
 *   own.
 * - `ended`: the tool ended with an error. The message contains the name of the error type, such as
 *   `Trap.Unreachable`.
 * - `too-deep`: calls are nested too deeply.
 */
export type ToolboxErrorCode = "unknown-tool" | "invalid-arguments" | "failed" | "ended" | "too-deep";

/**
 * Error of a call without a value. If it is not caught, it is reported to the model: a failure of
 * the other tool becomes a failure of this one.
 */
export class ToolboxError extends ToolFailure {
  constructor(code: ToolboxErrorCode, message: string, failure?: FailureOptions);
  readonly code: ToolboxErrorCode;
}
