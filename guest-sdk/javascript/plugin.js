/** Combines several tools into one plugin. */

import { returned } from "./content.js";
import { ToolFailure } from "./failure.js";
import { Tool } from "./tool.js";

const TOOLS_MAX = 128;

/** The checked tools of a plugin, made by `plugin`. */
export class Plugin {
  #tools;

  constructor(tools) {
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
    Object.freeze(this);
  }

  get tools() {
    return [...this.#tools.values()];
  }

  /** Returns the tool called `name`. */
  tool(name) {
    const found = this.#tools.get(name);
    if (found === undefined) throw new ToolFailure(`this plugin has no tool \`${name}\``, { transient: false });
    return found;
  }
}

export function plugin(...tools) {
  if (tools.length === 0) throw new TypeError("a plugin has at least one tool: `plugin(wordCount)`");
  if (tools.length > TOOLS_MAX) throw new TypeError(`a plugin has at most ${TOOLS_MAX} tools`);
  const names = new Set();
  for (const tool of tools) {
    if (!(tool instanceof Tool)) throw new TypeError("`plugin` takes what `tool({…})` returns");
    // Models and users confuse names that differ only by case.
    const name = tool.name.toLowerCase();
    if (names.has(name)) throw new TypeError(`two tools of this plugin have the name \`${tool.name}\``);
    names.add(name);
  }
  return new Plugin(tools);
}

/** Runs a tool. Returns its contents, or a promise of them if `run` has returned a promise. */
export function run(tool, args) {
  const value = tool.run(args);
  return typeof value?.then === "function" ? value.then(returned) : returned(value);
}
