import { ToolFailure, plugin, s, tool } from "cofferdam";

export const greet = tool({
  name: "greet",
  description: "Greets somebody by name, as often as is wanted.",
  parameters: s.object({
    name: s.string("Whom to greet."),
    times: s.integer("How often; at most 10 times.").min(0).default(1),
  }),
  annotations: { readOnly: true, idempotent: true },
  run({ name, times }) {
    if (times > 10) throw new ToolFailure(`${times} times is too often`, { suggestion: "pass 10 or less" });
    return Array.from({ length: times }, () => `Hello, ${name}!`).join(" ");
  },
});

export default plugin(greet);
