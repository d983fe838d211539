// Turns options into flags of `cofferdam pipe`.

import { fileURLToPath } from "node:url";

/** @import { HostOptions, Location } from "./index.js" */

/**
 * Returns the flags for the options of a host.
 *
 * @param {HostOptions} options
 */
export function commandLine(options) {
  /** @type {string[]} */
  const flags = [];
  /** @param {string} flag @param {Values | number | undefined} values */
  const add = (flag, values) => {
    for (const value of strings(values)) flags.push(`--${flag}=${value}`);
  };
  add("plugin", options.plugins);
  add("mount", options.mounts);
  add("config", options.config);
  add("files", options.files);
  add("allow-http", options.allowHttp);
  add("allow-env", options.allowEnv);
  add("secret", options.secrets);
  add("allow", options.allow);
  for (const [name, number] of Object.entries(options.limits ?? {})) {
    add("limit", `${kebab(name)}=${number}`);
  }
  add("timeout", options.timeoutMs === undefined ? undefined : `${options.timeoutMs}ms`);
  add("memory", options.memoryMib);
  add("tools", options.tools === undefined ? undefined : strings(options.tools).join(","));
  add("toolset", options.toolsets);
  if (options.code) add("code", options.code === true ? "both" : options.code);
  add("code-language", options.codeLanguage);
  if (options.record) flags.push("--record");
  if (options.cacheDir === false) flags.push("--no-cache");
  else add("cache-dir", options.cacheDir);
  return flags;
}

/**
 * Returns a path. Throws if a URL is not a `file:` URL.
 *
 * @param {Location} location
 */
export function path(location) {
  return location instanceof URL ? fileURLToPath(location) : location;
}

/** @typedef {Location | readonly Location[] | Readonly<Record<string, Location>>} Values */

/**
 * Returns `NAME=VALUE` for the properties of an object, and the values otherwise.
 *
 * @param {Values | number | undefined} values
 */
function strings(values) {
  if (values === undefined) return [];
  if (typeof values === "number") return [String(values)];
  if (typeof values === "string" || values instanceof URL) return [path(values)];
  if (isArray(values)) return values.map(path);
  return Object.entries(values).map(([name, value]) => `${name}=${path(value)}`);
}

/**
 * @param {readonly Location[] | Readonly<Record<string, Location>>} values
 * @returns {values is readonly Location[]}
 */
function isArray(values) {
  return Array.isArray(values);
}

/** @param {string} name */
function kebab(name) {
  return name.replaceAll("_", "-").replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
