// Tools for the AI SDK (`ai`).
//
// A result of several items is the output `{ contents }`, which stays JSON in messages that a
// program stores, and becomes text and files for the model.

import { dynamicTool, jsonSchema } from "ai";

/** @import { ModelMessage, ToolExecutionOptions, ToolSet } from "ai" */
/** @import { Cofferdam, Content, Tool } from "../index.js" */

/** @typedef {ReturnType<NonNullable<ReturnType<typeof dynamicTool>["toModelOutput"]>>} ModelOutput */

/** The SDK shows a model what `toString` of an error returns. */
class CallFailed extends Error {
  /** @override */
  toString() {
    return this.message;
  }
}

/**
 * @param {Cofferdam} host
 * @returns {ToolSet}
 */
export function tools(host) {
  return Object.fromEntries(host.tools.map((tool) => [tool.name, aiTool(host, tool)]));
}

/** @param {Cofferdam} host @param {Tool} tool */
function aiTool(host, tool) {
  return dynamicTool({
    description: tool.description,
    // The host decodes the arguments and names every problem.
    inputSchema: jsonSchema(tool.inputSchema),
    needsApproval: tool.needsApproval,
    metadata: { source: tool.source },
    execute: (input, options) => execute(host, tool.name, input, options),
    toModelOutput: ({ output }) => modelOutput(output),
  });
}

/**
 * @param {Cofferdam} host
 * @param {string} name
 * @param {any} input
 * @param {Pick<ToolExecutionOptions<unknown>, "abortSignal" | "messages" | "toolCallId">} options
 */
async function execute(host, name, input, { abortSignal, messages, toolCallId }) {
  const approve = isApproved(messages, toolCallId) ? true : undefined;
  const result = await host.run(name, input, { signal: abortSignal, approve });
  const cause = result.error();
  if (cause !== undefined) throw new CallFailed(cause.text, { cause });
  return result.value === undefined ? { contents: result.contents } : result.value;
}

/**
 * Returns whether the user has approved a call. Only answers in the last message are about calls
 * that run next.
 *
 * @param {readonly ModelMessage[]} messages
 * @param {string} toolCallId
 */
function isApproved(messages, toolCallId) {
  const last = messages.at(-1);
  if (last?.role !== "tool") return false;
  const approvals = messages
    .flatMap(({ role, content }) => (role === "assistant" && Array.isArray(content) ? content : []))
    .filter((part) => part.type === "tool-approval-request" && part.toolCallId === toolCallId)
    .map((part) => (part.type === "tool-approval-request" ? part.approvalId : undefined));
  return last.content.some(
    (part) =>
      part.type === "tool-approval-response" &&
      part.approved &&
      approvals.includes(part.approvalId),
  );
}

/**
 * @param {any} output
 * @returns {ModelOutput}
 */
function modelOutput(output) {
  if (typeof output === "string") return { type: "text", value: output };
  if (!Array.isArray(output?.contents)) return { type: "json", value: output };
  return { type: "content", value: output.contents.map(modelContent) };
}

/**
 * @param {Content} item
 * @returns {any}
 */
function modelContent(item) {
  switch (item.type) {
    case "text":
      return { type: "text", text: item.text };
    case "blob":
      return file(item.data, item.mediaType);
    case "resource":
      if (item.data !== undefined) return file(item.data, item.mediaType);
      return { type: "text", text: item.text ?? item.uri };
    case "link":
      return { type: "text", text: item.uri };
    default:
      return { type: "text", text: JSON.stringify(item.json) };
  }
}

/** @param {string} data @param {string | null} mediaType */
function file(data, mediaType) {
  const type = mediaType ?? "application/octet-stream";
  return { type: "file", data: { type: "data", data }, mediaType: type };
}
