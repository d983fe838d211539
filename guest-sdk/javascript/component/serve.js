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
    inputSchema: writeJson(group === undefined ? parameters : { ...parameters, "x-group": group }),
    outputSchema: output === undefined ? undefined : writeJson(output),
    annotations: { readOnly, destructive, idempotent, openWorld, longRunning },
  };
}

/**
 * Converts an exception to a failure: a `ToolFailure` as it is, any other error by its type. Its
 * text and its stack go to the record of the call, and the model sees the text only if the operator
 * shows errors.
 */
function failure(error) {
  return attempt(() => intended(error)) ?? unexpected(error);
}

/** Returns what a function returns, or `otherwise` if it throws. Properties of an error can throw. */
function attempt(act, otherwise) {
  try {
    return act();
  } catch {
    return otherwise;
  }
}

/** Converts an error that is for the model. Returns undefined for any other. */
function intended(error) {
  const meant = error === null ? nullFailure() : meantFailure(error);
  if (meant === undefined) return undefined;
  const { message, suggestion, transient, value } = meant;
  return {
    message: String(message).toWellFormed(),
    suggestion: suggestion === undefined || suggestion === null ? undefined : String(suggestion).toWellFormed(),
    transient: typeof transient === "boolean" ? transient : undefined,
    // The model sees the message if the value has no JSON form.
    value: value === undefined ? undefined : attempt(() => writeJson(value)),
  };
}

/** The engine throws null if there is not enough memory for an error, and so can a tool. */
function nullFailure() {
  return new ToolFailure("the tool threw `null`, or has used up the memory of the call", { suggestion: "pass less data" });
}

function unexpected(error) {
  attempt(() => console.error(error));
  const text = attempt(() => String(error instanceof Error ? error.message : error), "its text cannot be read");
  const message = errors.unexpected(attempt(() => typeName(error), "Error").toWellFormed(), text.toWellFormed());
  return { message: message.toWellFormed(), suggestion: undefined, transient: undefined, value: undefined };
}

/** Returns the name of an error's class. The error's own properties can contain anything. */
function typeName(error) {
  if (!(error instanceof Error)) return typeof error;
  if (error instanceof DOMException) {
    // The class of a time-out and of an abort. Its names are words of the platform.
    const name = Reflect.get(DOMException.prototype, "name", error);
    if (/^[A-Z][A-Za-z]{2,30}Error$/.test(name)) return name;
  }
  const { name } = Object.getPrototypeOf(error).constructor;
  return typeof name === "string" && name !== "" ? name : "Error";
}

/** Returns the failure that an error is, or the refused request that is its cause. */
function meantFailure(error) {
  if (error instanceof ToolFailure) return error;
  for (let each = error, depth = 0; each instanceof Error && depth < CAUSES_MAX; each = each.cause, depth++) {
    if (each instanceof RequestDenied) return each;
  }
  return undefined;
}
