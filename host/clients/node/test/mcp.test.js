// Tools on a server of the MCP SDK, called by its client in this process.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { Cofferdam } from "cofferdam";
import { addTools } from "cofferdam/mcp";

import { CRASH, MANY, start, TEXT } from "./hosts.js";

/** @import { TestContext } from "node:test" */
/** @import { ElicitResult } from "@modelcontextprotocol/sdk/types.js" */

/** @type {Cofferdam} */
let host;

before(async () => {
  host = await Cofferdam.start({ plugins: [TEXT, CRASH, MANY] });
});
after(() => host.close());

/**
 * Returns a client of a server with the tools of a host. With `answer`, it can be asked.
 *
 * @param {TestContext} t
 * @param {Cofferdam} host
 * @param {(message: string) => ElicitResult} [answer]
 */
async function connect(t, host, answer) {
  const about = { name: "test", version: "1" };
  const server = new Server(about);
  addTools(server, host);
  const capabilities = answer ? { elicitation: {} } : {};
  const client = new Client(about, { capabilities });
  if (answer) {
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer(params.message));
  }
  const [ofClient, ofServer] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(ofServer), client.connect(ofClient)]);
  t.after(() => client.close());
  return client;
}

test("calls and errors", async (t) => {
  const client = await connect(t, host);
  // The client checks structured results by the schemas of listed tools.
  await client.listTools();
  const text = '{"words":2,"lines":1,"characters":5,"longest":"to"}';
  const counted = await client.callTool({ name: "word_count", arguments: { text: "to be" } });
  assert.deepEqual(counted, {
    content: [{ type: "text", text }],
    structuredContent: JSON.parse(text),
  });
  assert.deepEqual(await client.callTool({ name: "ok" }), {
    content: [{ type: "text", text: "ok" }],
  });
  for (const [name, args, expected] of /** @type {const} */ ([
    ["fail", { message: "no" }, /"message":"no"/],
    ["panic", {}, /Trap\.Unreachable/],
    ["word_count", {}, /Required argument 'text'/],
    ["word_cuont", {}, /there is no tool called/],
  ])) {
    const failed = await client.callTool({ name, arguments: args });
    assert.equal(failed.isError, true);
    assert.match(JSON.stringify(failed.content).replaceAll("\\", ""), expected);
  }
});

test("clients see the declarations", async (t) => {
  const client = await connect(t, host);
  const { tools } = await client.listTools();
  const shown = new Map(tools.map((tool) => [tool.name, tool]));
  assert.equal(shown.size, host.tools.length);
  for (const tool of host.tools) {
    const declared = shown.get(tool.name);
    assert.equal(declared?.description, tool.description);
    assert.deepEqual(declared?.inputSchema, tool.inputSchema);
    assert.equal(declared?.annotations?.readOnlyHint, tool.annotations.readOnly ?? undefined);
  }
  assert.equal(shown.get("word_count")?.title, "Count words");
  assert.equal(shown.get("word_count")?.outputSchema?.type, "object");
});

test("images, audio and resources", async (t) => {
  const client = await connect(t, host);
  const kinds = [];
  for (const name of [
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
  ]) {
    const { content } = await client.callTool({ name });
    kinds.push(Object(content).map((/** @type {{ type: string }} */ { type }) => type));
  }
  assert.deepEqual(kinds, [["image"], ["audio"], ["resource"], ["text", "image", "resource"]]);
});

test("progress and cancellation", async (t) => {
  const client = await connect(t, host);
  /** @type {number[]} */
  const seen = [];
  await client.callTool({ name: "test_tool_with_progress" }, undefined, {
    onprogress: ({ progress }) => seen.push(progress),
  });
  assert.deepEqual(seen, [0, 50, 100]);
  const started = Date.now();
  const options = { signal: AbortSignal.timeout(200) };
  const params = { name: "spin" };
  await assert.rejects(client.callTool(params, undefined, options));
  await host.close();
  assert.ok(Date.now() - started < 5000);
  await assert.rejects(client.callTool({ name: "ok" }), /the host is closed/);
  host = await Cofferdam.start({ plugins: CRASH });
});

for (const [name, reply, isDeleted] of /** @type {const} */ ([
  ["approved", { action: "accept", content: { allow: true } }, true],
  ["refused", { action: "accept", content: { allow: false } }, false],
  ["not answered", { action: "cancel" }, false],
])) {
  test(`a call that is ${name}`, async (t) => {
    const files = await start(t, { files: "memory", approve: () => !isDeleted });
    const args = { file_name: "a.txt" };
    await files.call("file_access_save_file", { ...args, content: "a" });
    /** @type {string[]} */
    const asked = [];
    const client = await connect(t, files, (message) => {
      asked.push(message);
      return reply;
    });
    const ended = await client.callTool({ name: "file_access_delete_file", arguments: args });
    assert.equal(ended.isError ?? false, !isDeleted);
    assert.deepEqual(asked, ['Call file_access_delete_file with {"file_name":"a.txt"}?']);
    const read = await files.run("file_access_read_file", args);
    assert.equal(read.text === "a", !isDeleted);
  });
}

test("the host decides for clients that cannot be asked", async (t) => {
  const params = { name: "file_access_delete_file", arguments: { file_name: "a.txt" } };
  const save = { ...params.arguments, content: "a" };
  const strict = await start(t, { files: "memory" });
  await strict.call("file_access_save_file", save);
  const refused = await (await connect(t, strict)).callTool(params);
  assert.equal(refused.isError, true);
  assert.match(JSON.stringify(refused.content), /has to be approved/);
  const lax = await start(t, { files: "memory", approve: () => true });
  await lax.call("file_access_save_file", save);
  assert.equal((await (await connect(t, lax)).callTool(params)).isError, undefined);
});

test("an `McpServer`", () => {
  const server = new McpServer({ name: "test", version: "1" });
  addTools(server.server, host);
});
