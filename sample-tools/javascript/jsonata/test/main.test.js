import assert from "node:assert/strict";
import { test } from "node:test";

import { call, testHost } from "cofferdam/testing";

import { transformJson } from "../src/main.js";

const host = (files) => testHost({ stores: { data: files }, readOnly: ["data"] });

test("transforms data and files", async () => {
  assert.equal(await call(transformJson, { expression: "a.b", data: { a: { b: 1 } } }), 1);
  assert.deepEqual(await call(transformJson, { expression: "a", file: "/data/x.json" }, host({ "x.json": '\ufeff{"a":[1,2]}' })), [1, 2]);
});

test("says where an expression is wrong", async () => {
  await assert.rejects(call(transformJson, { expression: "a[", data: {} }), {
    name: "ToolFailure",
    message: /S0203, at character 2, behind `a\[`/,
  });
});

test("refuses a file that is too large before it is read", async () => {
  const large = new Uint8Array(8 * 1024 * 1024 + 1);
  await assert.rejects(call(transformJson, { expression: "a", file: "/data/x.json" }, host({ "x.json": large })), {
    message: "`/data/x.json` has 8388609 bytes; the most is 8388608",
  });
});

test("says what looks like JSON Lines", async () => {
  await assert.rejects(call(transformJson, { expression: "a", file: "/data/x.json" }, host({ "x.json": '{"a":1}\n{"a":2}\n' })), {
    suggestion: /it looks like JSON Lines/,
  });
});
