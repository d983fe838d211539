/** The caller. Documented in `client.d.ts`. */

import host from "#host/client";
import { choice, optionalString, string } from "./checked.js";
import { ToolFailure } from "./failure.js";
import { writeJson } from "./numbers.js";
import { plain } from "./schema.js";

const KINDS = ["form", "sample", "roots"];
const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

export class ClientError extends ToolFailure {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

ClientError.prototype.name = "ClientError";

export function canAsk(kind) {
  return host.canAsk(choice(kind, KINDS, "`kind`"));
}

export function askForm(message, schema) {
  return ask([{ kind: "form", message, schema }])[0];
}

export function sample(prompt, maxTokens) {
  const message = { role: "user", content: { type: "text", text: prompt } };
  const texts = [sampleWith({ messages: [message], maxTokens }).content].flat().map((item) => item?.text);
  const found = texts.filter((text) => typeof text === "string");
  if (found.length === 0) throw mismatch();
  return found.join("\n");
}

export function sampleWith(parameters) {
  return ask([{ kind: "sample", parameters }])[0];
}

export function roots() {
  return ask([{ kind: "roots" }])[0];
}

export function ask(questions) {
  const all = questions.map(asked);
  const answers = answered(() => host.ask(all));
  return questions.map(({ kind }, index) => understood(kind, answers[index]));
}

export function log(level, message) {
  host.log(choice(level, LEVELS, "the level"), String(message).toWellFormed());
}

function asked({ kind, name, message, schema, parameters }) {
  const request = { tag: choice(kind, KINDS, "`kind`") };
  if (kind === "form") request.val = { message: string(message, "`message`"), schema: writeJson(plain(schema)) };
  if (kind === "sample") request.val = writeJson(parameters);
  return { name: optionalString(name, "`name`"), request };
}

function answered(act) {
  try {
    return act();
  } catch (error) {
    const { tag, val } = error.payload ?? {};
    if (tag === undefined) throw error;
    throw new ClientError(tag, val ?? "the client cannot be asked this");
  }
}

function understood(kind, answer) {
  switch (`${kind} ${answer?.tag}`) {
    case "form accepted":
      return { outcome: "accepted", value: parsed(answer.val) };
    case "form declined":
    case "form cancelled":
      return { outcome: answer.tag };
    case "sample message":
      return parsed(answer.val);
    case "roots roots":
      return answer.val.map(({ uri, name }) => ({ uri, name: name ?? undefined }));
    default:
      throw mismatch();
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw mismatch();
  }
}

function mismatch() {
  return new ClientError("failed", "the client's answer does not fit the question");
}
