/**
 * `console`, which prints to standard error. The host stores the output in the record of the call.
 */

import stderr from "wasi:cli/stderr@0.2.12";

/** Maximum bytes that WASI accepts in one write. */
const WRITE_BYTES_MAX = 4096;

const print = (...values) => write(`${values.map(shown).join(" ")}\n`);
const nothing = () => {};

/** All methods print to the same stream. Counting, grouping and timing are not supported. */
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
  // Requested anew for each line, because a handle from the build of the component is invalid in a
  // call.
  const stream = stderr.getStderr();
  try {
    for (let start = 0; start < bytes.length; start += WRITE_BYTES_MAX) {
      stream.blockingWriteAndFlush(bytes.subarray(start, start + WRITE_BYTES_MAX));
    }
  } catch {
    // A tool does not fail because its output is not read.
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
