/** Other granted tools. Documented in `toolbox.d.ts`. */

import host from "#host/toolbox";
import { string } from "./checked.js";
import { Content, visible } from "./content.js";
import { ToolFailure } from "./failure.js";
import { writeJson } from "./numbers.js";

export class ToolboxError extends ToolFailure {
  constructor(code, message, failure = {}) {
    super(message, failure);
    this.code = code;
  }
}

ToolboxError.prototype.name = "ToolboxError";

export function granted() {
  return host.listTools().map(({ inputSchema, outputSchema, title, ...definition }) => ({
    ...definition,
    title: title ?? undefined,
    inputSchema: JSON.parse(inputSchema),
    outputSchema: outputSchema === null || outputSchema === undefined ? undefined : JSON.parse(outputSchema),
  }));
}

export function call(name, args = {}) {
  return visible(contents(name, args));
}

export function contents(name, args = {}) {
  const [asked, json] = [string(name, "the name of the tool"), writeJson(args)];
  try {
    return host.callTool(asked, json).map(({ tag, val }) => new Content(tag, val));
  } catch (error) {
    throw told(error, name);
  }
}

function told(error, name) {
  const { tag, val } = error.payload ?? {};
  switch (tag) {
    case "unknown-tool":
      return new ToolboxError(tag, `no tool \`${name}\` was granted`);
    case "invalid-arguments":
      return new ToolboxError(tag, val);
    case "failed":
      return new ToolboxError(tag, val.message, {
        suggestion: val.suggestion ?? undefined,
        transient: val.transient ?? undefined,
        value: typeof val.value === "string" ? JSON.parse(val.value) : undefined,
      });
    case "ended":
      return new ToolboxError(tag, `the tool \`${name}\` ended as ${val}`);
    case "too-deep":
      return new ToolboxError(tag, "tools call each other too deeply");
    default:
      return error;
  }
}
