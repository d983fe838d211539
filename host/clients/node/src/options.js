// Names of options, so that a misspelt one is an error rather than ignored.

import { CofferdamError } from "./errors.js";

/** @import { CallOptions, HostOptions } from "./index.js" */

/** @type {Record<keyof HostOptions, true>} */
const HOST_OPTIONS = {
  plugins: true,
  mounts: true,
  config: true,
  files: true,
  allowHttp: true,
  allowEnv: true,
  secrets: true,
  allow: true,
  limits: true,
  timeoutMs: true,
  memoryMib: true,
  tools: true,
  toolsets: true,
  code: true,
  codeLanguage: true,
  record: true,
  cacheDir: true,
  functions: true,
  approve: true,
  ask: true,
  onNote: true,
  executable: true,
};

/** @type {Record<keyof CallOptions, true>} */
const CALL_OPTIONS = {
  signal: true,
  timeoutMs: true,
  session: true,
  dryRun: true,
  diff: true,
  approve: true,
  onProgress: true,
  onLog: true,
};

/**
 * Throws if a host has no such option.
 *
 * @param {HostOptions} options
 */
export function checkHostOptions(options) {
  check(options, HOST_OPTIONS);
}

/**
 * Throws if a call has no such option.
 *
 * @param {CallOptions} options
 */
export function checkCallOptions(options) {
  check(options, CALL_OPTIONS);
  const { signal } = options;
  if (signal !== undefined && signal !== null && !(signal instanceof AbortSignal)) {
    throw new TypeError("expected an AbortSignal as `signal`");
  }
}

/**
 * @param {object} options
 * @param {Record<string, true>} known
 */
function check(options, known) {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(known, name));
  if (unknown !== undefined) {
    const names = Object.keys(known).join(", ");
    throw new CofferdamError(`there is no option \`${unknown}\`; expected ${names}`);
  }
}
