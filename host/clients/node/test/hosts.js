// Hosts for the tests. `COFFERDAM` names the program, `COFFERDAM_PLUGINS` the test plugins.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";

import { Cofferdam } from "cofferdam";

/** @import { TestContext } from "node:test" */
/** @import { HostOptions } from "cofferdam" */

/** @param {string} name */
export function plugin(name) {
  return join(process.env.COFFERDAM_PLUGINS ?? "target/plugins", `${name}.wasm`);
}

export const TEXT = plugin("text");
export const CRASH = plugin("crash");
export const MANY = plugin("mcp_conformance");

/**
 * Starts a host that ends with the test.
 *
 * @param {TestContext} t
 * @param {HostOptions} [options]
 */
export async function start(t, options) {
  const host = await Cofferdam.start(options);
  t.after(() => host.close());
  return host;
}

/**
 * Returns a folder that is removed after the test.
 *
 * @param {TestContext} t
 */
export async function folder(t) {
  const path = await mkdtemp(join(tmpdir(), "cofferdam-"));
  t.after(() => rm(path, { recursive: true }));
  return path;
}

/** Returns the ids of the processes that a process has started. */
export function children(id = process.pid) {
  const listed = readFileSync(`/proc/${id}/task/${id}/children`, "utf8");
  return listed.split(" ").filter(Boolean).map(Number);
}

/** Returns the id of the only process that this one has started. */
export function onlyChild() {
  const [child, ...others] = children();
  assert.deepEqual(others, []);
  return child ?? assert.fail("no process runs");
}

/**
 * Waits until a process has ended. Fails after some seconds.
 *
 * @param {number} id
 */
export async function ended(id) {
  for (let tries = 0; tries < 100; tries++) {
    const isRunning = existsSync(`/proc/${id}/stat`) && !/\) Z /.test(readStat(id));
    if (!isRunning) return;
    await sleep(50);
  }
  assert.fail(`the process ${id} still runs`);
}

/** @param {number} id */
function readStat(id) {
  try {
    return readFileSync(`/proc/${id}/stat`, "utf8");
  } catch {
    return ") Z ";
  }
}
