/** Reads the JSON file of a call. */

import { ToolFailure } from "cofferdam";
import { FileError, locate } from "cofferdam/files";

/** Parsed JSON needs up to ten times its length, out of the default memory of a call. */
const FILE_BYTES_MAX = 8 * 1024 * 1024;

export function readJsonFile(location) {
  const { store, path } = locate(location);
  const text = readText(store, path, location);
  try {
    // Some editors begin a text with a byte order mark, which is not valid JSON.
    return JSON.parse(text.replace(/^\ufeff/, ""));
  } catch (error) {
    const isLines = /^\s*\{.*\}\s*\n\s*\{/.test(text.slice(0, 10_000));
    throw new ToolFailure(`\`${location}\` is not JSON: ${error.message}`, {
      suggestion: isLines ? "it looks like JSON Lines: pass some of its lines as an array in `data`" : "pass a file that holds JSON",
      transient: false,
    });
  }
}

function readText(store, path, location) {
  try {
    const { type, size } = store.stat(path);
    if (type === "directory") {
      throw new ToolFailure(`\`${location}\` is a directory`, { suggestion: listed(store, path, location) });
    }
    if (size > FILE_BYTES_MAX) {
      throw new ToolFailure(`\`${location}\` has ${size} bytes; the most is ${FILE_BYTES_MAX}`, {
        suggestion: "pass a smaller file, or a part of it as `data`",
        transient: false,
      });
    }
    return store.readText(path);
  } catch (error) {
    if (!(error instanceof FileError) || error.code !== "not-found") throw error;
    const directory = path.split("/").slice(0, -1).join("/");
    throw new ToolFailure(error.message, { suggestion: listed(store, directory, `/${store.name}/${directory}`) });
  }
}

/** Lists the JSON files in a directory, so that the next call can name one. */
function listed(store, directory, location) {
  const names = store.list(directory, { glob: "*.json" }).map(({ name }) => `\`${name}\``);
  const where = `\`${location.replace(/\/$/, "")}\``;
  if (names.length === 0) return `there are no JSON files in ${where}`;
  return `in ${where} there are ${names.slice(0, 20).join(", ")}${names.length > 20 ? " and more" : ""}`;
}
