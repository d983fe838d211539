// Finds the program `cofferdam`.

import { accessSync, constants, statSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import process from "node:process";

import { StartError } from "./errors.js";
import { path } from "./flags.js";

/** @import { Location } from "./index.js" */

const VARIABLE = "COFFERDAM";
const PROGRAM = process.platform === "win32" ? "cofferdam.exe" : "cofferdam";
// The static program runs with every C library, so it comes first where both are installed.
const LIBRARIES = process.platform === "linux" ? ["-musl", "-glibc"] : [""];
const PACKAGES = LIBRARIES.map(
  (library) => `@cofferdam/${process.platform}-${process.arch}${library}`,
);

/**
 * Returns the path of the program: the given one, that of the environment variable, that of the
 * platform's package, or the first in `PATH`. If the first or second is set, nothing else is tried.
 *
 * @param {Location | undefined} given
 */
export function findExecutable(given) {
  if (given !== undefined) return existing(path(given), "the option `executable`");
  const named = process.env[VARIABLE];
  if (named) return existing(named, `the environment variable \`${VARIABLE}\``);
  const found = inPackages() ?? inPath();
  if (found !== undefined) return found;
  throw new StartError(
    `expected the program \`${PROGRAM}\` in the package ${PACKAGES.join(" or ")} or in \`PATH\`, ` +
      "found none: install cofferdam again on this platform without `--omit=optional`, set " +
      `\`${VARIABLE}\` to its path, or pass \`executable\``,
  );
}

function inPackages() {
  const { resolve } = createRequire(import.meta.url);
  for (const name of PACKAGES) {
    try {
      return resolve(`${name}/bin/${PROGRAM}`);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "MODULE_NOT_FOUND"))
        throw error;
    }
  }
  return undefined;
}

function inPath() {
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  return folders.map((folder) => join(folder, PROGRAM)).find(isExecutable);
}

/** @param {string} file */
function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return isFile(file);
  } catch {
    return false;
  }
}

/** @param {string} file @param {string} setting */
function existing(file, setting) {
  if (isFile(file)) return file;
  throw new StartError(`expected ${setting} to name a file, found \`${file}\``);
}

/** @param {string} file */
function isFile(file) {
  return statSync(file, { throwIfNoEntry: false })?.isFile() ?? false;
}
