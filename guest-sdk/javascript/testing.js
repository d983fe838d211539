/** Calls tools as the host does, without a host. Documented in `testing.d.ts`. */

import { visible } from "./content.js";
import { ToolFailure } from "./failure.js";
import { readJson, writeJson } from "./numbers.js";
import { run } from "./plugin.js";
import { decoded } from "./testing/arguments.js";
import { within } from "./testing/current.js";
import { TestHost } from "./testing/host.js";

export async function call(tool, args = {}, host = testHost()) {
  return visible(await contents(tool, args, host));
}

export async function contents(tool, args = {}, host = testHost()) {
  // Converted to JSON and back: a tool never shares an object with its caller, so a test must not
  // either.
  const supplied = decoded(tool, readJson(writeJson(args)));
  return within(host, async () => run(tool, supplied));
}

export function definition({ name, title, description, parameters, output, annotations }) {
  const asJson = (schema) => (schema === undefined ? undefined : readJson(writeJson(schema)));
  return { name, title, description, inputSchema: asJson(parameters), outputSchema: asJson(output), annotations };
}

export function testHost(options = {}) {
  const callOther = (tool, args) => {
    const outcome = tool.run === undefined ? tool(args) : run(tool, decoded(tool, args));
    if (typeof outcome?.then === "function") throw new ToolFailure("an asynchronous tool cannot be called by a tool in a test");
    return outcome;
  };
  return new TestHost(options, callOther);
}
