import assert from "node:assert/strict";
import { test } from "node:test";

import { call } from "cofferdam/testing";

import { greet } from "../src/main.js";

test("somebody is greeted", async () => {
  assert.equal(await call(greet, { name: "Ada" }), "Hello, Ada!");
});

test("nobody is greeted too often", async () => {
  await assert.rejects(call(greet, { name: "Ada", times: 11 }), { suggestion: "pass 10 or less" });
});
