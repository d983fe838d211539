/** Definition of one tool. */

import { plain } from "./schema.js";

/** Names that the host and the clients of models accept. */
const NAME = /^[A-Za-z0-9_.-]{1,128}$/;
/** Names of groups that the host accepts. */
const GROUP = /^[A-Za-z0-9_.-]{1,64}$/;
const DESCRIPTION_BYTES_MAX = 4096;
const OPTIONS = ["name", "title", "description", "parameters", "output", "annotations", "group", "run"];
const HINTS = ["readOnly", "destructive", "idempotent", "openWorld", "longRunning"];

/** A checked tool, made by `tool`. */
export class Tool {
  constructor({ name, title, description, parameters, output, annotations = {}, group, run }) {
    this.name = name;
    this.title = title;
    this.description = description;
    this.parameters = plain(parameters) ?? { type: "object", properties: {} };
    this.output = plain(output);
    this.annotations = annotations;
    this.group = group;
    this.run = run;
    Object.freeze(this);
  }
}

export function tool(options) {
  check(options);
  return new Tool(options);
}

/**
 * Checks the options. An error that would make the host reject the plugin, or the tool unusable for
 * models, ends the build.
 */
function check(options) {
  const { name, title = "", description, parameters, annotations = {}, group, run } = options;
  if (typeof name !== "string" || !NAME.test(name)) {
    throw new TypeError(`a tool's name is 1 to 128 characters out of A-Z a-z 0-9 _ . -, not ${JSON.stringify(name)}`);
  }
  const wrong = (text) => {
    throw new TypeError(`tool \`${name}\`: ${text}`);
  };
  if (typeof title !== "string") wrong("`title` is not a string");
  if (typeof description !== "string" || description.trim() === "") {
    wrong("a `description` is missing, and a model knows nothing else of the tool");
  }
  const bytes = new TextEncoder().encode(description).length;
  if (bytes > DESCRIPTION_BYTES_MAX) wrong(`the description has more than ${DESCRIPTION_BYTES_MAX} bytes: ${bytes}`);
  if (group !== undefined && (typeof group !== "string" || !GROUP.test(group))) {
    wrong(`\`group\` is 1 to 64 characters out of A-Z a-z 0-9 _ . -, not ${JSON.stringify(group)}`);
  }
  if (typeof run !== "function") wrong("`run` is not a function");
  if (parameters !== undefined && plain(parameters)?.type !== "object") wrong("`parameters` is not the schema of an object");
  for (const option of Object.keys(options)) if (!OPTIONS.includes(option)) wrong(`there is no option \`${option}\``);
  for (const [hint, value] of Object.entries(annotations)) {
    if (!HINTS.includes(hint)) wrong(`there is no annotation \`${hint}\``);
    if (!["boolean", "undefined"].includes(typeof value)) wrong(`the annotation \`${hint}\` is neither true nor false`);
  }
}
