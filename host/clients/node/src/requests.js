// Answers to requests of the host: functions, approvals and questions.

import { CofferdamError, ToolFailure } from "./errors.js";

/** @import { Answer, Approve, Ask, ProgramFunction, RequestOptions } from "./index.js" */
/** @import { Message } from "./wire.js" */

/**
 * Functions that answer the requests about a call.
 *
 * @typedef {object} Handlers
 * @property {ReadonlyMap<string, ProgramFunction>} functions
 * @property {Approve | boolean | undefined} approve
 * @property {Approve | boolean | undefined} [approveInner] for the calls of a program of a model
 * @property {Ask | undefined} ask
 */

/**
 * Returns the message that answers a request.
 *
 * @param {Message} request
 * @param {Handlers} handlers
 * @param {RequestOptions} options
 * @returns {Promise<Message>}
 */
export async function answer(request, handlers, options) {
  const { id, tool } = request;
  switch (request.type) {
    case "invoke": {
      const declared = handlers.functions.get(tool);
      if (declared === undefined) throw new CofferdamError(`there is no function \`${tool}\``);
      const value = await declared.execute(request.arguments, options);
      return { type: "returned", id, value: value ?? null };
    }
    case "approve": {
      const approve = (request.program ? handlers.approveInner : handlers.approve) ?? false;
      const allow =
        typeof approve === "boolean"
          ? approve
          : await approve({ tool, arguments: request.arguments }, options);
      return { type: "approved", id, allow: allow === true };
    }
    default: {
      const { kind, parameters } = request;
      const question = { kind, parameters, message: String(parameters.message ?? "") };
      /** @type {Answer} */
      const declined = { action: "decline" };
      return {
        type: "answered",
        id,
        answer: (await handlers.ask?.(question, options)) ?? declined,
      };
    }
  }
}

/**
 * Returns the message that answers a request whose function has thrown an error. A call is not
 * approved then, and a question is canceled.
 *
 * @param {Message} request
 * @param {unknown} error
 * @returns {Message}
 */
export function answerError({ type, id }, error) {
  if (type === "approve") return { type: "approved", id, allow: false };
  if (type === "ask") return { type: "answered", id, answer: { action: "cancel" } };
  if (error instanceof ToolFailure) {
    const { message, suggestion, value } = error;
    const failure = { message: String(message), suggestion: asText(suggestion), value };
    return { type: "returned", id, failure };
  }
  const [name, message] =
    error instanceof Error ? [error.name, error.message] : [typeof error, error];
  return { type: "returned", id, error: { type: String(name), message: String(message) } };
}

/**
 * Returns a value as text, if there is one.
 *
 * @param {unknown} value
 */
function asText(value) {
  return value === undefined || value === null ? undefined : String(value);
}

/**
 * Returns the declaration of a function.
 *
 * @param {ProgramFunction} tool
 */
export function declaration(tool) {
  const { readOnly, destructive, idempotent, openWorld, longRunning } = tool.annotations ?? {};
  return {
    name: tool.name,
    title: tool.title,
    description: tool.description,
    input_schema: tool.inputSchema,
    output_schema: tool.outputSchema,
    annotations: {
      read_only: readOnly,
      destructive,
      idempotent,
      open_world: openWorld,
      long_running: longRunning,
    },
  };
}
