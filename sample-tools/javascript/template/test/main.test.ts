import assert from "node:assert/strict";
import { test } from "node:test";

import { call, testHost } from "cofferdam/testing";

import { renderTemplate } from "../src/main.ts";

test("renders with parts from beside the template", async () => {
  const host = testHost({ stores: { data: { "letters/a.liquid": "{% render 'b', x: x %}!", "letters/b.liquid": "<{{ x }}>" } } });
  assert.equal(await call(renderTemplate, { template_file: "/data/letters/a.liquid", data: { x: 1 } }, host), "<1>!");
});

test("saves a new file and overwrites none", async () => {
  const host = testHost({ stores: { data: {} } });
  const args = { template: "{{ x }}", data: { x: "ñ" }, save_as: "/data/new.txt" };
  assert.deepEqual(await call(renderTemplate, args, host), { saved: "/data/new.txt", characters: 1 });
  assert.equal(host.file("data", "new.txt"), "ñ");
  await assert.rejects(call(renderTemplate, args, host), { message: "there is a file at `/data/new.txt` already" });
});

test("parts cannot leave the store", async () => {
  const host = testHost({ stores: { data: { "a.liquid": "{% render '../b' %}" } } });
  await assert.rejects(call(renderTemplate, { template_file: "/data/a.liquid" }, host), { code: "invalid-path" });
});

test("refuses a file that is too large before it is read", async () => {
  const host = testHost({ stores: { data: { "a.liquid": new Uint8Array(4 * 1024 * 1024 + 1) } } });
  await assert.rejects(call(renderTemplate, { template_file: "/data/a.liquid" }, host), {
    message: "`/data/a.liquid` has 4194305 bytes; the most is 4194304",
  });
});
