import assert from "node:assert/strict";
import { test } from "node:test";

import { call } from "cofferdam/testing";

import { wordCount } from "../src/main.js";

test("counts words", async () => {
  assert.equal(await call(wordCount, { text: "to be or not" }), 4);
  assert.equal(await call(wordCount, { text: "to be or not", min_length: 3 }), 1);
});

test("says what is wrong with a length", async () => {
  await assert.rejects(call(wordCount, { text: "", min_length: 0 }), { suggestion: "pass 1 or more" });
});
