import assert from "node:assert/strict";
import { test } from "node:test";

import { ToolFailure, plugin, s, tool } from "cofferdam";
import { JobPromise, later, settled } from "cofferdam/component/promise.js";
import { serve } from "cofferdam/component/serve.js";
import { Decoder, Encoder } from "cofferdam/component/text.js";

import { readArguments, readJson, writeJson } from "../numbers.js";

// Functions that the engine has and Node 20 lacks.
Uint8Array.fromBase64 ??= (text) => new Uint8Array(Buffer.from(text, "base64"));
Uint8Array.prototype.toBase64 ??= function toBase64() {
  return Buffer.from(this.buffer, this.byteOffset, this.byteLength).toString("base64");
};
const hasDigits = JSON.rawJSON !== undefined;

test("text is encoded and decoded as the standard has it", () => {
  const reference = new TextDecoder("utf-8", { ignoreBOM: true });
  const lenient = new Decoder("utf-8", { ignoreBOM: true });
  for (const written of ["", "abc", "añ漢🦀\0", "\ufeffx", "é".repeat(70_000), `a${"🦀".repeat(40_000)}`]) {
    const bytes = new TextEncoder().encode(written);
    assert.deepEqual(new Encoder().encode(written), bytes);
    assert.equal(lenient.decode(bytes), written);
  }
  for (const bytes of [[0xff], [0xc3], [0xe2, 0x82], [0xe2, 0x82, 0x41], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80],
    [0xc0, 0x80, 0x41], [0xf0, 0x9f, 0xa6, 0x80, 0xf0, 0x9f], [0x80, 0x41, 0xc3, 0xb1]]) {
    assert.equal(lenient.decode(new Uint8Array(bytes)), reference.decode(new Uint8Array(bytes)), String(bytes));
    assert.throws(() => new Decoder("utf8", { fatal: true }).decode(new Uint8Array(bytes)), { name: "TypeError" });
  }
  assert.equal(new Decoder().decode(new TextEncoder().encode("\ufeffx")), "x");
  assert.deepEqual(new Encoder().encode("\ud800"), new Uint8Array([0xef, 0xbf, 0xbd]));
  assert.deepEqual(new Encoder().encodeInto("añ漢", new Uint8Array(4)), { read: 2, written: 3 });
  assert.throws(() => new Decoder("latin1"), { name: "RangeError" });
});

test("text is decoded in pieces", () => {
  const bytes = new TextEncoder().encode("\ufeffañ漢🦀\ufeffz");
  for (const size of [1, 2, 3, 5, 100]) {
    const decoder = new Decoder();
    let text = "";
    for (let at = 0; at < bytes.length; at += size) text += decoder.decode(bytes.subarray(at, at + size), { stream: true });
    assert.equal(text + decoder.decode(), "añ漢🦀\ufeffz");
  }
  const decoder = new Decoder();
  assert.equal(decoder.decode(new Uint8Array([0x41, 0xe2, 0x82]), { stream: true }), "A");
  assert.equal(decoder.decode(new Uint8Array([0x41])), "\ufffdA");
  assert.throws(() => new Decoder("utf-8", { fatal: true }).decode(new Uint8Array([0xe2])), { name: "TypeError" });
});

test("promises settle before a call returns", () => {
  const order = [];
  const value = settled(
    JobPromise.resolve(1)
      .then((one) => (later(() => order.push("job")), one + 1))
      .finally(() => order.push("finally"))
      .then((two) => JobPromise.all([two, JobPromise.reject(3).catch((three) => three), 4])),
  );
  assert.deepEqual(value, [2, 3, 4]);
  assert.deepEqual(order, ["job", "finally"]);
  assert.throws(() => settled(JobPromise.reject(new RangeError("x"))), { name: "RangeError" });
  assert.throws(() => settled(new JobPromise(() => {})), /waits for a promise that nothing settles/);
  assert.throws(() => settled(JobPromise.any([JobPromise.reject(1)])), { name: "AggregateError", errors: [1] });
  assert.equal(settled(JobPromise.race([new JobPromise(() => {}), 2])), 2);
  assert.deepEqual(settled(JobPromise.allSettled([1, JobPromise.reject(2)])), [
    { status: "fulfilled", value: 1 },
    { status: "rejected", reason: 2 },
  ]);
  const { promise, resolve } = JobPromise.withResolvers();
  resolve(JobPromise.try((n) => n + 1, 1));
  assert.equal(settled(promise), 2);
  const itself = new JobPromise((resolve) => later(() => resolve(itself)));
  assert.throws(() => settled(itself), /cannot wait for itself/);
  assert.deepEqual(settled(JobPromise.all([])), []);
});

