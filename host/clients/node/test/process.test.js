// The process of the host: crashes, its end, and the program that it comes from.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cp, mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { Cofferdam, HostExited, StartError } from "cofferdam";

import { CRASH, ended, folder, onlyChild, start, TEXT } from "./hosts.js";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));

/**
 * Runs a program that has a host, and returns its exit code, its output and the id of the host.
 *
 * @param {string} program
 * @param {Record<string, string | undefined>} [env]
 */
async function run(program, env = {}, cwd = PACKAGE) {
  const beginning = `
    import { readFileSync } from "node:fs";
    import { Cofferdam } from "cofferdam";
    const host = await Cofferdam.start({ plugins: ${JSON.stringify(CRASH)} });
    const { pid } = process;
    console.log(readFileSync("/proc/" + pid + "/task/" + pid + "/children", "utf8").trim());
  `;
  const child = spawn(
    process.execPath,
    ["--input-type=module", "--eval", `${beginning}\n${program}`],
    { cwd, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] },
  );
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    output += text;
  });
  const code = await new Promise((resolve) => child.once("close", resolve));
  const [id = "", ...lines] = output.trim().split("\n");
  assert.match(id, /^\d+$/);
  return { code, id: Number(id), lines };
}

test("a killed host ends every call at once", async (t) => {
  const host = await start(t, { plugins: CRASH });
  const calls = [1, 2, 3, 4].map(() => host.call("sleep", { ms: 20_000 }));
  await sleep(100);
  const started = Date.now();
  process.kill(onlyChild(), "SIGKILL");
  for (const end of await Promise.allSettled(calls)) {
    assert.ok(end.status === "rejected" && end.reason instanceof HostExited);
    assert.equal(end.reason.message, "the host was ended by the signal `SIGKILL`");
    assert.deepEqual([end.reason.signal, end.reason.exitCode], ["SIGKILL", undefined]);
  }
  assert.ok(Date.now() - started < 1000);
  await assert.rejects(host.call("ok"), HostExited);
  await host.close();
});

test("a host ends when it is closed", async () => {
  const host = await Cofferdam.start({ plugins: CRASH });
  const id = onlyChild();
  const spin = host.run("spin");
  await host[Symbol.asyncDispose]();
  assert.equal((await spin).outcome, "cancelled");
  await ended(id);
});

test("an interrupted start leaves no process", async (t) => {
  const program = join(await folder(t), "slow");
  await writeFile(program, "#!/bin/sh\nexec sleep 20\n", { mode: 0o755 });
  const starting = Cofferdam.start({ executable: program });
  const id = onlyChild();
  process.kill(id, "SIGTERM");
  await assert.rejects(starting, StartError);
  await ended(id);
});

for (const [name, program, expected] of /** @type {const} */ ([
  ["ends", "", 0],
  ["ends after a call", 'console.log((await host.call("ok")).value)', 0],
  ["exits", "process.exit(3)", 3],
  ["exits during a call", 'host.call("spin"); setTimeout(() => process.exit(4), 100)', 4],
  ["throws", 'process.on("uncaughtException", () => process.exit(5)); throw new Error("no")', 5],
  ["is killed", 'host.call("spin"); process.kill(process.pid, "SIGKILL")', null],
])) {
  test(`a program that ${name} leaves no process`, async () => {
    const { code, id } = await run(program);
    assert.equal(code, expected);
    await ended(id);
  });
}

test("a call keeps the program running", async () => {
  const { code, lines } = await run(
    'host.call("sleep", { ms: 300 }).then(({ value }) => console.log(value))',
  );
  assert.deepEqual([code, lines], [0, ["ok"]]);
});

test("notes of the host", async (t) => {
  /** @type {string[]} */
  const notes = [];
  const cacheDir = await folder(t);
  await start(t, {
    plugins: TEXT,
    cacheDir,
    onNote: (message) => notes.push(message),
  });
  assert.match(notes.join("\n"), /compil/);
});

test("the program of the platform's package is used", async (t) => {
  const project = await folder(t);
  const modules = join(project, "node_modules");
  await mkdir(join(modules, "cofferdam"), { recursive: true });
  await cp(join(PACKAGE, "src"), join(modules, "cofferdam/src"), { recursive: true });
  await cp(join(PACKAGE, "package.json"), join(modules, "cofferdam/package.json"));
  const programs = [
    ["-glibc", "#!/bin/sh\nexit 9\n"],
    ["-musl", undefined],
  ];
  for (const [library, script] of programs) {
    const name = `@cofferdam/${process.platform}-${process.arch}${library}`;
    const bin = join(modules, name, "bin");
    await mkdir(bin, { recursive: true });
    await writeFile(join(modules, name, "package.json"), JSON.stringify({ name }));
    if (script) await writeFile(join(bin, "cofferdam"), script, { mode: 0o755 });
    else await symlink(process.env.COFFERDAM ?? "", join(bin, "cofferdam"));
  }
  const call = 'console.log((await host.call("ok")).value)';
  const { code, lines } = await run(call, { COFFERDAM: undefined, PATH: "/nowhere" }, project);
  assert.deepEqual([code, lines], [0, ["ok"]]);
});
