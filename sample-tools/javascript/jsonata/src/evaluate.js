/** Runs a JSONata expression within limits, and converts its errors to failures. */

import jsonata from "jsonata";

import { ToolFailure } from "cofferdam";

/**
 * Less than the time that the manifest asks for, so that the model learns why there is no result.
 */
const TIME_MS_MAX = 10_000;
/**
 * Maximum depth of nested expressions. The stack of the sandbox allows slightly more; a stack
 * overflow would end the call without an explanation.
 */
const DEPTH_MAX = 250;
/** Maximum items of one array while the expression runs. */
const ITEMS_MAX = 200_000;

/** Suggestions for errors, by the first letters of their code. */
const SUGGESTIONS = [
  ["D1012", "work on less data, or write a simpler expression"],
  ["D1011", "write a recursive function with an end, in tail position, or use `$map`, `$filter` and `$reduce`"],
  ["D2014", "generate fewer items"],
  ["D2015", "select fewer items, with a predicate or `[[0..99]]`"],
  ["S", "correct the syntax at that position"],
  ["T1005", "the names of functions begin with `$`, as in `$sum(…)`"],
  ["T1006", "the names of functions begin with `$`, as in `$sum(…)`"],
  ["T", "convert the value first, with `$number`, `$string` or `$exists`"],
  ["U", undefined],
];

export async function evaluate(expression, input, bindings) {
  try {
    const bounds = { timeout: TIME_MS_MAX, stack: DEPTH_MAX, sequence: ITEMS_MAX };
    return await jsonata(expression, bounds).evaluate(input, bindings);
  } catch (error) {
    throw typeof error?.code === "string" ? failure(error, expression) : error;
  }
}

function failure({ code, message, position }, expression) {
  const [, suggestion] = SUGGESTIONS.find(([start]) => code.startsWith(start)) ?? [];
  return new ToolFailure(`${message} (${code}${described(position, expression)})`, { suggestion, transient: false });
}

/**
 * Describes the position of an error by the text before it, because models do not count characters
 * well.
 */
function described(position, expression) {
  if (!Number.isInteger(position) || position < 1) return "";
  const before = expression.slice(Math.max(0, position - 30), position);
  return `, at character ${position}, behind \`${before}\``;
}
