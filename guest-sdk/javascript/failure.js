/** A failure that the tool reports in words, so that the model can correct itself. */
export class ToolFailure extends Error {
  constructor(message, { suggestion, transient, value, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.suggestion = suggestion;
    this.transient = transient;
    this.value = value;
  }
}

// On the prototype, so that it is not one more thing that a test has to compare.
ToolFailure.prototype.name = "ToolFailure";
