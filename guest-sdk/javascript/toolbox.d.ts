/**
 * Other tools that were granted to the plugin. A tool that is called runs with its own grants and limits, in a sandbox of its own.
 * What it changes in files belongs to the call that made it. Tools that need a person's approval cannot be called.
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

/** The tools that were granted. */
export function granted(): Granted[];

/**
 * Calls a tool and waits for its value as a model would see it: null, a text or a JSON value; several items come as an array, a
 * blob as its media type and its length. Integers beyond 2^53 - 1 lose digits, as with `JSON.parse`; `contents` has them.
 *
 * @throws {ToolboxError}
 */
export function call(name: string, args?: object): any;

/**
 * Calls a tool and waits for the items of its result.
 *
 * @throws {ToolboxError}
 */
export function contents(name: string, args?: object): Content[];

/**
 * - `unknown-tool`: no such tool was granted.
 * - `invalid-arguments`: they do not fit the tool's schema. The message names every problem.
 * - `failed`: the tool reported a failure; message, suggestion, `transient` and `value` are its own.
 * - `ended`: the tool ended without an answer. The message has the name of the error type, such as `Trap.Unreachable`.
 * - `too-deep`: calls are nested too deeply.
 */
export type ToolboxErrorCode = "unknown-tool" | "invalid-arguments" | "failed" | "ended" | "too-deep";

/** A call gave no value. One that nobody catches is reported to the model: a failure of the other tool becomes one of this. */
export class ToolboxError extends ToolFailure {
  constructor(code: ToolboxErrorCode, message: string, failure?: FailureOptions);
  readonly code: ToolboxErrorCode;
}