test("what a component exports", (context) => {
  const printed = context.mock.method(console, "error", () => {});
  const fails = tool({
    name: "fails",
    title: "Fails",
    description: "Fails.",
    parameters: s.object({ how: s.string() }),
    annotations: { readOnly: true },
    run({ how }) {
      if (how === "failure") throw new ToolFailure("m", { suggestion: "s", transient: false, value: [1] });
      if (how === "text") throw "just a text";
      if (how === "ok") return "fine";
      throw new RangeError("out of range");
    },
  });
  const { listTools, callTool } = serve(plugin(fails));
  assert.deepEqual(listTools(), [
    {
      name: "fails",
      title: "Fails",
      description: "Fails.",
      inputSchema: '{"type":"object","properties":{"how":{"type":"string"}},"required":["how"]}',
      outputSchema: undefined,
      annotations: { readOnly: true, destructive: undefined, idempotent: undefined, openWorld: undefined, longRunning: undefined },
    },
  ]);
  assert.equal(callTool("fails", '{"how":"ok"}')[0].val, "fine");
  const failure = (how) => {
    try {
      callTool("fails", JSON.stringify({ how }));
    } catch (error) {
      return error;
    }
  };
  assert.deepEqual(failure("failure"), { message: "m", suggestion: "s", transient: false, value: "[1]" });
  assert.equal(printed.mock.callCount(), 0);
  assert.equal(failure("error").message, "RangeError: out of range");
  assert.equal(failure("text").message, "string: just a text");
  assert.equal(printed.mock.callCount(), 2);
  assert.throws(() => serve({}), /ends with `export default plugin/);
});

/** Returns the failure of a tool that throws a value. */
function thrown(value) {
  const throws = tool({
    name: "throws",
    description: "Throws.",
    run() {
      throw value;
    },
  });
  try {
    serve(plugin(throws)).callTool("throws", "{}");
  } catch (failure) {
    return failure;
  }
}

test("the name of an error is that of its class", (context) => {
  context.mock.method(console, "error", () => {});
  class RateError extends Error {}
  const renamed = (error, properties) => thrown(Object.assign(error, properties)).message;
  assert.equal(renamed(new RateError("m"), { name: "s3cret" }), "RateError: m");
  assert.equal(renamed(new RateError("m"), { constructor: { name: "s3cret" } }), "RateError: m");
  assert.equal(renamed(new (class extends Error {})("m"), { name: "s3cret" }), "Error: m");
});

test("every thrown value is a failure", (context) => {
  context.mock.method(console, "error", () => {});
  const throwing = () => {
    throw new Error("from a getter");
  };
  const cyclic = {};
  cyclic.cyclic = cyclic;
  const failures = [
    [null, "the tool threw `null`, or has used up the memory of the call"],
    [undefined, "undefined: undefined"],
    [Object.defineProperty(new RangeError("m"), "name", { get: throwing }), "RangeError: m"],
    [Object.defineProperty(new RangeError(), "message", { get: throwing }), "RangeError: its text cannot be read"],
    [Object.defineProperty(new RangeError("m"), "cause", { get: throwing }), "RangeError: m"],
    [{ toString: throwing }, "object: its text cannot be read"],
    [new ToolFailure("m", { suggestion: { toString: throwing } }), "ToolFailure: m"],
    [new Proxy({}, { getPrototypeOf: throwing }), "Error: its text cannot be read"],
  ];
  for (const [value, message] of failures) assert.equal(thrown(value).message, message);
  for (const value of [cyclic, () => {}]) {
    assert.deepEqual(thrown(new ToolFailure("m", { suggestion: "s", value })), {
      message: "m",
      suggestion: "s",
      transient: undefined,
      value: undefined,
    });
  }
});

test("a default can be an integer beyond 2^53", { skip: !hasDigits }, () => {
  const parameters = s.object({ id: s.int64("d").default(9007199254740993n) });
  const { listTools } = serve(plugin(tool({ name: "get", description: "Gets.", parameters, output: parameters, run: () => 1 })));
  const [{ inputSchema, outputSchema }] = listTools();
  assert.match(inputSchema, /"default":9007199254740993\b/);
  assert.equal(outputSchema, inputSchema);
});

test("integers keep their digits where the schema has them", { skip: !hasDigits }, () => {
  const schema = JSON.parse(JSON.stringify(s.object({ id: s.int64(), ids: s.array(s.int64()), any: s.any(), number: s.number() })));
  const text = '{"id":9007199254740993,"ids":[1,-9223372036854775808],"any":{"id":9007199254740993},"number":9007199254740993}';
  assert.deepEqual(readArguments(text, schema), {
    id: 9007199254740993n,
    ids: [1, -9223372036854775808n],
    any: { id: 9007199254740992 },
    number: 9007199254740992,
  });
  const referring = { $defs: { id: { anyOf: [{ type: "integer" }, { type: "null" }] } }, properties: { id: { $ref: "#/$defs/id" } } };
  assert.deepEqual(readArguments('{"id":9007199254740993}', referring), { id: 9007199254740993n });
  assert.throws(() => readArguments('{"n":9007199254740993}', s.object({ n: s.integer() }).toJSON()), {
    name: "ToolFailure",
    message: "argument `n` is 9007199254740993, which is too large for this tool",
  });
  assert.deepEqual(readJson("[1e300,9007199254740993]"), [1e300, 9007199254740993n]);
  assert.equal(writeJson({ a: [9007199254740993n], b: 1 }), '{"a":[9007199254740993],"b":1}');
});

test("JSON is written without halves of characters", () => {
  assert.equal(writeJson(["\ud800", "🦀", "\\ud800", "\\\ud800"]), '["\\ufffd","🦀","\\\\ud800","\\\\\\ufffd"]');
  assert.throws(() => writeJson(Symbol("x")), /a symbol has no JSON form/);
  const round = {};
  round.round = round;
  assert.throws(() => writeJson(round), { name: "TypeError" });
});
