/**
 * The caller: an MCP client with its user and its model, or a user at a terminal.
 *
 * Each kind of question needs a grant, which the manifest of the plugin requests:
 * `ask = ["form", "sample", "roots"]`. Logging needs none. Many clients cannot answer questions:
 * check `canAsk` first, and work without an answer if it returns false.
 *
 * Some clients cannot be asked in the middle of a call. For those, the host ends the call when it
 * asks, and **runs it again from its beginning** when it has the answers; earlier questions are
 * then answered at once. Therefore do the same each time up to the last question, and cause side
 * effects only after it.
 *
 * ```ts
 * import { s } from "cofferdam";
 * import { askForm, log } from "cofferdam/client";
 *
 * const reply = askForm("Delete all 12 notes?", s.object({ really: s.boolean() }));
 * if (reply.outcome !== "accepted" || reply.value.really !== true) return "nothing was deleted";
 * log("info", "deleting 12 notes");
 * ```
 *
 * @module cofferdam/client
 */

import { JsonSchema, Schema, ToolFailure } from "./index.js";

export type Kind = "form" | "sample" | "roots";

/** Severity of a log line, as in MCP and syslog. */
export type Level = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";

/**
 * Reply of the user to a form. The value is untrusted input that the host has not checked, whatever
 * its type says.
 */
export type Reply<T = unknown> =
  | { outcome: "accepted"; value: Partial<T> }
  | { outcome: "declined" }
  | { outcome: "cancelled" };

/** Location in which the client works. It is only a name and grants nothing. */
export interface Root {
  /** URI, for example `file:///home/user/project`. */
  uri: string;
  /** Display name. */
  name: string | undefined;
}

/**
 * Question for `ask`. Its name has 1 to 64 characters from `A-Z a-z 0-9 _ -` and is unique within
 * the call; the host chooses one if it is missing.
 */
export type Question =
  | { kind: "form"; name?: string; message: string; schema: Schema<any, boolean> | JsonSchema }
  | { kind: "sample"; name?: string; parameters: object }
  | { kind: "roots"; name?: string };

/** Returns whether questions of this kind are granted and the client can answer them. */
export function canAsk(kind: Kind): boolean;

/**
 * Asks the user to fill in a form. The properties of the object are strings, numbers, booleans, or
 * enums of strings. Never use it to ask for a password or a key: the client shows the input and may
 * store it.
 *
 * @throws {ClientError}
 */
export function askForm<T>(message: string, schema: Schema<T, boolean>): Reply<T>;
export function askForm(message: string, schema: JsonSchema): Reply<Record<string, unknown>>;

/**
 * Asks the client's model with one prompt and returns the text of its answer.
 *
 * @throws {ClientError}
 */
export function sample(prompt: string, maxTokens: number): string;

/**
 * Asks the client's model with the parameters of MCP's `sampling/createMessage`, and returns its
 * complete result.
 *
 * @throws {ClientError}
 */
export function sampleWith(parameters: object): any;

/**
 * Returns the locations in which the client works.
 *
 * @throws {ClientError}
 */
export function roots(): Root[];

/**
 * Asks several questions at once and returns the answers in the same order: a `Reply`, a message or
 * roots. A call may ask 64 questions in total.
 *
 * @throws {ClientError} if any of the answers is missing.
 */
export function ask(questions: Question[]): any[];

/**
 * Sends a log line to the client, which may show it to the user. Output of `console` stays with the
 * host.
 */
export function log(level: Level, message: string): void;

/**
 * Reason of a `ClientError`:
 *
 * - `unsupported`: the question cannot be asked.
 * - `denied`: the plugin has no grant for it. The message says how to grant it.
 * - `invalid`: the question is invalid.
 * - `limit`: a limit of the host is reached.
 * - `failed`: the client did not answer, or its answer does not match the question.
 */
export type ClientErrorCode = "unsupported" | "denied" | "invalid" | "limit" | "failed";

/** Error of a question. If it is not caught, it is reported to the model. */
export class ClientError extends ToolFailure {
  constructor(code: ClientErrorCode, message: string);
  readonly code: ClientErrorCode;
}
