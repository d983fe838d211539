/**
 * The one who made the call: an MCP client with its person and its model, or a person at a terminal.
 *
 * Each kind of question needs a grant, which the manifest of the plugin asks for: `ask = ["form", "sample", "roots"]`. Logging
 * needs none. Many clients can be asked nothing: look first with `canAsk`, and do without.
 *
 * Some clients cannot be asked in the middle of a call. For those the host ends the call when it asks, and **runs it again from
 * its beginning** when the answers are there; earlier questions are then answered at once. So do the same up to the last
 * question each time, and act afterwards.
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

/** How much a line matters, as in MCP and syslog. */
export type Level = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";

/** What a person made of a form. The value comes from outside and nothing has checked it, whatever its type says. */
export type Reply<T = unknown> =
  | { outcome: "accepted"; value: Partial<T> }
  | { outcome: "declined" }
  | { outcome: "cancelled" };

/** A place that the client works in. It is a name, and grants nothing. */
export interface Root {
  /** For example `file:///home/user/project`. */
  uri: string;
  /** What to call it. */
  name: string | undefined;
}

/**
 * A question, for `ask`. Its name has 1 to 64 characters out of `A-Z a-z 0-9 _ -` and is unique within the call; the host finds
 * one where there is none.
 */
export type Question =
  | { kind: "form"; name?: string; message: string; schema: Schema<any, boolean> | JsonSchema }
  | { kind: "sample"; name?: string; parameters: object }
  | { kind: "roots"; name?: string };

/** Whether questions of this kind are granted and the client can answer them. */
export function canAsk(kind: Kind): boolean;

/**
 * Asks a person to fill in a form. The properties of the object are texts, numbers, truth values, or choices of texts. Never a
 * way to ask for a password or a key: the client shows and may keep what is typed.
 *
 * @throws {ClientError}
 */
export function askForm<T>(message: string, schema: Schema<T, boolean>): Reply<T>;
export function askForm(message: string, schema: JsonSchema): Reply<Record<string, unknown>>;

/**
 * Asks the client's model one thing and returns the text of its answer.
 *
 * @throws {ClientError}
 */
export function sample(prompt: string, maxTokens: number): string;

/**
 * Asks the client's model with all that MCP's `sampling/createMessage` has, and returns its whole result.
 *
 * @throws {ClientError}
 */
export function sampleWith(parameters: object): any;

/**
 * The places that the client works in.
 *
 * @throws {ClientError}
 */
export function roots(): Root[];

/**
 * Asks several questions at once and returns the answers in the same order: a `Reply`, a message or roots. A call may ask 64
 * questions in all.
 *
 * @throws {ClientError} and then none of the answers is there.
 */
export function ask(questions: Question[]): any[];

/** Says something to the client, which may show it to a person. What `console` prints stays with the host. */
export function log(level: Level, message: string): void;

/**
 * - `unsupported`: nobody can be asked this.
 * - `denied`: the plugin has no grant for it. The message says how to grant it.
 * - `invalid`: the question is not one.
 * - `limit`: a limit of the host.
 * - `failed`: the client was asked and did not answer, or not to the question.
 */
export type ClientErrorCode = "unsupported" | "denied" | "invalid" | "limit" | "failed";

/** There are no answers. One that nobody catches is reported to the model. */
export class ClientError extends ToolFailure {
  constructor(code: ClientErrorCode, message: string);
  readonly code: ClientErrorCode;
}
