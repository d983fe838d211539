/** Failure that a tool reports with a message, so that the model can correct itself. */
export class ToolFailure extends Error {
  constructor(message, { suggestion, transient, value, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.suggestion = suggestion;
    this.transient = transient;
    this.value = value;
  }
}

// Set on the prototype, so that tests do not compare it.
ToolFailure.prototype.name = "ToolFailure";

/** Refusal of a request over HTTP for which there is no grant. It is the cause of a `TypeError`. */
export class RequestDenied extends ToolFailure {
  constructor(message) {
    super(message, { transient: false });
    this.code = "EACCES";
  }
}

RequestDenied.prototype.name = "RequestDenied";
