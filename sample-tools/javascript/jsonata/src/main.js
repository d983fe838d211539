import { ToolFailure, plugin, s, tool } from "cofferdam";

import { evaluate } from "./evaluate.js";
import { readJsonFile } from "./input.js";

/** Maximum length of a result that a model can read. */
const RESULT_CHARACTERS_MAX = 200_000;
const EXPRESSION_CHARACTERS_MAX = 20_000;

export const transformJson = tool({
  name: "transform_json",
  title: "Transform JSON",
  description:
    "Queries and transforms JSON with a JSONata expression. The JSON is passed as `data`, or read from a `file`. " +
    'Examples: `orders[status = "open"].id`; `$sum(orders.(price * quantity))`; ' +
    "`orders{customer: $count($)}` (group); `orders^(>total)[[0..9]]` (sort, take ten); " +
    '`{"names": people.name, "oldest": $max(people.age)}`. Gives null if nothing matches.',
  parameters: s.object({
    expression: s.string("The JSONata expression.").min(1).max(EXPRESSION_CHARACTERS_MAX),
    data: s.any("The JSON value to work on. Leave it out if there is a `file`.").optional(),
    file: s.string("The JSON file to work on, such as `/data/orders.json`; at most 8 MiB.").optional(),
    bindings: s.map(s.any(), "Values of variables: `{\"limit\": 5}` is `$limit` in the expression.").optional(),
  }),
  annotations: { readOnly: true, destructive: false, openWorld: false },
  async run({ expression, data, file, bindings = {} }) {
    return limited(await evaluate(expression, input(data, file), bindings));
  },
});

export default plugin(transformJson);

function input(data, file) {
  // Arguments of any type are null if they are missing.
  const hasData = data !== undefined && data !== null;
  if (hasData !== (file === undefined)) {
    throw new ToolFailure(hasData ? "there are both `data` and `file`" : "there is neither `data` nor `file`", {
      suggestion: "pass one of them",
    });
  }
  return hasData ? data : readJsonFile(file);
}

/** Returns the result as plain JSON, or throws a failure if it is too long for a model. */
function limited(result) {
  if (result === undefined) return null;
  if (result?._jsonata_function || result?._jsonata_lambda) {
    throw new ToolFailure("the result is a function", { suggestion: "call it: add `(…)` with its arguments" });
  }
  const text = JSON.stringify(result);
  if (text.length > RESULT_CHARACTERS_MAX) {
    throw new ToolFailure(`the result has ${text.length} characters as JSON; the most is ${RESULT_CHARACTERS_MAX}`, {
      suggestion: "select fewer fields, or take a part of a list with `(…)[[0..99]]`",
    });
  }
  return result;
}
