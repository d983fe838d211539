/** The export of the component: `cofferdam:plugin/tools` for a plugin. */

import errors from "#host/errors";

import { RequestDenied, ToolFailure } from "../failure.js";
import { readArguments, writeJson } from "../numbers.js";
import { Plugin, run } from "../plugin.js";
import { enter, leave, settled } from "./promise.js";

/** Maximum number of causes of an error that are looked at. */
const CAUSES_MAX = 8;

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
      enter();
      try {
        const tool = plugin.tool(name);
        return settled(run(tool, readArguments(argumentsJson, tool.parameters)));
      } catch (error) {
        throw failure(error);
      } finally {
        leave();
      }
    },
  };
}

/** Converts a tool to WIT, which requires every field. */
export function definition({ name, title, description, parameters, output, annotations, group }) {
  const { readOnly, destructive, idempotent, openWorld, longRunning } = annotations;
  return {
    name,
    title,
    description,
    inputSchema: JSON.stringify(group === undefined ? parameters : { ...parameters, "x-group": group }),
    outputSchema: output === undefined ? undefined : JSON.stringify(output),
    annotations: { readOnly, destructive, idempotent, openWorld, longRunning },
  };
}

/**
 * Converts an exception to a failure: a `ToolFailure` as it is, any other error by its type. Its
 * text and its stack go to the record of the call, and the model sees the text only if the operator
 * shows errors.
 */
function failure(error) {
  const meant = meantFailure(error);
  if (meant !== undefined) {
    const { message, suggestion, transient, value } = meant;
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
  const isError = error instanceof Error;
  const [type, text] = isError ? [String(error.name), String(error.message)] : [typeof error, String(error)];
  const message = errors.unexpected(type.toWellFormed(), text.toWellFormed());
  return { message: message.toWellFormed(), suggestion: undefined, transient: undefined, value: undefined };
}

/** Returns the failure that an error is, or the refused request that is its cause. */
function meantFailure(error) {
  if (error instanceof ToolFailure) return error;
  for (let each = error, depth = 0; each instanceof Error && depth < CAUSES_MAX; each = each.cause, depth++) {
    if (each instanceof RequestDenied) return each;
  }
  return undefined;
}
