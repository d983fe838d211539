/** The export of the component: `cofferdam:plugin/tools` for a plugin. */

import { ToolFailure } from "../failure.js";
import { readArguments, writeJson } from "../numbers.js";
import { Plugin, run } from "../plugin.js";
import { settled } from "./promise.js";

/**
 * Makes the export. Definitions are made here, while the component is built, so that listing tools
 * runs no code of the author. `begin` runs before each call and resets state from the build.
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

/** Converts a tool to WIT, which requires every field. */
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

/**
 * Converts an exception to a failure: a `ToolFailure` as it is, any other error by its type and
 * text. The stack goes only to the record of the call.
 */
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
  // The engine throws null if there is not enough memory for an error.
  if (error === null) return failure(new ToolFailure("the tool has used up the memory of the call", { suggestion: "pass less data" }));
  console.error(error);
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return { message: message.toWellFormed(), suggestion: undefined, transient: undefined, value: undefined };
}
