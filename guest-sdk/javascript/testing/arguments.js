/** The inexpensive steps of the host's decoding of arguments. */

import { ToolFailure } from "../failure.js";

/** Fills in defaults, drops undeclared and null properties, and reports missing required ones. */
export function decoded(tool, args) {
  return decode(tool.parameters, args, (name) => {
    throw new ToolFailure(`Required argument '${name}' was not supplied to '${tool.name}'.`, { transient: false });
  });
}

function decode(schema, value, miss) {
  if (Array.isArray(value)) return value.map((item) => decode(schema?.items, item, miss));
  if (typeof value !== "object" || value === null || schema?.properties === undefined) return value;
  const rest = schema.additionalProperties ? value : {};
  const names = new Set([...Object.keys(schema.properties), ...Object.keys(rest)]);
  const found = [...names].map((name) => [name, property(schema, name, value[name], miss)]);
  return Object.fromEntries(found.filter(([, value]) => value !== undefined));
}

function property(schema, name, value, miss) {
  const declared = schema.properties[name];
  if (declared === undefined) return value;
  if (value !== undefined && value !== null) return decode(declared, value, miss);
  if (declared.default !== undefined) return structuredClone(declared.default);
  if (schema.required?.includes(name)) return miss(name);
  return isNullable(declared) ? null : undefined;
}

/** Returns whether null is valid, which includes schemas without a type. */
function isNullable(schema) {
  const { description, examples, ...keywords } = schema;
  if (Object.keys(keywords).length === 0) return true;
  return [schema.type].flat().includes("null") || (schema.anyOf ?? []).some((one) => one.type === "null");
}
