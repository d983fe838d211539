/**
 * Checks values that are passed to the host. A value of a wrong type would end the call without a
 * message for the model; these functions throw a TypeError with the position in the author's code.
 */

export function string(value, what) {
  // Lone surrogates cannot be passed on.
  if (typeof value === "string") return value.toWellFormed();
  throw wrong(value, what, "a string");
}

/** Returns null for a missing value, as WIT requires. */
export function optionalString(value, what) {
  return value === undefined || value === null ? null : string(value, what);
}

export function finite(value, what) {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw wrong(value, what, "a finite number");
}

/** Checks an offset or a length. */
export function count(value, what) {
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw wrong(value, what, "an integer of 0 or more");
}

export function bytes(value, what) {
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  throw wrong(value, what, "a Uint8Array");
}

export function jsonObject(value, what) {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw wrong(value, what, "a JSON object");
}

export function choice(value, choices, what) {
  if (choices.includes(value)) return value;
  throw wrong(value, what, `one of ${choices.join(", ")}`);
}

function wrong(value, what, expected) {
  const shown = typeof value === "string" || typeof value === "number" ? JSON.stringify(value) : value === null ? "null" : typeof value;
  return new TypeError(`${what} is ${shown}, and not ${expected}`);
}
