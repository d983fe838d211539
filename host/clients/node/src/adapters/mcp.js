// Tools for servers of the MCP SDK (`@modelcontextprotocol/sdk`).

import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

/** @import { Server } from "@modelcontextprotocol/sdk/server/index.js" */
/** @import { CallToolResult, ContentBlock, Tool as ServerTool } from "@modelcontextprotocol/sdk/types.js" */
/** @import { Approval, Cofferdam, Content, Progress, RequestOptions, Result, Tool } from "../index.js" */

/** Maximum time in which a user approves a call. */
const APPROVAL_MS_MAX = 10 * 60 * 1000;

/** @param {Server} server @param {Cofferdam} host */
export function addTools(server, host) {
  const declared = host.tools.map(serverTool);
  const withOutput = new Set(declared.filter((tool) => tool.outputSchema).map(({ name }) => name));
  server.registerCapabilities({ tools: {} });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: declared }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, request) => {
    const { name, arguments: args, _meta } = params;
    const { requestId, signal } = request;
    const token = _meta?.progressToken;
    /** @param {Progress} progress */
    const report = ({ done, total, message }) => {
      const values = { progress: done, ...present({ total, message }) };
      const method = "notifications/progress";
      const params = { ...values, progressToken: token ?? "" };
      // A client that has gone receives no progress.
      request.sendNotification({ method, params }).catch(() => {});
    };
    const result = await host.run(name, args, {
      signal,
      approve: approver(server, requestId),
      onProgress: token === undefined ? undefined : report,
    });
    return callResult(result, withOutput.has(name));
  });
}

/**
 * @param {Tool} tool
 * @returns {ServerTool}
 */
function serverTool({ name, title, description, inputSchema, outputSchema, annotations }) {
  const { readOnly, destructive, idempotent, openWorld } = annotations;
  const hints = {
    readOnlyHint: readOnly,
    destructiveHint: destructive,
    idempotentHint: idempotent,
    openWorldHint: openWorld,
  };
  // Only results that are objects can be structured.
  const output = outputSchema?.type === "object" ? outputSchema : undefined;
  const tool = { name, description, inputSchema, annotations: present(hints) };
  return /** @type {ServerTool} */ ({ ...tool, ...present({ title, outputSchema: output }) });
}

/**
 * Returns the function that asks the client, or `undefined` if the client answers no questions.
 *
 * @param {Server} server
 * @param {string | number} requestId
 */
function approver(server, requestId) {
  if (server.getClientCapabilities()?.elicitation === undefined) return undefined;
  /** @param {Approval} call @param {RequestOptions} options */
  return async (call, { signal }) => {
    const message = `Call ${call.tool} with ${JSON.stringify(call.arguments)}?`;
    const properties = { allow: { type: /** @type {const} */ ("boolean"), title: "Allow" } };
    const reply = await server.elicitInput(
      { message, requestedSchema: { type: "object", properties, required: ["allow"] } },
      { signal, timeout: APPROVAL_MS_MAX, relatedRequestId: requestId },
    );
    return reply.action === "accept" && reply.content?.allow === true;
  };
}

/**
 * @param {Result} result
 * @param {boolean} hasOutputSchema
 * @returns {CallToolResult}
 */
function callResult(result, hasOutputSchema) {
  if (result.outcome !== "ok") {
    const text = result.error()?.text ?? result.text;
    return { content: [{ type: "text", text }], isError: true };
  }
  const structuredContent = hasOutputSchema ? result.value : undefined;
  const structured = /** @type {Record<string, unknown> | undefined} */ (structuredContent);
  return { content: result.contents.map(block), ...present({ structuredContent: structured }) };
}

/**
 * @param {Content} item
 * @returns {ContentBlock}
 */
function block(item) {
  switch (item.type) {
    case "text":
      return { type: "text", text: item.text };
    case "json":
      return { type: "text", text: JSON.stringify(item.json) };
    case "blob":
      return blob(item.data, item.mediaType);
    case "link": {
      const { uri, name, mediaType } = item;
      return { type: "resource_link", uri, name: name ?? uri, ...present({ mimeType: mediaType }) };
    }
    default: {
      const { uri, mediaType, text, data } = item;
      const contents = data === undefined ? { uri, text: text ?? "" } : { uri, blob: data };
      return { type: "resource", resource: { ...contents, ...present({ mimeType: mediaType }) } };
    }
  }
}

/**
 * @param {string} data
 * @param {string} mimeType
 * @returns {ContentBlock}
 */
function blob(data, mimeType) {
  if (mimeType.startsWith("image/")) return { type: "image", data, mimeType };
  if (mimeType.startsWith("audio/")) return { type: "audio", data, mimeType };
  return { type: "resource", resource: { uri: "cofferdam:result", blob: data, mimeType } };
}

/**
 * Returns an object without the members that are null or undefined.
 *
 * @template {object} Members
 * @param {Members} members
 * @returns {{ [Name in keyof Members]?: NonNullable<Members[Name]> }}
 */
function present(members) {
  const entries = Object.entries(members).filter(([, value]) => value != null);
  return /** @type {any} */ (Object.fromEntries(entries));
}
