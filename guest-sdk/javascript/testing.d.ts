/**
 * Calls tools as the host does, without a host and without a component, from any test runner on
 * Node 20 or newer.
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
 * As in the host, arguments get their defaults, undeclared ones are dropped, and a missing required
 * one is a failure. Other steps of the host do not happen: converting `"2"` to 2, checking against
 * the schema. Tests run in Node, which has globals that a component lacks. `cofferdam test` calls
 * the component itself.
 *
 * @module cofferdam/testing
 */

import { Annotations, Content, JsonSchema, Tool } from "./index.js";
import { Level, Question } from "./client.js";

/**
 * Calls a tool and returns the value that the model would see: null, a string, or a JSON value; for
 * several items, an array. A blob is shown as `{"media_type", "bytes"}` with its length, a resource
 * as `{"uri", "media_type", "text"}`, a link as `{"uri", "name", "media_type"}`. Rejects with the
 * tool's exception.
 */
export function call<Args>(tool: Tool<Args>, args?: Partial<Args>, host?: TestHost): Promise<any>;

/** Calls a tool and returns the items of its result. */
export function contents<Args>(tool: Tool<Args>, args?: Partial<Args>, host?: TestHost): Promise<Content[]>;

/** Returns the definition that the tool publishes. */
export function definition(tool: Tool): {
  name: string;
  title: string | undefined;
  description: string;
  inputSchema: JsonSchema;
  outputSchema: JsonSchema | undefined;
  annotations: Annotations;
};

/** Grants and answers of a host. All are optional; by default nothing is granted. */
export interface TestHostOptions {
  /** Files by path, in stores by name. */
  stores?: Record<string, Record<string, string | Uint8Array>>;
  /** The names of read-only stores. */
  readOnly?: string[];
  secrets?: Record<string, string>;
  /** Other tools: those of a plugin, or functions. None may be asynchronous. */
  tools?: Record<string, Tool | ((args: any) => unknown)>;
  id?: string;
  session?: string;
  timeLeftMs?: number;
  cancelled?: () => boolean;
  /**
   * Answers questions: returns a `Reply` for a form, a message, or roots. If it is missing,
   * questions are unsupported.
   */
  answer?: (question: Question) => unknown;
}

/** A host for the calls of a test. Its stores keep the changes of tools, also of failed calls. */
export interface TestHost {
  /** Returns the content of a file as a string, or undefined. */
  file(store: string, path: string): string | undefined;
  /** The progress reports: done, total, message. */
  readonly progress: [number, number | undefined, string | undefined][];
  /** The log lines for the client. */
  readonly logged: [Level, string][];
}

export function testHost(options?: TestHostOptions): TestHost;
