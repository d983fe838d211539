/** `console` over standard error, which the host keeps with the record of the call. */

import stderr from "wasi:cli/stderr@0.2.12";

/** What WASI takes at once. */
const WRITE_BYTES_MAX = 4096;

const print = (...values) => write(`${values.map(shown).join(" ")}\n`);
const nothing = () => {};

/** All of it goes to the same place; a debugger that counts, groups or measures is not there. */
export const console = {
  debug: print,
  error: print,
  info: print,
  log: print,
  trace: print,
  warn: print,
  assert: (holds, ...values) => holds || print("assertion failed", ...values),
  dir: (value) => print(value),
  count: nothing,
  group: nothing,
  groupEnd: nothing,
  table: (value) => print(value),
  time: nothing,
  timeEnd: nothing,
};

function write(text) {
  const bytes = new TextEncoder().encode(text);
  // Borrowed anew for each line: a handle from the time when the component was built would mean nothing in a call.
  const stream = stderr.getStderr();
  try {
    for (let start = 0; start < bytes.length; start += WRITE_BYTES_MAX) {
      stream.blockingWriteAndFlush(bytes.subarray(start, start + WRITE_BYTES_MAX));
    }
  } catch {
    // Nobody reads it, and a tool does not fail for that.
  } finally {
    stream[Symbol.dispose]?.();
  }
}

function shown(value) {
  if (typeof value === "string") return value;
  if (value instanceof Error) return `${value.name}: ${value.message}\n${value.stack ?? ""}${cause(value)}`.trimEnd();
  if (typeof value !== "object" || value === null) return String(value);
  try {
    return JSON.stringify(value, (_, item) => (typeof item === "bigint" ? `${item}n` : item)) ?? String(value);
  } catch {
    return String(value);
  }
}

function cause({ cause }) {
  return cause === undefined ? "" : `caused by ${shown(cause)}`;
}
