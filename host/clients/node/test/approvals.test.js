// Calls that need approval.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { RefusedCall } from "cofferdam";

import { start } from "./hosts.js";

/** @import { TestContext } from "node:test" */
/** @import { Approve, Cofferdam } from "cofferdam" */

const TOOL = "file_access_delete_file";
const ARGUMENTS = { file_name: "a.txt" };

/** @type {Approve} */
const yes = ({ tool, arguments: args }) => tool === TOOL && args.file_name === "a.txt";
const no = () => false;

/**
 * Starts a host with a file.
 *
 * @param {TestContext} t
 * @param {Approve} [approve]
 */
async function startWithFile(t, approve) {
  const host = await start(t, { files: "memory", ...(approve && { approve }) });
  await host.call("file_access_save_file", { ...ARGUMENTS, content: "a" });
  return host;
}

/** @param {Cofferdam} host */
async function isThere(host) {
  return (await host.run("file_access_read_file", ARGUMENTS)).text === "a";
}

/** @param {Promise<unknown>} call @param {string} code @param {RegExp} message */
async function assertRefused(call, code, message) {
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof RefusedCall);
    assert.equal(error.code, code);
    assert.match(error.message, message);
    return true;
  });
}

test("approved calls", async (t) => {
  /** @type {Approve} */
  const later = async (request) => {
    await sleep(10);
    return yes(request, { signal: new AbortController().signal });
  };
  for (const approve of [yes, later]) {
    const host = await startWithFile(t, approve);
    await host.call(TOOL, ARGUMENTS);
    assert.equal(await isThere(host), false);
  }
});

test("refused calls", async (t) => {
  const broken = () => {
    throw new Error("no");
  };
  const truthy = /** @type {any} */ (() => "yes");
  for (const approve of [no, broken, truthy]) {
    const host = await startWithFile(t, approve);
    const refused = host.call(TOOL, ARGUMENTS);
    await assertRefused(refused, "not_approved", /the call to `\S+` was not approved/);
    assert.equal(await isThere(host), true);
  }
});

test("calls that nothing approves", async (t) => {
  const host = await startWithFile(t);
  const refused = host.call(TOOL, ARGUMENTS);
  await assertRefused(refused, "approval_needed", /the program approves no calls/);
  assert.equal(await isThere(host), true);
});

test("approval of one call", async (t) => {
  const strict = await startWithFile(t, no);
  await assertRefused(strict.call(TOOL, ARGUMENTS), "not_approved", /not approved/);
  await strict.call(TOOL, ARGUMENTS, { approve: yes });
  assert.equal(await isThere(strict), false);
  const lax = await startWithFile(t, yes);
  const refused = lax.call(TOOL, ARGUMENTS, { approve: false });
  await assertRefused(refused, "not_approved", /not approved/);
  await lax.call(TOOL, ARGUMENTS, { approve: true });
  assert.equal(await isThere(lax), false);
});

test("a canceled call withdraws its question", async (t) => {
  /** @type {unknown[]} */
  const withdrawn = [];
  const host = await startWithFile(t, async (_, { signal }) => {
    await sleep(20_000, undefined, { signal }).catch((error) => withdrawn.push(error.name));
    return true;
  });
  const result = await host.run(TOOL, ARGUMENTS, { signal: AbortSignal.timeout(100) });
  assert.equal(result.outcome, "cancelled");
  await sleep(100);
  assert.deepEqual(withdrawn, ["AbortError"]);
  assert.equal(await isThere(host), true);
});

test("calls of programs are approved with their arguments", async (t) => {
  for (const allow of [true, false]) {
    /** @type {unknown[]} */
    const asked = [];
    const host = await start(t, {
      files: "memory",
      code: "only",
      approve: ({ tool, arguments: args }) => {
        asked.push([tool, args]);
        return allow;
      },
    });
    const code = `
      await tools.file_access_save_file({file_name: "a.txt", content: "a"});
      return await tools.file_access_delete_file({file_name: "a.txt"});
    `;
    // Approval of the program is not approval of its calls.
    const result = await host.run("run_code", { code }, { approve: true });
    assert.equal(result.outcome, allow ? "ok" : "failure");
    assert.deepEqual(asked, [[TOOL, { file_name: "a.txt" }]]);
  }
});
