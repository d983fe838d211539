import { type Infer, ToolFailure, plugin, s, tool } from "cofferdam";
import { FileError, locate } from "cofferdam/files";

import { readData, readFile } from "./input.ts";
import { type Source, render } from "./render.ts";

/** Maximum length of a result that a model can read; a longer one should be saved to a file. */
const RESULT_CHARACTERS_MAX = 100_000;

const parameters = s.object({
  template: s.string("The template in Liquid. Leave it out if there is a `template_file`.").max(200_000).optional(),
  template_file: s
    .string("The file with the template, such as `/data/letter.liquid`. `{% render 'part' %}` reads the files beside it.")
    .optional(),
  data: s.map(s.any(), 'The values: `{"name": "Ada"}` is `{{ name }}` in the template.').optional(),
  data_file: s.string("A JSON file with the values, such as `/data/customer.json`; `data` comes on top of it.").optional(),
  escape: s.enum(["none", "html"], "With `html`, `<`, `>`, `&` and quotes in values are escaped.").default("none"),
  missing: s
    .enum(["fail", "empty"], "What a value that is not there is: a failure that names it, or nothing.")
    .default("fail"),
  save_as: s.string("Where to save the result as a new file, instead of returning it.").optional(),
});

type Args = Infer<typeof parameters>;

export const renderTemplate = tool({
  name: "render_template",
  title: "Render a template",
  description:
    "Fills in a Liquid template: `Dear {{ name }}`, `{% for line in lines %}{{ line.sku }}: {{ line.price | times: 2 }}{% endfor %}`, " +
    "`{% if open %}…{% endif %}`, filters such as `date: '%Y-%m-%d'`, `upcase`, `join: ', '`, `default: '-'`. " +
    "Use it for letters, reports and configuration files whose wording is fixed.",
  parameters,
  annotations: { destructive: false, idempotent: false, openWorld: false },
  run(args) {
    const text = render(source(args), values(args), { escape: args.escape, missing: args.missing });
    return args.save_as === undefined ? limited(text) : saved(text, args.save_as);
  },
});

export default plugin(renderTemplate);

function source({ template, template_file }: Args): Source {
  if (template !== undefined && template_file === undefined) return { text: template };
  if (template_file !== undefined && template === undefined) return { text: readFile(template_file), location: template_file };
  throw new ToolFailure(
    template === undefined ? "there is neither `template` nor `template_file`" : "there are both `template` and `template_file`",
    { suggestion: "pass one of them" },
  );
}

function values({ data, data_file }: Args): Record<string, unknown> {
  return { ...(data_file === undefined ? {} : readData(data_file)), ...data };
}

function limited(text: string): string {
  if (text.length <= RESULT_CHARACTERS_MAX) return text;
  throw new ToolFailure(`the result has ${text.length} characters; the most is ${RESULT_CHARACTERS_MAX}`, {
    suggestion: "pass `save_as` with the path of a new file",
  });
}

function saved(text: string, location: string): { saved: string; characters: number } {
  const { store, path } = locate(location);
  try {
    store.create(path, text);
  } catch (error) {
    if (error instanceof FileError && error.code === "already-exists") {
      throw new ToolFailure(`there is a file at \`${location}\` already`, { suggestion: "pass another path in `save_as`" });
    }
    throw error;
  }
  return { saved: location, characters: text.length };
}
