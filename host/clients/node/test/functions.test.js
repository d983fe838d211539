// Functions of the program as tools.

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Cofferdam, StartError, ToolError, ToolFailure } from "cofferdam";

import { start, TEXT } from "./hosts.js";

/** @import { ProgramFunction } from "cofferdam" */

const inputSchema = {
  type: "object",
  properties: { title: { type: "string" }, limit: { type: "integer", default: 10 } },
  required: ["title"],
};

/** @type {ProgramFunction} */
const lookup = {
  name: "lookup",
  title: "Look up",
  description: "Looks a note up.",
  inputSchema,
  outputSchema: {
    type: "object",
    properties: { words: { type: "integer" } },
    required: ["words"],
  },
  annotations: { readOnly: true },
  execute({ title, limit }) {
    if (title === "missing") {
      const details = { suggestion: "list the notes", value: { near: ["a"] } };
      throw new ToolFailure("there is no such note", details);
    }
    if (title === "broken") throw new RangeError("secret detail");
    if (title === "wrong") return {};
    return { words: limit };
  },
};

/** @type {ProgramFunction} */
const upper = {
  name: "upper",
  description: "Returns a title in upper case.",
  inputSchema,
  async execute({ title }) {
    await sleep(50);
    return title.toUpperCase();
  },
};

/** @param {string} name @param {ProgramFunction["execute"]} execute */
function plain(name, execute) {
  return { name, description: "A function.", inputSchema: { type: "object" }, execute };
}

test("functions are declared and called", async (t) => {
  const host = await start(t, { functions: [lookup, upper] });
  const [tool] = host.tools;
  assert.deepEqual([tool?.name, tool?.title, tool?.source], ["lookup", "Look up", "program"]);
  assert.deepEqual(tool?.inputSchema, inputSchema);
  assert.equal(tool?.annotations.readOnly, true);
  assert.deepEqual((await host.call("lookup", { title: "a" })).value, { words: 10 });
  // The host decodes the arguments by the schema.
  assert.deepEqual((await host.call("lookup", { title: "a", limit: "3" })).value, { words: 3 });
  const titles = ["a", "b", "c"].map((title) => host.call("upper", { title }));
  const results = await Promise.all(titles);
  assert.deepEqual(
    results.map(({ value }) => value),
    ["A", "B", "C"],
  );
});

test("failures and errors", async (t) => {
  const host = await start(t, { functions: [lookup] });
  await assert.rejects(host.call("lookup", { title: "missing" }), (error) => {
    assert.ok(error instanceof ToolFailure);
    assert.equal(error.message, "there is no such note");
    assert.equal(error.suggestion, "list the notes");
    assert.deepEqual(error.value, { near: ["a"] });
    return true;
  });
  await assert.rejects(host.call("lookup", { title: "broken" }), (error) => {
    assert.ok(error instanceof ToolError);
    assert.equal(error.errorType, "RangeError");
    assert.ok(!`${error.message} ${error.text}`.includes("secret"));
    assert.match(error.detail ?? "", /secret detail/);
    assert.ok(error.cause instanceof RangeError);
    return true;
  });
  const wrong = (await host.run("lookup", { title: "wrong" })).error();
  assert.ok(wrong instanceof ToolError);
  assert.equal(wrong.errorType, "InvalidResult");
});

test("results that are not JSON", async (t) => {
  const functions = [
    plain("bigint", () => 1n),
    plain("long", () => "x".repeat(17_000_000)),
    plain("failure", () => {
      throw new ToolFailure("no", { value: 1n });
    }),
    plain("string", () => {
      throw "text";
    }),
    plain("nothing", () => undefined),
  ];
  const host = await start(t, { functions });
  for (const [name, errorType] of [
    ["bigint", "TypeError"],
    ["long", "MessageTooLong"],
    ["failure", "TypeError"],
    ["string", "string"],
  ]) {
    const error = (await host.run(name ?? "")).error();
    assert.ok(error instanceof ToolError);
    assert.equal(error.errorType, errorType);
  }
  assert.equal((await host.call("nothing")).value, null);
});

test("names of functions", async (t) => {
  await assert.rejects(Cofferdam.start({ functions: [upper, upper] }), /different names/);
  // The host renames tools whose names are those of others.
  const taken = { ...upper, name: "word_count" };
  const host = await start(t, { plugins: TEXT, functions: [taken] });
  assert.equal((await host.call("program_word_count", { title: "a" })).value, "A");
  assert.equal(Object((await host.call("text_word_count", { text: "a" })).value).words, 1);
  const unnamed = Cofferdam.start({ functions: [{ ...upper, name: "a b" }] });
  await assert.rejects(unnamed, StartError);
  const unsendable = { ...upper, inputSchema: { default: 1n } };
  await assert.rejects(Cofferdam.start({ functions: [unsendable] }), TypeError);
});

test("functions run in the context of their call, and call tools", async (t) => {
  const storage = new AsyncLocalStorage();
  const host = await start(t, {
    plugins: TEXT,
    functions: [
      plain("context", async () => {
        const { value } = await host.call("word_count", { text: "a b" });
        return `${storage.getStore()} ${Object(value).words}`;
      }),
    ],
  });
  const calls = ["x", "y"].map((store) => storage.run(store, () => host.call("context")));
  const results = await Promise.all(calls);
  assert.deepEqual(
    results.map(({ value }) => value),
    ["x 2", "y 2"],
  );
});

test("programs of a model call functions", async (t) => {
  const host = await start(t, { plugins: TEXT, code: "only", functions: [lookup, upper] });
  assert.deepEqual(
    host.tools.map(({ name }) => name),
    ["run_code"],
  );
  const code = `
    const notes = await Promise.all(["a", "b"].map(title => tools.upper({title})));
    const {words} = await tools.word_count({text: notes.join(" ")});
    let failure = null;
    try { await tools.lookup({title: "missing"}) } catch (error) { failure = error.message }
    return {notes, words, failure};
  `;
  const { value } = await host.call("run_code", { code });
  const expected = { notes: ["A", "B"], words: 2, failure: "there is no such note" };
  assert.deepEqual(Object(value).result, expected);
});

test("a canceled call aborts its function", async (t) => {
  /** @type {unknown[]} */
  const ends = [];
  const wait = plain("wait", async (_, { signal }) => {
    try {
      await sleep(20_000, undefined, { signal });
    } catch (error) {
      ends.push(Object(error).name);
    }
  });
  const host = await start(t, { functions: [wait] });
  const canceled = await host.run("wait", {}, { signal: AbortSignal.timeout(100) });
  assert.equal(canceled.outcome, "cancelled");
  const late = (await host.run("wait", {}, { timeoutMs: 100 })).error();
  assert.ok(late instanceof ToolError && late.errorType === "Timeout");
  await sleep(100);
  assert.deepEqual(ends, ["AbortError", "AbortError"]);
});
