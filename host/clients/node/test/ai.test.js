// Tools of the AI SDK, called by a scripted model.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { generateText, isStepCount, streamText } from "ai";
import { MockLanguageModelV4, simulateReadableStream } from "ai/test";
import { Cofferdam, RefusedCall, ToolFailure } from "cofferdam";
import { tools } from "cofferdam/ai";

import { CRASH, MANY, start, TEXT } from "./hosts.js";

/** @import { TestContext } from "node:test" */
/** @import { LanguageModelV4Content, LanguageModelV4FinishReason, LanguageModelV4StreamPart } from "@ai-sdk/provider" */
/** @import { ModelMessage } from "ai" */

/** @type {Cofferdam} */
let host;

before(async () => {
  host = await Cofferdam.start({ plugins: [TEXT, CRASH, MANY] });
});
after(() => host.close());

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/**
 * Returns a model that calls tools in its first answer and says `done` in the next.
 *
 * @param {readonly [tool: string, args: unknown][]} calls
 */
function scripted(calls) {
  /** @type {LanguageModelV4Content[]} */
  const made = calls.map(([toolName, args], index) => ({
    type: "tool-call",
    toolCallId: `call-${index}`,
    toolName,
    input: JSON.stringify(args),
  }));
  /** @type {LanguageModelV4Content[][]} */
  const answers = [made, [{ type: "text", text: "done" }]];
  const next = () => {
    const content = answers.shift() ?? assert.fail("the model has no answer");
    const unified = content === made ? "tool-calls" : "stop";
    /** @type {LanguageModelV4FinishReason} */
    const finishReason = { unified, raw: unified };
    return { content, finishReason, usage: USAGE };
  };
  return new MockLanguageModelV4({
    doGenerate: async () => ({ ...next(), warnings: [] }),
    doStream: async () => {
      const { content, finishReason, usage } = next();
      /** @type {LanguageModelV4StreamPart[]} */
      const chunks = [{ type: "stream-start", warnings: [] }];
      for (const part of content) {
        if (part.type === "tool-call") chunks.push(part);
      }
      chunks.push({ type: "finish", finishReason, usage });
      return { stream: simulateReadableStream({ chunks }) };
    },
  });
}

/**
 * Returns the results that the model has received, as JSON of the provider's form.
 *
 * @param {MockLanguageModelV4} model
 */
function received(model) {
  const prompt = model.doGenerateCalls.at(-1)?.prompt ?? model.doStreamCalls.at(-1)?.prompt ?? [];
  return prompt
    .flatMap((message) => (message.role === "tool" ? message.content : []))
    .map((part) => (part.type === "tool-result" ? part.output : part));
}

test("the model gets results, failures and problems of arguments", async () => {
  const model = scripted([
    ["word_count", { text: "to be" }],
    ["ok", {}],
    ["fail", { message: "no" }],
    ["panic", {}],
    ["word_count", { min_length: 1 }],
  ]);
  const { steps, text } = await generateText({
    model,
    prompt: "go",
    tools: tools(host),
    stopWhen: isStepCount(2),
  });
  assert.equal(text, "done");
  const [counted, string, failed, panicked, invalid] = received(model);
  const value = { words: 2, lines: 1, characters: 5, longest: "to" };
  assert.deepEqual(counted, { type: "json", value });
  assert.deepEqual(string, { type: "text", value: "ok" });
  const failure = '{"error":{"message":"no","suggestion":"call `ok` instead"}}';
  assert.deepEqual(failed, { type: "error-text", value: failure });
  assert.match(JSON.stringify(panicked), /error-text.*An unexpected error .*Trap\.Unreachable/);
  assert.match(JSON.stringify(invalid), /error-text.*Required argument 'text'/);
  const results = steps[0]?.toolResults ?? [];
  assert.deepEqual(results[0]?.output, value);
  assert.deepEqual(results[0]?.toolMetadata, { source: "text" });
  const errors = steps[0]?.content.flatMap((part) =>
    part.type === "tool-error" ? [Object(part.error).cause] : [],
  );
  assert.ok(errors?.[0] instanceof ToolFailure);
  assert.ok(errors?.[2] instanceof RefusedCall);
});

