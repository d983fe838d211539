import assert from "node:assert/strict";
import { test } from "node:test";

import { ToolFailure, s, tool } from "cofferdam";
import * as served from "cofferdam/call";
import * as client from "cofferdam/client";
import { FileError, granted, locate, store } from "cofferdam/files";
import * as secrets from "cofferdam/secrets";
import { call, testHost } from "cofferdam/testing";
import * as toolbox from "cofferdam/toolbox";

/** Runs code as a tool. */
const within = (host, run) => call(tool({ name: "t", description: "t.", run }), {}, host);

test("without a host nothing is granted, and outside of a call there is none", async () => {
  assert.throws(() => served.id(), /there is no host outside of a component/);
  assert.deepEqual(await within(undefined, granted), []);
  assert.equal(await within(undefined, () => secrets.get("x") === undefined), true);
  await assert.rejects(within(undefined, () => client.roots()), { name: "ClientError", code: "unsupported" });
  await assert.rejects(within(undefined, () => toolbox.call("x")), { message: "no tool `x` was granted", code: "unknown-tool" });
});

test("the call is what the test says", async () => {
  const host = testHost({ session: "s", timeLeftMs: 5, cancelled: () => true });
  await within(host, () => served.progress(1, 2, "one"));
  await within(host, () => served.progress(2));
  assert.deepEqual(host.progress, [[1, 2, "one"], [2, undefined, undefined]]);
  const about = () => [served.id(), served.session(), served.timeLeftMs(), served.cancelled()];
  assert.deepEqual(await within(host, about), ["test", "s", 5, true]);
});

test("files are written, listed, searched and read", async () => {
  const host = testHost({ stores: { data: { "a/b.txt": "needle\nhay", "c.md": "Needle" }, fixed: {} }, readOnly: ["fixed"] });
  await within(host, () => store("data").create("a/new/d.txt", "ñ"));
  assert.equal(host.file("data", "a/new/d.txt"), "ñ");
  const seen = await within(host, () => ({
    granted: granted(),
    size: store("data").stat("a/new/d.txt").size,
    all: store("data").list("", { recursive: true }).map(({ name }) => name),
    top: store("data").list(),
    found: store("data").search("", "needle", { caseSensitive: true }).matches,
    markdown: store("data").search("", "needle", { glob: "*.md" }).matches.length,
    exists: [store("data").exists("c.md"), store("data").exists("d.md")],
    part: [...store("data").read("c.md", 1, 2)],
  }));
  assert.deepEqual(seen, {
    granted: [{ name: "data", writable: true }, { name: "fixed", writable: false }],
    size: 2,
    all: ["a", "a/new", "a/b.txt", "a/new/d.txt", "c.md"],
    top: [{ name: "a", type: "directory" }, { name: "c.md", type: "file" }],
    found: [{ path: "a/b.txt", snippet: "needle", lines: [{ number: 1, text: "needle" }] }],
    markdown: 1,
    exists: [true, false],
    part: [101, 101],
  });
});

for (const [code, act, message] of [
  ["not-found", (data) => data.readText("x"), "`/data/x`: not found"],
  ["already-exists", (data) => data.create("a", ""), "`/data/a`: it exists already"],
  ["wrong-type", (data) => data.replace("a/b", ""), "`/data/a/b`: 'a' is a file."],
  ["invalid-path", (data) => data.read("../a"), "`/data/../a`: Invalid path: '../a'."],
  ["not-text", (data) => data.readText("raw"), "`/data/raw`: the content is not UTF-8 text"],
  ["read-only", () => store("fixed").replace("a", ""), "`/fixed/a`: the store may only be read"],
  ["unknown-store", () => store("other").list(), "`/other`: no store of that name was granted"],
  ["not-found", (data) => data.delete("b"), "`/data/b`: not found"],
]) {
  test(`files: ${message}`, async () => {
    const stores = { data: { a: "x", raw: new Uint8Array([0xff]) }, fixed: {} };
    const host = testHost({ stores, readOnly: ["fixed"] });
    await assert.rejects(within(host, () => act(store("data"))), (error) => {
      assert.ok(error instanceof FileError && error instanceof ToolFailure);
      assert.deepEqual([error.code, error.message], [code, message]);
      return true;
    });
  });
}

