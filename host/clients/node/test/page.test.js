// Runs the examples of `docs/node.md`, which `COFFERDAM_PAGE` names, and compares what they print
// with the blocks below.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { cp, mkdir, symlink, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { CRASH, folder, plugin, TEXT } from "./hosts.js";

const PAGE =
  process.env.COFFERDAM_PAGE ?? fileURLToPath(new URL("../../../../docs/node.md", import.meta.url));
const BLOCK = /```js\n(.*?)```\n(?:\n```text\n(.*?)```\n)?/gs;
const EXAMPLES = [...readFileSync(PAGE, "utf8").matchAll(BLOCK)];

test("there are examples", () => {
  assert.ok(EXAMPLES.length >= 9);
});

for (const [index, [, program = "", output]] of EXAMPLES.entries()) {
  test(`example ${index + 1}`, { concurrency: true }, async (t) => {
    const path = await folder(t);
    for (const file of [TEXT, CRASH, plugin("markdown"), plugin("mcp_conformance")]) {
      await symlink(file, join(path, basename(file)));
    }
    await mkdir(join(path, "notes"));
    await writeFile(join(path, "notes/plan.md"), "# Plan\n");
    await install(path);
    await writeFile(join(path, "example.mjs"), program);
    const { code, printed } = await run(path);
    assert.equal(code, 0);
    if (output !== undefined) assert.equal(printed.trim(), output.trim());
  });
}

/**
 * Installs the package and those that it is tested with.
 *
 * @param {string} path
 */
async function install(path) {
  const here = fileURLToPath(new URL("..", import.meta.url));
  await symlink(join(here, "node_modules"), join(path, "node_modules"));
  await cp(join(here, "package.json"), join(path, "package.json"));
  await symlink(join(here, "src"), join(path, "src"));
}

/** @param {string} cwd */
async function run(cwd) {
  const child = spawn(process.execPath, ["example.mjs"], {
    cwd,
    stdio: ["pipe", "pipe", "inherit"],
  });
  child.stdin.on("error", () => {});
  child.stdin.end("y\n");
  let printed = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    printed += text;
  });
  const code = await new Promise((resolve) => child.once("close", resolve));
  return { code, printed };
}