test("the model gets the schemas of the plugins", async () => {
  const model = scripted([]);
  await generateText({ model, prompt: "go", tools: tools(host) });
  const shown = new Map(model.doGenerateCalls[0]?.tools?.map((tool) => [tool.name, tool]));
  assert.equal(shown.size, host.tools.length);
  for (const tool of host.tools) {
    const declared = shown.get(tool.name);
    assert.ok(declared?.type === "function");
    assert.equal(declared.description, tool.description);
    assert.deepEqual(declared.inputSchema, tool.inputSchema);
  }
});

test("files", async () => {
  const model = scripted([
    ["test_multiple_content_types", {}],
    ["test_image_content", {}],
  ]);
  const options = { model, prompt: "go", tools: tools(host), stopWhen: isStepCount(2) };
  const { steps } = await generateText(options);
  const [several, image] = received(model);
  assert.ok(several?.type === "content" && image?.type === "content");
  assert.deepEqual(
    several.value.map(({ type }) => type),
    ["text", "file", "text"],
  );
  assert.ok(image.value[0]?.type === "file" && image.value[0].mediaType === "image/png");
  // Programs store outputs as JSON.
  const output = steps[0]?.toolResults[1]?.output;
  assert.deepEqual(JSON.parse(JSON.stringify(output)), output);
});

test("an aborted run cancels its calls", async () => {
  const started = Date.now();
  const run = generateText({
    model: scripted([["sleep", { ms: 20_000 }]]),
    prompt: "go",
    tools: tools(host),
    stopWhen: isStepCount(2),
    abortSignal: AbortSignal.timeout(200),
  });
  await assert.rejects(run);
  assert.ok(Date.now() - started < 5000);
});

const DELETE = "file_access_delete_file";
const FILE = { file_name: "a.txt" };

/** @param {TestContext} t */
async function startWithFile(t) {
  const host = await start(t, { files: "memory" });
  await host.call("file_access_save_file", { ...FILE, content: "a" });
  const isThere = async () => (await host.run("file_access_read_file", FILE)).text === "a";
  return { host, isThere };
}

for (const approved of [true, false]) {
  for (const isStream of [true, false]) {
    const way = isStream ? "streamText" : "generateText";
    test(`a call that the user has ${approved ? "approved" : "denied"} (${way})`, async (t) => {
      const { host, isThere } = await startWithFile(t);
      const model = scripted([[DELETE, FILE]]);
      const run = async (/** @type {ModelMessage[]} */ messages) => {
        const options = { model, messages, tools: tools(host), stopWhen: isStepCount(2) };
        if (!isStream) return (await generateText(options)).steps;
        const streamed = streamText(options);
        await streamed.consumeStream();
        return await streamed.steps;
      };
      /** @type {ModelMessage[]} */
      const messages = [{ role: "user", content: "go" }];
      const steps = await run(messages);
      const request = steps[0]?.content.find((part) => part.type === "tool-approval-request");
      assert.ok(request?.type === "tool-approval-request");
      assert.equal(await isThere(), true);
      const { approvalId } = request;
      messages.push(...(steps.at(-1)?.response.messages ?? []), {
        role: "tool",
        content: [{ type: "tool-approval-response", approvalId, approved }],
      });
      await run(messages);
      assert.equal(await isThere(), !approved);
    });
  }
}

test("a call that the program lets pass is not approved", async (t) => {
  const { host, isThere } = await startWithFile(t);
  const model = scripted([[DELETE, FILE]]);
  await generateText({
    model,
    prompt: "go",
    tools: tools(host),
    stopWhen: isStepCount(2),
    toolApproval: () => "not-applicable",
  });
  assert.match(JSON.stringify(received(model)), /has to be approved/);
  assert.equal(await isThere(), true);
});