test("a location is a path in a store", async () => {
  const host = testHost({ stores: { data: { "a/b": "x" }, notes: {} } });
  const located = (location) =>
    within(host, () => {
      const { store, path } = locate(location);
      return [store.name, path];
    });
  assert.deepEqual(await located("/data/a/b"), ["data", "a/b"]);
  assert.deepEqual(await located("/notes"), ["notes", ""]);
  for (const location of ["/other/a", "data/a", "/", "", "//a"]) {
    await assert.rejects(located(location), {
      message: `\`${location}\` is not in a store that was granted`,
      suggestion: "pass a path that begins with /data/ or /notes/",
    });
  }
});

test("a value of a wrong type is an error of the author", async () => {
  const host = testHost({ stores: { data: {} } });
  for (const [act, message] of [
    [() => store("data").read(undefined), "the path is undefined, and not a string"],
    [() => store("data").read("a", -1), "`offset` is -1, and not an integer of 0 or more"],
    [() => store("data").replace("a", [1]), "the content is object, and not a Uint8Array"],
    [() => store("data").search("", /x/), "`pattern` is object, and not a string"],
    [() => store(5), "the name of the store is 5, and not a string"],
    [() => served.progress("1"), '`done` is "1", and not a finite number'],
    [() => client.log("loud", "x"), 'the level is "loud", and not one of debug, info, notice, warning, error, critical, alert, emergency'],
    [() => client.canAsk("x"), '`kind` is "x", and not one of form, sample, roots'],
    [() => toolbox.call(null), "the name of the tool is null, and not a string"],
    [() => secrets.get({}), "the name of the secret is object, and not a string"],
  ]) {
    await assert.rejects(within(host, act), { name: "TypeError", message });
  }
});

test("other tools are called, and their failures go through", async () => {
  const double = tool({
    name: "double",
    description: "Doubles.",
    parameters: s.object({ n: s.integer().default(4) }),
    run({ n }) {
      if (n > 9) throw new ToolFailure("too large", { suggestion: "pass 9", transient: false });
      return { twice: n * 2 };
    },
  });
  const host = testHost({ tools: { double, word: () => "w" } });
  assert.deepEqual(await within(host, () => [toolbox.call("double"), toolbox.call("word", {})]), [{ twice: 8 }, "w"]);
  assert.deepEqual(await within(host, () => toolbox.granted().map(({ name }) => name)), ["double", "word"]);
  await assert.rejects(within(host, () => toolbox.call("double", { n: 10 })), {
    code: "failed",
    message: "too large",
    suggestion: "pass 9",
    transient: false,
  });
});

test("the client is asked and told", async () => {
  const answers = {
    form: { outcome: "accepted", value: { really: true } },
    sample: { content: [{ type: "text", text: "a" }, { type: "image" }, { type: "text", text: "b" }] },
    roots: [{ uri: "file:///w" }],
  };
  const asked = [];
  const host = testHost({ answer: (question) => (asked.push(question), answers[question.kind]) });
  const seen = await within(host, () => {
    client.log("warning", "careful");
    return [
      client.canAsk("form"),
      client.askForm("Really?", s.object({ really: s.boolean() })),
      client.sample("Say a", 10),
      client.roots(),
    ];
  });
  assert.deepEqual(seen, [true, answers.form, "a\nb", [{ uri: "file:///w" }]]);
  assert.deepEqual(host.logged, [["warning", "careful"]]);
  assert.equal(asked[0].message, "Really?");
  assert.equal(asked[1].parameters.maxTokens, 10);
  const declining = testHost({ answer: () => ({ outcome: "declined" }) });
  assert.deepEqual(await within(declining, () => client.askForm("?", { type: "object" })), { outcome: "declined" });
  const confused = testHost({ answer: () => ({ content: { type: "image" } }) });
  await assert.rejects(within(confused, () => client.sample("?", 1)), { code: "failed" });
});

test("secrets are those that were granted", async () => {
  const host = testHost({ secrets: { token: "t" } });
  assert.deepEqual(await within(host, () => [secrets.get("token"), secrets.get("other") ?? null]), ["t", null]);
});
