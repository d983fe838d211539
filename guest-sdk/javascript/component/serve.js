/** What the component exports: `cofferdam:plugin/tools` over a plugin. */

import { ToolFailure } from "../failure.js";
import { readArguments, writeJson } from "../numbers.js";
import { Plugin, run } from "../plugin.js";
import { settled } from "./promise.js";

/**
 * Makes the export. Definitions are made here, while the component is built: asking for them runs no code of the author's. What
 * must not be left over from then is thrown away by `begin` before each call.
 */
export function serve(plugin, begin = () => {}) {
  if (!(plugin instanceof Plugin)) {
    throw new TypeError("the entry file of a plugin ends with `export default plugin(…)`");
  }
  const definitions = plugin.tools.map(definition);
  return {
    listTools: () => definitions,
    callTool(name, argumentsJson) {
      begin();
      try {
        const tool = plugin.tool(name);
        return settled(run(tool, readArguments(argumentsJson, tool.parameters)));
      } catch (error) {
        throw failure(error);
      }
    },
  };
}

/** A tool as WIT has it, which wants every field. */
export function definition({ name, title, description, parameters, output, annotations }) {
  const { readOnly, destructive, idempotent, openWorld, longRunning } = annotations;
  return {
    name,
    title,
    description,
    inputSchema: JSON.stringify(parameters),
    outputSchema: output === undefined ? undefined : JSON.stringify(output),
    annotations: { readOnly, destructive, idempotent, openWorld, longRunning },
  };
}

/** A reported failure as it is; anything else by its type and text, with the stack for the call record alone. */
function failure(error) {
  if (error instanceof ToolFailure) {
    const { message, suggestion, transient, value } = error;
    return {
      message: message.toWellFormed(),
      suggestion: suggestion === undefined || suggestion === null ? undefined : String(suggestion).toWellFormed(),
      transient: typeof transient === "boolean" ? transient : undefined,
      value: value === undefined ? undefined : writeJson(value),
    };
  }
  // The engine throws null where not even an error fits into the memory.
  if (error === null) return failure(new ToolFailure("the tool has used up the memory of the call", { suggestion: "pass less data" }));
  console.error(error);
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return { message: message.toWellFormed(), suggestion: undefined, transient: undefined, value: undefined };
}
