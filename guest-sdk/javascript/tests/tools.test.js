import assert from "node:assert/strict";
import { test } from "node:test";

import { ToolFailure, blob, json, link, plugin, resource, s, text, tool } from "cofferdam";
import { call, contents, definition } from "cofferdam/testing";

const options = { name: "answer", description: "Answers.", run: () => 42 };

test("a tool publishes what it was made of", () => {
  const parameters = s.object({ text: s.string("A text."), times: s.integer("How often.").min(1).max(9).default(2) });
  const made = tool({ ...options, title: "Answer", parameters, output: s.integer(), annotations: { readOnly: true } });
  assert.deepEqual(definition(made), {
    name: "answer",
    title: "Answer",
    description: "Answers.",
    inputSchema: {
      type: "object",
      properties: {
        text: { type: "string", description: "A text." },
        times: { type: "integer", description: "How often.", minimum: 1, maximum: 9, default: 2 },
      },
      required: ["text"],
    },
    outputSchema: { type: "integer" },
    annotations: { readOnly: true },
  });
  assert.deepEqual(definition(tool(options)).inputSchema, { type: "object", properties: {} });
});

for (const [what, wrong, message] of [
  ["a name", { name: "an answer" }, /1 to 128 characters .* not "an answer"/],
  ["no description", { description: " " }, /tool `answer`: a `description` is missing/],
  ["a long description", { description: "ñ".repeat(2049) }, /more than 4096 bytes/],
  ["no function", { run: "x" }, /`run` is not a function/],
  ["parameters that are no object", { parameters: s.string() }, /`parameters` is not the schema of an object/],
  ["an unknown option", { readOnly: true }, /there is no option `readOnly`/],
  ["an annotation that says neither", { annotations: { readOnly: null } }, /`readOnly` is neither true nor false/],
  ["an unknown annotation", { annotations: { readonly: true } }, /there is no annotation `readonly`/],
]) {
  test(`a tool is refused for ${what}`, () => assert.throws(() => tool({ ...options, ...wrong }), { name: "TypeError", message }));
}

test("a plugin is refused without tools, with something else, and with two of a name", () => {
  const made = tool(options);
  assert.throws(() => plugin(), /at least one tool/);
  assert.throws(() => plugin(options), /`plugin` takes what `tool\({…}\)` returns/);
  assert.throws(() => plugin(made, tool({ ...options, name: "Answer" })), /two tools of this plugin have the name `Answer`/);
  assert.throws(() => plugin(...Array.from({ length: 129 }, (_, n) => tool({ ...options, name: `t${n}` }))), /at most 128/);
  assert.throws(() => plugin(made).tool("other"), { name: "ToolFailure", message: "this plugin has no tool `other`" });
});

const returns = (value) => tool({ ...options, run: () => value });

test("what a tool returns becomes contents", async () => {
  assert.equal(await call(returns(undefined)), null);
  assert.equal(await call(returns(null)), null);
  assert.equal(await call(returns("")), "");
  assert.deepEqual(await call(returns([])), []);
  assert.deepEqual(await call(returns(Promise.resolve({ a: [1] }))), { a: [1] });
  assert.equal(await call(returns(text("a"))), "a");
  assert.equal(await call(returns("\ud800a")), "\ufffda");
  const several = [json(1), blob("image/png", new Uint8Array(3)), resource("a:b", "c"), link("a:b", "c", "text/csv")];
  assert.deepEqual(await call(returns(several)), [
    1,
    { media_type: "image/png", bytes: 3 },
    { uri: "a:b", media_type: null, text: "c" },
    { uri: "a:b", name: "c", media_type: "text/csv" },
  ]);
  assert.equal((await contents(returns(several))).length, 4);
  const mixed = [text("a"), { a: 1 }, blob("image/png", new Uint8Array(3)), "b", null, undefined, [1]];
  assert.deepEqual(await call(returns(mixed)), ["a", { a: 1 }, { media_type: "image/png", bytes: 3 }, "b", null, null, [1]]);
  await assert.rejects(call(returns([text("a"), new Uint8Array(3)])), /bytes are returned with their media type/);
  await assert.rejects(call(returns(new Uint8Array(3))), /bytes are returned with their media type/);
  await assert.rejects(call(returns(() => {})), /a function has no JSON form/);
});

test("arguments get defaults, and lose what is null or not declared", async () => {
  const item = s.object({ n: s.integer().default(1) });
  const parameters = s.object({
    text: s.string(),
    word: s.string().default("abc"),
    maybe: s.string().optional(),
    nothing: s.enum(["a"]).nullable(),
    items: s.array(item).default([{ n: 7 }]),
  });
  const made = tool({ ...options, parameters, run: (args) => ({ args, keys: Object.keys(args) }) });
  assert.deepEqual(await call(made, { text: "x", word: null, maybe: null, other: 1, items: [{}, { n: 2 }] }), {
    args: { text: "x", word: "abc", nothing: null, items: [{ n: 1 }, { n: 2 }] },
    keys: ["text", "word", "nothing", "items"],
  });
  await assert.rejects(call(made, {}), {
    name: "ToolFailure",
    message: "Required argument 'text' was not supplied to 'answer'.",
  });
});

test("a failure keeps what it was made of", () => {
  const failure = new ToolFailure("m", { suggestion: "s", transient: true, value: { code: 1 }, cause: 5 });
  assert.deepEqual(
    [failure.message, failure.suggestion, failure.transient, failure.value, failure.cause, failure.name],
    ["m", "s", true, { code: 1 }, 5, "ToolFailure"],
  );
  assert.equal("cause" in new ToolFailure("m"), false);
});

test("schemas say what they were told", () => {
  const plain = (schema) => JSON.parse(JSON.stringify(schema));
  assert.deepEqual(plain(s.string("d").min(1).max(2).pattern(/^a/)), {
    type: "string",
    description: "d",
    minLength: 1,
    maxLength: 2,
    pattern: "^a",
  });
  assert.deepEqual(plain(s.integer("d").nullable()), { type: ["integer", "null"], description: "d" });
  assert.deepEqual(plain(s.enum(["a", "b"], "d").nullable()), {
    description: "d",
    anyOf: [{ type: "string", enum: ["a", "b"] }, { type: "null" }],
  });
  assert.deepEqual(plain(s.array(s.map(s.number())).min(1).examples([{}])), {
    type: "array",
    items: { type: "object", additionalProperties: { type: "number" } },
    minItems: 1,
    examples: [[{}]],
  });
  assert.deepEqual(plain(s.object({ a: s.any("x") }).describe("d")), {
    type: "object",
    properties: { a: { description: "x" } },
    required: ["a"],
    description: "d",
  });
  assert.throws(() => s.boolean().max(1), /a boolean has no max/);
  assert.deepEqual(plain(s.json({ type: "string" })), { type: "string" });
  assert.throws(() => s.json("text"), { name: "TypeError", message: 'the schema of `s.json` is "text", and not a JSON object' });
  for (const wrong of [undefined, null, [], 1]) assert.throws(() => s.json(wrong), { name: "TypeError", message: /not a JSON object/ });
});
