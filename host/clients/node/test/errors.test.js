// Errors of calls and of the start.

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { chmod, mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { after, before, test } from "node:test";

import {
  CallCancelled,
  CallError,
  Cofferdam,
  CofferdamError,
  HostExited,
  RefusedCall,
  StartError,
  ToolError,
  ToolFailure,
} from "cofferdam";

import { CRASH, folder, start, TEXT } from "./hosts.js";

/** @type {Cofferdam} */
let host;

before(async () => {
  host = await Cofferdam.start({ plugins: [TEXT, CRASH] });
});
after(() => host.close());

/**
 * Returns the error of a call.
 *
 * @template {CallError} Expected
 * @param {Promise<unknown>} call
 * @param {abstract new (...args: any[]) => Expected} kind
 * @returns {Promise<Expected>}
 */
async function errorOf(call, kind) {
  const error = await call.then(
    () => assert.fail("the call has succeeded"),
    (reason) => reason,
  );
  assert.ok(error instanceof kind, error);
  assert.ok(error instanceof CallError && error instanceof CofferdamError);
  assert.equal(error.name, kind.name);
  return error;
}

test("options that do not exist", async () => {
  const misspelt = /** @type {any} */ ({ plugin: TEXT });
  await assert.rejects(Cofferdam.start(misspelt), {
    name: "CofferdamError",
    message: /^there is no option `plugin`; expected plugins, mounts, /,
  });
  await assert.rejects(host.call("ok", {}, /** @type {any} */ ({ timeout: 1 })), {
    name: "CofferdamError",
    message: /^there is no option `timeout`; expected signal, timeoutMs, /,
  });
  const controller = /** @type {any} */ ({ signal: new AbortController() });
  await assert.rejects(host.call("ok", {}, controller), {
    name: "TypeError",
    message: "expected an AbortSignal as `signal`",
  });
  await host.call("ok", {}, /** @type {any} */ ({ signal: null }));
});

test("a failure", async () => {
  const error = await errorOf(host.call("fail", { message: "no such note" }), ToolFailure);
  assert.equal(error.message, "no such note");
  assert.equal(error.suggestion, "call `ok` instead");
  assert.equal(error.text, '{"error":{"message":"no such note","suggestion":"call `ok` instead"}}');
  assert.equal(error.record?.outcome, "failure");
  assert.equal(error.result?.outcome, "failure");
});

for (const [tool, args, errorType] of /** @type {const} */ ([
  ["divide_by_zero", {}, "Trap.IntegerDivideByZero"],
  ["panic", {}, "Trap.Unreachable"],
  ["allocate", {}, "MemoryLimit"],
  ["invalid_json", {}, "InvalidResult"],
  ["sleep", { ms: 5000 }, "Timeout"],
])) {
  test(`an error of the type ${errorType}`, async () => {
    const error = await errorOf(host.call(tool, args, { timeoutMs: 500 }), ToolError);
    assert.equal(error.errorType, errorType);
    assert.equal(error.message, `the call of \`${tool}\` ended in the error \`${errorType}\``);
    assert.match(error.text, /^\{"error":\{"message":"An unexpected error occurred/);
    // Nothing for the operator is in what programs show to models.
    if (error.detail !== undefined) {
      assert.ok(!`${error.message} ${error.text} ${JSON.stringify(error)}`.includes(error.detail));
    }
    assert.ok(!JSON.stringify(error).includes("record"));
  });
}

for (const timeoutMs of [-5, 0, Number.NaN, Number.POSITIVE_INFINITY]) {
  test(`a timeout of ${timeoutMs} is refused before the call`, async () => {
    await assert.rejects(host.call("ok", {}, { timeoutMs }), RangeError);
  });
}

test("a call that is not valid does not end the others", async () => {
  const others = host.call("sleep", { ms: 200 });
  const options = /** @type {any} */ ({ session: 5 });
  const error = await errorOf(host.call("ok", {}, options), RefusedCall);
  assert.equal(error.code, "invalid_call");
  await others;
});

test("an unknown tool", async () => {
  const error = await errorOf(host.call("word_cuont", { text: "a" }), RefusedCall);
  assert.deepEqual([error.code, error.nearest], ["unknown_tool", "word_count"]);
  assert.equal(error.record, undefined);
  assert.match(error.message, /there is no tool called 'word_cuont'/);
});

test("invalid arguments", async () => {
  const error = await errorOf(host.call("word_count", { min_length: -1 }), RefusedCall);
  assert.equal(error.code, "invalid_arguments");
  assert.deepEqual(error.problems.map(({ path }) => path).sort(), ["min_length", "text"]);
  assert.equal(error.text.split("\n").length, 2);
});

test("results in place of errors", async () => {
  for (const [tool, outcome] of [
    ["fail", "failure"],
    ["unreachable", "error"],
    ["nothing", "refused"],
    ["ok", "ok"],
  ]) {
    const result = await host.run(tool ?? "");
    assert.deepEqual([result.outcome, result.isError], [outcome, outcome !== "ok"]);
    assert.notEqual(result.text, "");
    assert.equal(result.error() === undefined, outcome === "ok");
  }
});

test("messages that are too long", async () => {
  const text = "x".repeat(16 * 1024 * 1024);
  const error = await errorOf(host.call("word_count", { text }), RefusedCall);
  assert.equal(error.code, "message_too_long");
  assert.match(error.message, /at most 16777216 bytes, found 16777\d+ bytes/);
  await assert.rejects(
    host.call("word_count", { text: text.slice(1024 * 1024) }),
    /larger than 1048576 bytes/,
  );
  assert.equal((await host.call("ok")).value, "ok");
});

test("arguments that are not JSON", async () => {
  await assert.rejects(host.call("word_count", { text: 1n }), TypeError);
  assert.equal((await host.call("ok")).value, "ok");
});

test("cancellation", async () => {
  const started = Date.now();
  const stop = new AbortController();
  const call = host.call("sleep", { ms: 20_000 }, { signal: stop.signal });
  const spin = host.run("spin", {}, { signal: AbortSignal.timeout(300) });
  setTimeout(() => stop.abort(new Error("enough")), 200);
  const error = await errorOf(call, CallCancelled);
  assert.equal(Object(error.cause).message, "enough");
  assert.equal(error.text, "the call of `sleep` was canceled");
  const result = await spin;
  assert.deepEqual([result.outcome, result.isError], ["cancelled", false]);
  assert.equal(Object(result.error()?.cause).name, "TimeoutError");
  assert.ok(Date.now() - started < 10_000);
  const late = await host.run("ok", {}, { signal: stop.signal });
  assert.equal(late.outcome, "cancelled");
  assert.equal(late.record, undefined);
});

test("calls share a listener of their signal, and remove it", async (t) => {
  /** @type {Error[]} */
  const warnings = [];
  const warn = (/** @type {Error} */ warning) => warnings.push(warning);
  process.on("warning", warn);
  t.after(() => process.off("warning", warn));
  const stop = new AbortController();
  const { signal } = stop;
  const quick = Array.from({ length: 20 }, () => host.call("ok", {}, { signal }));
  const slow = Array.from({ length: 20 }, () => host.run("sleep", { ms: 20_000 }, { signal }));
  await Promise.all(quick);
  assert.equal(getEventListeners(signal, "abort").length, 1);
  stop.abort();
  for (const { outcome } of await Promise.all(slow)) assert.equal(outcome, "cancelled");
  assert.equal(getEventListeners(signal, "abort").length, 0);
  assert.deepEqual(warnings, []);
});

test("a host that cannot start", async (t) => {
  const missing = join(await folder(t), "missing.wasm");
  const cases = /** @type {const} */ ([
    [{ plugins: missing }, /the host did not start: .*missing\.wasm: cannot be read/, 4],
    [{ plugins: TEXT, limits: { frobnicate: 1 } }, /frobnicate/, 2],
    [{ codeLanguage: "cobol" }, /invalid value 'cobol'/, 2],
  ]);
  for (const [options, message, exitCode] of cases) {
    await assert.rejects(Cofferdam.start(/** @type {any} */ (options)), (error) => {
      assert.ok(error instanceof StartError);
      assert.match(error.message, message);
      assert.equal(error.exitCode, exitCode);
      return true;
    });
  }
});

test("programs that are not the host", async (t) => {
  const path = await folder(t);
  const other = join(path, "other");
  const starts = (/** @type {string} */ script, /** @type {RegExp} */ message) =>
    writeFile(other, `#!/bin/sh\n${script}\n`).then(() =>
      assert.rejects(Cofferdam.start({ executable: other }), (error) => {
        assert.ok(error instanceof StartError, String(error));
        assert.match(error.message, message);
        return true;
      }),
    );
  await starts("echo hello", /EACCES/);
  await chmod(other, 0o755);
  await starts("echo hello", /found a line that is not one/);
  await starts("echo null; sleep 20", /found a line that is not one/);
  await starts(
    'read hello; echo \'{"type":"ready","protocol":2}\'',
    /expected version 1 .* found 2/,
  );
  await starts("echo why >&2; exit 3", /the host did not start: why/);
  await starts("exit 3", /the host exited with code 3/);
  await starts("kill -9 $$", /the host was ended by the signal `SIGKILL`/);
});

test("the program is found", async (t) => {
  const path = await folder(t);
  const saved = { ...process.env };
  t.after(() => {
    process.env.COFFERDAM = saved.COFFERDAM;
    process.env.PATH = saved.PATH;
  });
  const missing = join(path, "missing");
  await assert.rejects(
    Cofferdam.start({ executable: missing }),
    /expected the option `executable` to name a file, found `.*missing`/,
  );
  process.env.COFFERDAM = missing;
  await assert.rejects(Cofferdam.start(), /the environment variable `COFFERDAM` to name a file/);
  delete process.env.COFFERDAM;
  process.env.PATH = path;
  await assert.rejects(Cofferdam.start(), (error) => {
    assert.ok(error instanceof StartError);
    assert.match(
      error.message,
      /expected the program `cofferdam` in the package @cofferdam\/\S+ or/,
    );
    assert.match(error.message, /set `COFFERDAM` to its path, or pass `executable`/);
    return true;
  });
  await mkdir(join(path, "cofferdam"));
  await assert.rejects(Cofferdam.start(), /found none/);
  process.env.PATH = `${path}:${join(path, "bin")}`;
  await mkdir(join(path, "bin"));
  await symlink(saved.COFFERDAM ?? "", join(path, "bin/cofferdam"));
  const found = await start(t, { plugins: CRASH });
  assert.equal((await found.call("ok")).value, "ok");
});

test("a closed host", async () => {
  const closed = await Cofferdam.start({ plugins: CRASH });
  const running = closed.run("sleep", { ms: 20_000 });
  const closing = closed.close();
  await assert.rejects(closed.call("ok"), HostExited);
  assert.equal((await running).outcome, "cancelled");
  await closing;
  await closed.close();
  await assert.rejects(closed.call("ok"), /^HostExited: the host is closed$/);
});
