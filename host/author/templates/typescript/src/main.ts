import { ToolFailure, plugin, s, tool } from "cofferdam";

export const wordCount = tool({
  name: "word_count",
  description: "Counts the words of a text.",
  parameters: s.object({
    text: s.string("The text to count."),
    min_length: s.integer("Only words of at least this many letters.").default(1),
  }),
  annotations: { readOnly: true, idempotent: true },
  run({ text, min_length }) {
    if (min_length < 1) {
      throw new ToolFailure(`\`min_length\` is ${min_length}`, { suggestion: "pass 1 or more" });
    }
    const words = text.split(/\s+/).filter((word) => word !== "");
    return words.filter((word) => [...word].length >= min_length).length;
  },
});

export default plugin(wordCount);
