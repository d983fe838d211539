import { ToolFailure, plugin, s, tool } from "cofferdam";

export const greet = tool({
  name: "greet",
  description: "Greets a person by name, once or several times.",
  parameters: s.object({
    name: s.string("Name of the person to greet."),
    times: s.integer("Number of greetings; at most 10.").min(0).default(1),
  }),
  annotations: { readOnly: true, idempotent: true },
  run({ name, times }) {
    if (times > 10) throw new ToolFailure(`${times} times is too often`, { suggestion: "pass 10 or less" });
    return Array.from({ length: times }, () => `Hello, ${name}!`).join(" ");
  },
});

export default plugin(greet);
