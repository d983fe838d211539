// Tools, calls and results.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import { CallCancelled, Cofferdam } from "cofferdam";

import { commandLine } from "../src/flags.js";
import { CRASH, folder, MANY, plugin, start, TEXT } from "./hosts.js";

/** @type {Cofferdam} */
let host;

before(async () => {
  host = await Cofferdam.start({ plugins: [TEXT, CRASH, MANY], files: "memory" });
});
after(() => host.close());

test("tools have their declarations", () => {
  const tools = new Map(host.tools.map((tool) => [tool.name, tool]));
  const tool = tools.get("word_count");
  assert.equal(tool?.title, "Count words");
  assert.equal(tool.description, "Counts the words, lines and characters of a text.");
  assert.deepEqual(tool.inputSchema.required, ["text"]);
  assert.equal(tool.outputSchema?.type, "object");
  assert.equal(tool.annotations.readOnly, true);
  assert.equal(tool.source, "text");
  assert.equal(tool.needsApproval, false);
  assert.equal(tools.get("file_access_delete_file")?.needsApproval, true);
  assert.deepEqual(host.unavailable, []);
  assert.match(host.version, /^\d+\.\d+\.\d+/);
});

test("more calls than a host accepts wait for their turn", async () => {
  const controller = new AbortController();
  const calls = Array.from({ length: 1100 }, () => host.call("ok"));
  const aborted = host.call("ok", {}, { signal: controller.signal });
  controller.abort();
  await assert.rejects(aborted, CallCancelled);
  assert.ok((await Promise.all(calls)).every(({ value }) => value === "ok"));
});

test("closing a host ends calls that wait for their turn", async (t) => {
  const other = await start(t, { plugins: CRASH });
  const calls = Array.from({ length: 1025 }, () => other.call("ok"));
  const ends = Promise.allSettled(calls);
  await other.close();
  const { reason } = /** @type {PromiseRejectedResult} */ ((await ends)[1024]);
  assert.ok(reason instanceof CallCancelled);
});

test("a value", async () => {
  const result = await host.call("word_count", { text: "to be or not to be" });
  assert.deepEqual(result.value, { words: 6, lines: 1, characters: 18, longest: "not" });
  assert.equal(result.text, '{"words":6,"lines":1,"characters":18,"longest":"not"}');
  assert.deepEqual(result.contents, [{ type: "json", json: result.value }]);
  assert.deepEqual([result.tool, result.outcome, result.isError], ["word_count", "ok", false]);
  assert.deepEqual(Object(result.record?.plugin).name, "text");
  // Programs serialize results, and the record is not for models.
  assert.ok(!JSON.stringify(result).includes("plugin"));
});

test("a string", async () => {
  const result = await host.call("ok");
  assert.deepEqual([result.value, result.text], ["ok", "ok"]);
  assert.deepEqual(result.contents, [{ type: "text", text: "ok" }]);
});

test("several items", async () => {
  const result = await host.call("test_multiple_content_types");
  const [text, image, resource] = result.contents;
  assert.equal(result.value, undefined);
  assert.equal(text?.type, "text");
  assert.ok(image?.type === "blob" && image.mediaType === "image/png");
  assert.equal(Buffer.from(image.data, "base64").toString("latin1", 1, 4), "PNG");
  assert.ok(resource?.type === "resource" && resource.mediaType === "application/json");
  assert.equal(result.text.split("\n")[0], text.text);
});

test("every text comes back as it was", async () => {
  const text = 'a "b" \\ \\\\ud800 \n\r\t\u0000 ,"record":{ ä 語 🦀 \u2028';
  const name = { file_name: "語.txt" };
  await host.call("file_access_save_file", { ...name, content: text, overwrite: true });
  assert.equal((await host.call("file_access_read_file", name)).value, text);
  // Halves of surrogate pairs are not Unicode.
  const cut = `a${"🦀".slice(0, 1)}b\\${"🦀".slice(1)}`;
  await host.call("file_access_save_file", { ...name, content: cut, overwrite: true });
  assert.equal((await host.call("file_access_read_file", name)).value, "a\ufffdb\\\ufffd");
});

test("results of some mebibytes", async (t) => {
  const execute = () => "語 ".repeat(1_500_000);
  const description = "Returns a long string.";
  const functions = [{ name: "long", description, inputSchema: { type: "object" }, execute }];
  const program = await start(t, { functions });
  const results = await Promise.all([1, 2].map(() => program.call("long")));
  for (const { value } of results) assert.equal(value, execute());
  const text = "a ".repeat(500_000);
  assert.equal(Object((await host.call("word_count", { text })).value).words, 500_000);
});

