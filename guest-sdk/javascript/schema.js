/**
 * Schemas in code: each `Schema` contains a JSON Schema, and TypeScript knows the type of its
 * values.
 */

import { jsonObject } from "./checked.js";
import { SAFE } from "./numbers.js";

/**
 * A JSON Schema, and whether the property that it describes is required. Immutable: methods return
 * a changed copy.
 */
export class Schema {
  #json;
  #isRequired;

  constructor(json, isRequired = true) {
    this.#json = json;
    this.#isRequired = isRequired;
  }

  get isRequired() {
    return this.#isRequired;
  }

  toJSON() {
    return this.#json;
  }

  describe(description) {
    return this.#with({ description });
  }

  default(value) {
    return new Schema({ ...this.#json, default: value }, false);
  }

  optional() {
    return new Schema(this.#json, false);
  }

  nullable() {
    const { type, enum: choices, description, ...rest } = this.#json;
    if (type === undefined || choices !== undefined) {
      const { description, ...bare } = this.#json;
      return new Schema({ ...described(description), anyOf: [bare, { type: "null" }] }, false);
    }
    return new Schema({ type: [type, "null"].flat(), ...described(description), ...rest, ...marks(this.#json) }, false);
  }

  min(least) {
    return this.#with({ [bound(this.#json, "min")]: least });
  }

  max(most) {
    return this.#with({ [bound(this.#json, "max")]: most });
  }

  pattern(pattern) {
    return this.#with({ pattern: pattern instanceof RegExp ? pattern.source : pattern });
  }

  examples(...examples) {
    return this.#with({ examples });
  }

  #with(more) {
    return new Schema({ ...this.#json, ...more }, this.#isRequired);
  }
}

export const s = Object.freeze({
  string: (description) => new Schema({ type: "string", ...described(description) }),
  number: (description) => new Schema({ type: "number", ...described(description) }),
  integer: (description) => new Schema({ type: "integer", ...described(description), [SAFE]: true }),
  int64: (description) => new Schema({ type: "integer", ...described(description) }),
  boolean: (description) => new Schema({ type: "boolean", ...described(description) }),
  enum: (choices, description) => new Schema({ type: "string", enum: [...choices], ...described(description) }),
  array: (items, description) => new Schema({ type: "array", ...described(description), items: plain(items) }),
  map: (values, description) =>
    new Schema({ type: "object", ...described(description), additionalProperties: plain(values) }),
  object: (properties, description) => new Schema(object(properties, description)),
  any: (description) => new Schema({ ...described(description) }),
  json: (schema) => new Schema(jsonObject(schema, "the schema of `s.json`")),
});

/** Returns the JSON Schema of a `Schema`, or a JSON Schema as it is. */
export function plain(schema) {
  return schema instanceof Schema ? schema.toJSON() : schema;
}

function object(properties, description) {
  const entries = Object.entries(properties);
  const required = entries.filter(([, schema]) => schema.isRequired).map(([name]) => name);
  return {
    type: "object",
    ...described(description),
    properties: Object.fromEntries(entries.map(([name, schema]) => [name, plain(schema)])),
    ...(required.length > 0 ? { required } : {}),
  };
}

function described(description) {
  return description === undefined ? {} : { description };
}

/** Returns the symbol properties that spreading loses if single keys are removed first. */
function marks(json) {
  return json[SAFE] ? { [SAFE]: true } : {};
}

/** Returns the keyword for the bound of values of a type. */
function bound({ type }, side) {
  const kind = [type].flat()[0];
  const names = { string: "Length", array: "Items", number: "imum", integer: "imum" };
  if (!Object.hasOwn(names, kind)) throw new TypeError(`a ${kind ?? "value of any type"} has no ${side}`);
  return side + names[kind];
}
