/**
 * Calls tools as the host does, without a host and without a component, from any test runner on Node 20 or newer.
 *
 * ```ts
 * import assert from "node:assert/strict";
 * import { test } from "node:test";
 * import { call, testHost } from "cofferdam/testing";
 * import { countLines } from "../src/main.js";
 *
 * test("counts the lines of a file", async () => {
 *   const host = testHost({ stores: { data: { "a.txt": "one\ntwo\n" } } });
 *   assert.equal(await call(countLines, { path: "a.txt" }, host), 2);
 * });
 * ```
 *
 * Arguments get their defaults, undeclared ones are dropped, and a required one that is missing is a failure, as in the host.
 * What else the host does with what a model sends (converting `"2"` to 2, checking it against the schema) does not happen.
 * A test runs in Node: it has globals that a component has not. `cofferdam test` calls the component itself.
 *
 * @module cofferdam/testing
 */

import { Annotations, Content, JsonSchema, Tool } from "./index.js";
import { Level, Question } from "./client.js";

/**
 * Calls a tool and gives the value that the model would see: null, a text, or a JSON value; several items come as an array, a
 * blob as `{"media_type", "bytes"}` with its length, a resource as `{"uri", "media_type", "text"}`, a link as `{"uri", "name",
 * "media_type"}`. It rejects with what the tool throws.
 */
export function call<Args>(tool: Tool<Args>, args?: Partial<Args>, host?: TestHost): Promise<any>;

/** Calls a tool and gives the items of its result. */
export function contents<Args>(tool: Tool<Args>, args?: Partial<Args>, host?: TestHost): Promise<Content[]>;

/** What the tool publishes. */
export function definition(tool: Tool): {
  name: string;
  title: string | undefined;
  description: string;
  inputSchema: JsonSchema;
  outputSchema: JsonSchema | undefined;
  annotations: Annotations;
};

/** What a host grants, and what it answers. Everything may be left out: then nothing is granted. */
export interface TestHostOptions {
  /** Files by path, in stores by name. */
  stores?: Record<string, Record<string, string | Uint8Array>>;
  /** The names of stores that may only be read. */
  readOnly?: string[];
  secrets?: Record<string, string>;
  /** Other tools: those of a plugin, or functions, none of them asynchronous. */
  tools?: Record<string, Tool | ((args: any) => unknown)>;
  id?: string;
  session?: string;
  timeLeftMs?: number;
  cancelled?: () => boolean;
  /** Answers questions: a `Reply` for a form, a message, or roots. Without it nobody can be asked. */
  answer?: (question: Question) => unknown;
}

/** A host for the calls of a test. Its stores keep what tools write, also when a call fails. */
export interface TestHost {
  /** The text of a file, or undefined. */
  file(store: string, path: string): string | undefined;
  /** What was reported: done, total, message. */
  readonly progress: [number, number | undefined, string | undefined][];
  /** What was said to the client. */
  readonly logged: [Level, string][];
}

export function testHost(options?: TestHostOptions): TestHost;
