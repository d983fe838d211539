// Results of calls.

import { CallCancelled, RefusedCall, ToolError, ToolFailure } from "./errors.js";

/** @import { CallError, CallRecord, Content, Problem } from "./index.js" */

/**
 * The message `result`.
 *
 * @typedef {object} ResultMessage
 * @property {"ok" | "failure" | "error" | "cancelled" | "refused"} outcome
 * @property {boolean} [is_error]
 * @property {unknown} [result]
 * @property {WireContent[]} [contents]
 * @property {string} [text]
 * @property {{ message: string, suggestion?: string | null, value?: unknown }} [failure]
 * @property {CallRecord} [record]
 * @property {string} [code]
 * @property {string} [message]
 * @property {string | null} [nearest]
 * @property {Problem[]} [problems]
 */

/** @typedef {{ type: string, media_type?: string | null } & Record<string, unknown>} WireContent */

/** @template [Value=unknown] */
export class Result {
  #message;
  #cause;

  /**
   * @private
   * @param {string} tool
   * @param {ResultMessage} message
   * @param {unknown} cause
   */
  constructor(tool, message, cause) {
    this.tool = tool;
    this.outcome = message.outcome;
    this.isError = message.outcome !== "ok" && message.outcome !== "cancelled";
    this.value = /** @type {Value} */ (message.result);
    this.#message = message;
    this.#cause = cause;
  }

  /**
   * Returns the result of a message. `cause` is what the program threw during the call.
   *
   * @template Value
   * @param {string} tool
   * @param {ResultMessage} message
   * @param {unknown} [cause]
   * @returns {Result<Value>}
   */
  static of(tool, message, cause) {
    return new Result(tool, message, cause);
  }

  get text() {
    const { text, problems, message } = this.#message;
    if (text !== undefined) return text;
    if (typeof this.value === "string") return this.value;
    if (this.outcome === "refused") {
      return problems?.map((problem) => problem.message).join("\n") || (message ?? "");
    }
    return this.value === undefined ? "" : JSON.stringify(this.value);
  }

  /** @returns {readonly Content[]} */
  get contents() {
    const { contents } = this.#message;
    if (contents !== undefined) return contents.map(content);
    if (this.value === undefined) return [];
    if (typeof this.value === "string") return [{ type: "text", text: this.value }];
    return [{ type: "json", json: this.value }];
  }

  get record() {
    return this.#message.record;
  }

  /** @returns {CallError | undefined} */
  error() {
    const options = this.#cause === undefined ? {} : { cause: this.#cause };
    const [message, result] = [this.#message, /** @type {Result} */ (this)];
    switch (this.outcome) {
      case "ok":
        return undefined;
      case "cancelled":
        return new CallCancelled(`the call of \`${this.tool}\` was canceled`, {
          ...options,
          result,
        });
      case "failure": {
        const { message: reason = "", suggestion, value } = message.failure ?? {};
        const details = { suggestion: suggestion ?? undefined, value: value ?? undefined };
        return new ToolFailure(reason, { ...options, ...details, result });
      }
      case "refused": {
        const { message: reason = "the call was refused", code = "refused", problems } = message;
        const nearest = message.nearest ?? undefined;
        return new RefusedCall(reason, { ...options, code, nearest, problems, result });
      }
      default: {
        const errorType = String(message.record?.error_type);
        const reason = `the call of \`${this.tool}\` ended in the error \`${errorType}\``;
        return new ToolError(reason, { ...options, errorType, result });
      }
    }
  }
}

/** @param {WireContent} item */
function content(item) {
  const { media_type: mediaType, ...rest } = item;
  return /** @type {Content} */ (mediaType === undefined ? rest : { ...rest, mediaType });
}
