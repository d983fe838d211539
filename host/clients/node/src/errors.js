// Errors of the package. Every one is a `CofferdamError`.
//
// Programs show messages of errors to models, and some serialize whole errors. Messages therefore
// contain nothing for the operator, and what is for the operator is no property of its own.

/** @import { CallRecord, Problem, Result } from "./index.js" */

export class CofferdamError extends Error {
  static {
    CofferdamError.prototype.name = "CofferdamError";
  }
}

export class StartError extends CofferdamError {
  static {
    StartError.prototype.name = "StartError";
  }

  /**
   * @param {string} message
   * @param {{ exitCode?: number | undefined, cause?: unknown }} [options]
   */
  constructor(message, { exitCode, ...options } = {}) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

export class HostExited extends CofferdamError {
  static {
    HostExited.prototype.name = "HostExited";
  }

  #detail;

  /**
   * @param {string} message
   * @param {{ exitCode?: number | undefined, signal?: string | undefined, detail?: string }} [options]
   */
  constructor(message, { exitCode, signal, detail = "" } = {}) {
    super(message);
    this.exitCode = exitCode;
    this.signal = signal;
    this.#detail = detail;
  }

  get detail() {
    return this.#detail;
  }
}

/** @typedef {{ result?: Result, cause?: unknown }} CallErrorOptions */

export class CallError extends CofferdamError {
  static {
    CallError.prototype.name = "CallError";
  }

  /** @type {Result | undefined} */
  #result;

  /**
   * @param {string} message
   * @param {CallErrorOptions} [options]
   */
  constructor(message, { result, ...options } = {}) {
    super(message, options);
    this.#result = result;
  }

  get result() {
    return this.#result;
  }

  get text() {
    return this.#result?.text || this.message;
  }

  /** @returns {CallRecord | undefined} */
  get record() {
    return this.#result?.record;
  }
}

export class RefusedCall extends CallError {
  static {
    RefusedCall.prototype.name = "RefusedCall";
  }

  /**
   * @param {string} message
   * @param {{ code: string, nearest?: string, problems?: readonly Problem[] } & CallErrorOptions} options
   */
  constructor(message, { code, nearest, problems = [], ...options }) {
    super(message, options);
    this.code = code;
    this.nearest = nearest;
    this.problems = problems;
  }
}

export class ToolFailure extends CallError {
  static {
    ToolFailure.prototype.name = "ToolFailure";
  }

  /**
   * @param {string} message
   * @param {{ suggestion?: string, value?: unknown } & CallErrorOptions} [options]
   */
  constructor(message, { suggestion, value, ...options } = {}) {
    super(message, options);
    this.suggestion = suggestion;
    this.value = value;
  }
}

export class ToolError extends CallError {
  static {
    ToolError.prototype.name = "ToolError";
  }

  /**
   * @param {string} message
   * @param {{ errorType: string } & CallErrorOptions} options
   */
  constructor(message, { errorType, ...options }) {
    super(message, options);
    this.errorType = errorType;
  }

  get detail() {
    const detail = this.record?.detail;
    return typeof detail === "string" ? detail : undefined;
  }
}

export class CallCancelled extends CallError {
  static {
    CallCancelled.prototype.name = "CallCancelled";
  }
}
