/**
 * JSON with exact integers.
 *
 * `JSON` parses every number as a double, which holds integers up to 2^53 - 1. This module parses a
 * larger integer as a BigInt if the schema says `integer`, and like `JSON` otherwise. It serializes
 * a BigInt as an integer. Without such numbers, this has no cost.
 */

import { ToolFailure } from "./failure.js";

/**
 * Marks a schema of `integer` for which the author wants a `number`, so that a larger integer is
 * rejected. Not part of the JSON.
 */
export const SAFE = Symbol("safe");

/** Matches numbers that may exceed a double: 2^53 has 16 digits. */
const MANY_DIGITS = /\d{16}/;
const INTEGER = /^-?\d+$/;
/** Matches an escaped backslash or a lone surrogate in the output of `JSON.stringify`. */
const LONE_SURROGATE = /\\\\|\\ud[89a-f][0-9a-f]{2}/g;
/** Maximum depth, larger than the limit of a host. */
const DEPTH_MAX = 200;

/** Parses the arguments of a tool by its input schema. */
export function readArguments(text, schema) {
  if (!MANY_DIGITS.test(text)) return JSON.parse(text);
  return settle(readJson(text), schema, { root: schema, path: "", depth: 0 });
}

/** Parses JSON. Every integer that does not fit in a double becomes a BigInt. */
export function readJson(text) {
  return JSON.parse(text, (_, value, context) => {
    const isLarge = typeof value === "number" && !Number.isSafeInteger(value);
    return isLarge && context !== undefined && INTEGER.test(context.source) ? BigInt(context.source) : value;
  });
}

/** Serializes a value as JSON. Throws a TypeError for values without a JSON form. */
export function writeJson(value) {
  const written = stringify(value);
  if (written === undefined) throw new TypeError(`a ${typeof value} has no JSON form`);
  // JSON parsers reject lone surrogates.
  return written.includes("\\ud") ? written.replace(LONE_SURROGATE, (found) => (found === "\\\\" ? found : "\\ufffd")) : written;
}

function stringify(value) {
  try {
    return JSON.stringify(value);
  } catch (error) {
    // A replacer is called for every value, so it is used only for values that need it.
    if (!(error instanceof TypeError) || !JSON.rawJSON) throw error;
    return JSON.stringify(value, (_, item) => (typeof item === "bigint" ? JSON.rawJSON(String(item)) : item));
  }
}

/** Keeps BigInts where the schema has an integer, and converts the others to doubles. */
function settle(value, schema, at) {
  const found = resolve(schema, at.root);
  if (typeof value === "bigint") return settleInteger(value, found, at);
  if (typeof value !== "object" || value === null || at.depth > DEPTH_MAX) return value;
  const isList = Array.isArray(value);
  for (const key of Object.keys(value)) {
    const inner = isList ? itemSchema(found, Number(key)) : propertySchema(found, key);
    const path = isList ? `${at.path}[${key}]` : at.path === "" ? key : `${at.path}.${key}`;
    value[key] = settle(value[key], inner, { root: at.root, path, depth: at.depth + 1 });
  }
  return value;
}

function settleInteger(value, schema, { path }) {
  const schemas = [schema, ...(schema?.anyOf ?? []), ...(schema?.oneOf ?? []), ...(schema?.allOf ?? [])];
  const integer = schemas.find((one) => [one?.type].flat().includes("integer"));
  if (integer === undefined) return Number(value);
  if (!integer[SAFE]) return value;
  throw new ToolFailure(`argument \`${path}\` is ${value}, which is too large for this tool`, {
    suggestion: `pass an integer from ${Number.MIN_SAFE_INTEGER} to ${Number.MAX_SAFE_INTEGER}`,
    transient: false,
  });
}

function itemSchema(schema, index) {
  return within(schema, (one) => one.prefixItems?.[index] ?? one.items);
}

function propertySchema(schema, key) {
  return within(schema, (one) => (Object.hasOwn(one.properties ?? {}, key) ? one.properties[key] : one.additionalProperties));
}

/** Returns the first result of `pick` for a schema and its alternatives. */
function within(schema, pick) {
  const alternatives = [schema, ...(schema?.anyOf ?? []), ...(schema?.oneOf ?? []), ...(schema?.allOf ?? [])];
  for (const one of alternatives) {
    const picked = typeof one === "object" && one !== null ? pick(one) : undefined;
    if (picked !== undefined) return picked;
  }
  return undefined;
}

/** Follows `$ref` within the schema. */
function resolve(schema, root) {
  let found = schema;
  for (let hops = 0; typeof found?.$ref === "string" && found.$ref.startsWith("#") && hops < 16; hops++) {
    const steps = found.$ref.slice(1).split("/").filter(Boolean);
    found = steps.reduce((inner, step) => inner?.[step.replaceAll("~1", "/").replaceAll("~0", "~")], root);
  }
  return found;
}
