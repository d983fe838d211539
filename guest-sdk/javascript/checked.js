/**
 * Values on their way to the host. One of a wrong type would end the call without a word for the model; here it is a TypeError with
 * the place in the author's code.
 */

export function string(value, what) {
  // Half of a character is none, and cannot be handed over.
  if (typeof value === "string") return value.toWellFormed();
  throw wrong(value, what, "a string");
}

/** WIT has null for what is not there. */
export function optionalString(value, what) {
  return value === undefined || value === null ? null : string(value, what);
}

export function finite(value, what) {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw wrong(value, what, "a finite number");
}

/** An offset or a length. */
export function count(value, what) {
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw wrong(value, what, "an integer of 0 or more");
}

export function bytes(value, what) {
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  throw wrong(value, what, "a Uint8Array");
}

export function choice(value, choices, what) {
  if (choices.includes(value)) return value;
  throw wrong(value, what, `one of ${choices.join(", ")}`);
}

function wrong(value, what, expected) {
  const shown = typeof value === "string" || typeof value === "number" ? JSON.stringify(value) : value === null ? "null" : typeof value;
  return new TypeError(`${what} is ${shown}, and not ${expected}`);
}
