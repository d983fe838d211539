/** Reads the files of a call. */

import { ToolFailure } from "cofferdam";
import { FileError, type Store, locate } from "cofferdam/files";

/** Templates and data are written by users; a longer file is something else. */
const FILE_BYTES_MAX = 4 * 1024 * 1024;

/** Reads a file at a path such as `/data/letter.liquid`. */
export function readFile(location: string): string {
  const { store, path } = locate(location);
  return readText(store, path);
}

/** Reads a file if it exists and is not too large. */
export function readText(store: Store, path: string): string {
  try {
    const { size } = store.stat(path);
    if (size > FILE_BYTES_MAX) {
      throw new ToolFailure(`\`/${store.name}/${path}\` has ${size} bytes; the most is ${FILE_BYTES_MAX}`, { transient: false });
    }
    return store.readText(path);
  } catch (error) {
    if (!(error instanceof FileError) || error.code !== "not-found") throw error;
    throw new ToolFailure(error.message, { suggestion: listed(store, path.split("/").slice(0, -1).join("/")) });
  }
}

/** Reads the JSON object in a file. */
export function readData(location: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(readFile(location).replace(/^\ufeff/, ""));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new ToolFailure(`\`${location}\` is not JSON: ${error.message}`, { suggestion: "pass a file that holds a JSON object" });
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  throw new ToolFailure(`\`${location}\` holds no JSON object`, {
    suggestion: "pass a file whose JSON is an object, or the values as `data`: `{\"items\": [...]}`",
  });
}

function listed(store: Store, directory: string): string {
  const names = store.list(directory).map(({ name, type }) => `\`${name}${type === "directory" ? "/" : ""}\``);
  const where = `\`/${store.name}${directory === "" ? "" : `/${directory}`}\``;
  if (names.length === 0) return `there is nothing in ${where}`;
  return `in ${where} there are ${names.slice(0, 20).join(", ")}${names.length > 20 ? " and more" : ""}`;
}