test("many calls at once get their own results", async () => {
  const numbers = Array.from({ length: 500 }, (_, number) => number);
  const started = Date.now();
  const slow = [1, 2, 3, 4].map(() => host.call("sleep", { ms: 500 }));
  const results = await Promise.all(
    numbers.map((number) => host.call("word_count", { text: "a ".repeat(number) })),
  );
  assert.deepEqual(
    results.map(({ value }) => Object(value).words),
    numbers,
  );
  await Promise.all(slow);
  const failures = await Promise.all(
    numbers.map((number) => host.run("fail", { message: String(number) })),
  );
  for (const [number, failure] of failures.entries()) {
    assert.match(failure.text, new RegExp(`"${number}"`));
  }
  assert.ok(Date.now() - started < 10_000);
});

test("a dry run with a diff", async () => {
  const file = { file_name: "dry.txt" };
  const options = { dryRun: true, diff: true };
  const result = await host.call("file_access_save_file", { ...file, content: "new\n" }, options);
  assert.match(JSON.stringify(result.record?.files), /\+new/);
  assert.match((await host.run("file_access_read_file", file)).text, /not found/);
});

test("progress and messages of a tool", async () => {
  /** @type {unknown[]} */
  const seen = [];
  await host.call(
    "test_tool_with_progress",
    {},
    { onProgress: ({ done, total }) => seen.push([done, total]) },
  );
  assert.deepEqual(
    seen,
    [0, 50, 100].map((done) => [done, 100]),
  );
  /** @type {string[]} */
  const messages = [];
  const onLog = (/** @type {{ message: string }} */ { message }) => messages.push(message);
  await host.call("test_tool_with_logging", {}, { onLog });
  assert.ok(messages.length > 0);
  await host.call("test_tool_with_logging");
});

test("questions", async (t) => {
  /** @type {string[]} */
  const asked = [];
  const content = { username: "ada", email: "ada@example.com" };
  const answers = [{ action: "accept", content }, { action: "decline" }, new Error("no")];
  const asking = await start(t, {
    plugins: MANY,
    allow: "ask:form",
    ask: ({ kind, message }) => {
      asked.push(`${kind} ${message}`);
      const next = answers.shift();
      if (next instanceof Error) throw next;
      return /** @type {any} */ (next);
    },
  });
  const ask = async () => (await asking.call("test_elicitation", { message: "Who?" })).text;
  assert.match(await ask(), /ada@example\.com/);
  assert.match(await ask(), /decline/);
  assert.match(await ask(), /cancel/);
  assert.deepEqual(asked, ["form Who?", "form Who?", "form Who?"]);
});

test("stores", async (t) => {
  const path = await folder(t);
  await writeFile(join(path, "a.md"), "# One\n");
  const notes = await start(t, { files: { notes: `${path}:ro` }, tools: "file_access_read_file" });
  assert.deepEqual(
    notes.tools.map(({ name }) => name),
    ["file_access_read_file"],
  );
  const { value } = await notes.call("file_access_read_file", { file_name: "a.md" });
  assert.equal(value, "# One\n");
  const markdown = await start(t, {
    plugins: { md: pathToFileURL(plugin("markdown")) },
    mounts: { data: pathToFileURL(path) },
  });
  assert.match((await markdown.call("outline", { file: "/data/a.md" })).text, /One/);
  assert.equal(markdown.tools[0]?.source, "md");
});

test("options become flags", () => {
  const flags = commandLine({
    plugins: ["a.wasm", new URL("file:///b%20c.wasm")],
    mounts: { data: "./notes:ro" },
    config: "c.toml",
    files: { work: "memory" },
    allowHttp: "GET https://example.com",
    allowEnv: { A: "1" },
    secrets: ["key"],
    allow: ["random"],
    limits: { cpuMsMax: 5, memory_bytes_max: 6 },
    timeoutMs: 250,
    memoryMib: 9,
    tools: ["x", "y"],
    toolsets: "z",
    code: true,
    codeLanguage: "python",
    record: true,
    cacheDir: false,
  });
  const expected = `--plugin=a.wasm|--plugin=/b c.wasm|--mount=data=./notes:ro|--config=c.toml|
    --files=work=memory|--allow-http=GET https://example.com|--allow-env=A=1|--secret=key|
    --allow=random|--limit=cpu-ms-max=5|--limit=memory-bytes-max=6|--timeout=250ms|--memory=9|
    --tools=x,y|--toolset=z|--code=both|--code-language=python|--record|--no-cache`;
  assert.deepEqual(flags, expected.split(/\|\s*/));
  assert.deepEqual(commandLine({}), []);
});
