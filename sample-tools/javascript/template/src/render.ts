/** Renders Liquid within limits, and converts errors of templates to failures. */

import {
  type Context,
  type Emitter,
  type FS,
  IncludeTag,
  LayoutTag,
  Liquid,
  LiquidError,
  RenderTag,
  UndefinedVariableError,
} from "liquidjs";

import { ToolFailure } from "cofferdam";
import { locate } from "cofferdam/files";

import { readText } from "./input.ts";

/** Template, with its path if it is a file. */
export interface Source {
  text: string;
  location?: string;
}

export interface Style {
  escape: "none" | "html";
  missing: "fail" | "empty";
}

/** Maximum characters of all templates together. */
const PARSE_LIMIT = 4_000_000;
/**
 * Less than the time that the manifest asks for, so that the model learns why there is no result.
 */
const RENDER_MS_MAX = 10_000;
/**
 * Maximum characters and items that filters and tags create. The memory of a call holds several
 * times as many.
 */
const MEMORY_LIMIT = 8_000_000;
/** Maximum number of other templates that a template can use; each is read once. */
const PARTIALS_MAX = 50;
/**
 * Maximum depth of nested templates. The stack of the sandbox allows slightly more; a stack
 * overflow would end the call without an explanation.
 */
const DEPTH_MAX = 20;

export function render(source: Source, values: Record<string, unknown>, { escape, missing }: Style): string {
  const liquid = new Liquid({
    fs: partials(source.location),
    root: "",
    cache: true,
    extname: ".liquid",
    relativeReference: false,
    ownPropertyOnly: true,
    strictFilters: true,
    strictVariables: missing === "fail",
    lenientIf: true,
    timezoneOffset: 0,
    parseLimit: PARSE_LIMIT,
    renderLimit: RENDER_MS_MAX,
    memoryLimit: MEMORY_LIMIT,
    ...(escape === "html" ? { outputEscape: "escape" as const } : {}),
  });
  boundDepth(liquid);
  try {
    return liquid.renderSync(liquid.parse(source.text, source.location), values) as string;
  } catch (error) {
    throw reported(error, values);
  }
}

/** Makes the tags that render other templates count their depth. */
function boundDepth(liquid: Liquid): void {
  let depth = 0;
  function* bounded<T>(inner: Generator<unknown, T, unknown>): Generator<unknown, T, unknown> {
    if (++depth > DEPTH_MAX) {
      throw new ToolFailure(`templates ask for each other more than ${DEPTH_MAX} deep`, {
        suggestion: "check whether one asks for itself",
      });
    }
    const result = yield* inner;
    // A failed template ends all of them, so the count does not matter then.
    depth--;
    return result;
  }
  liquid.registerTag("render", class extends RenderTag {
    override *render(context: Context, emitter: Emitter) {
      return yield* bounded(super.render(context, emitter));
    }
  });
  liquid.registerTag("include", class extends IncludeTag {
    override *render(context: Context, emitter: Emitter) {
      return yield* bounded(super.render(context, emitter));
    }
  });
  liquid.registerTag("layout", class extends LayoutTag {
    override *render(context: Context, emitter: Emitter) {
      return yield* bounded(super.render(context, emitter));
    }
  });
}

/**
 * Makes partial templates files beside the template. A template that is passed as text has none.
 */
function partials(location: string | undefined): FS {
  let reads = 0;
  const found = (file: string) => {
    if (location === undefined) {
      throw new ToolFailure(`the template asks for \`${file}\`, and there are no files beside it`, {
        suggestion: "pass `template_file`, or put the text of the other template in",
      });
    }
    if (++reads > PARTIALS_MAX) throw new ToolFailure(`the template asks for more than ${PARTIALS_MAX} others`);
    const { store, path } = locate(location);
    return readText(store, [...path.split("/").slice(0, -1), file].join("/"));
  };
  return {
    readFileSync: found,
    readFile: async (file) => found(file),
    // A missing file is detected when it is read, with a message that lists the existing ones.
    existsSync: () => true,
    exists: async () => true,
    contains: async () => true,
    containsSync: () => true,
    resolve: (_, file, extension) => (/\.\w+$/.test(file) ? file : file + extension),
    sep: "/",
  };
}

function reported(error: unknown, values: Record<string, unknown>): unknown {
  for (let cause = error; cause instanceof Error; cause = (cause as LiquidError).originalError) {
    if (cause instanceof ToolFailure) return cause;
    if (cause instanceof UndefinedVariableError) {
      const names = Object.keys(values).map((name) => `\`${name}\``);
      const known = names.slice(0, 30).join(", ");
      const suggestion = names.length === 0 ? "pass values in `data`" : `use one of ${known}, or pass it in \`data\``;
      return new ToolFailure(cause.message, { suggestion: `${suggestion}; or pass \`missing\`: \`empty\``, transient: false });
    }
  }
  if (!LiquidError.is(error)) return error;
  return new ToolFailure((error as LiquidError).message, {
    suggestion: "correct the template at that position, or make it do less",
    transient: false,
    cause: error,
  });
}
