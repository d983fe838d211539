/**
 * Write tools for Cofferdam in JavaScript or TypeScript: objects with a function in, one WebAssembly component out.
 *
 * ```ts
 * import { ToolFailure, plugin, s, tool } from "cofferdam";
 *
 * const repeat = tool({
 *   name: "repeat",
 *   description: "Repeats a text.",
 *   parameters: s.object({
 *     text: s.string("The text to repeat."),
 *     times: s.integer("Number of greetings; at most 100.").min(0).default(2),
 *   }),
 *   annotations: { readOnly: true, idempotent: true },
 *   run({ text, times }) {
 *     if (times > 100) throw new ToolFailure(`${times} times is too often`, { suggestion: "pass 100 or less" });
 *     return text.repeat(times);
 *   },
 * });
 *
 * export default plugin(repeat);
 * ```
 *
 * The default export of the entry file is the plugin. A component imports what its tools use and nothing else: one that never
 * imports `cofferdam/call` could not report progress. The other modules are `cofferdam/call`, `/client`, `/files`, `/secrets`,
 * `/toolbox`, and for tests `/testing`.
 *
 * @module cofferdam
 */

/** A JSON Schema 2020-12, as it is written in JSON. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** Hints about what a call does, as in MCP. They grant nothing; one that is left out is unknown. */
export interface Annotations {
  /** The tool changes nothing. */
  readOnly?: boolean;
  /** The tool may destroy something: delete, overwrite, send. */
  destructive?: boolean;
  /** Calling twice with the same arguments changes nothing more. */
  idempotent?: boolean;
  /** The tool reaches things outside the host, such as the network. */
  openWorld?: boolean;
  /** The tool may take minutes. */
  longRunning?: boolean;
}

/** What a tool is made of, besides its parameters. */
export interface ToolOptions<Args> {
  /** 1 to 128 characters out of `A-Z a-z 0-9 _ . -`, unique within the plugin. */
  name: string;
  /** A short name for people. */
  title?: string;
  /** What the tool does and when to use it, for the model, which knows nothing else of it. At most 4096 bytes. */
  description: string;
  /** The schema of the value of a success. The host checks each result against it. */
  output?: Schema<unknown, boolean> | JsonSchema;
  annotations?: Annotations;
  /**
   * Runs the tool. The host has decoded and checked the arguments: defaults are filled in, undeclared keys are gone, and what
   * is null without being allowed to is gone too.
   *
   * | it returns | the model sees |
   * |---|---|
   * | a string | a text |
   * | nothing, or null | null |
   * | a `Content`, or an array of these | just that |
   * | anything else | what `JSON.stringify` makes of it; a BigInt becomes an integer |
   * | a promise of one of these | the same |
   *
   * A `ToolFailure` that is thrown is reported as it is. Any other error is one too, with the message `<name>: <message>`; its
   * stack goes to standard error, which the host keeps in the record of the call.
   */
  run(args: Args): unknown;
}

/** A tool, checked. It never changes. */
export class Tool<Args = any> {
  private constructor();
  readonly name: string;
  readonly title: string | undefined;
  readonly description: string;
  /** The schema of the arguments. */
  readonly parameters: JsonSchema;
  readonly output: JsonSchema | undefined;
  readonly annotations: Annotations;
  /** What was given to `tool`. */
  readonly run: (args: Args) => unknown;
}

/**
 * Makes a tool whose parameters are described with `s`; TypeScript knows the types of the arguments.
 *
 * @throws {TypeError} if the host would refuse it, or a model could not use it. That ends the build.
 */
export function tool<Args>(options: ToolOptions<Args> & { parameters: ObjectSchema<Args> }): Tool<Args>;
/** Makes a tool whose parameters are a JSON Schema of an object, or that has none. */
export function tool(options: ToolOptions<any> & { parameters?: JsonSchema }): Tool;

/** The tools of a component. */
export class Plugin {
  private constructor();
  readonly tools: readonly Tool[];
  /** @throws {ToolFailure} if the plugin has no tool of that name. */
  tool(name: string): Tool;
}

/**
 * Exports tools as a component: `export default plugin(…)` in the entry file.
 *
 * @throws {TypeError} if there is none, if there are more than 128, or if two have the same name but for case.
 */
export function plugin(...tools: Tool[]): Plugin;

/** What a `ToolFailure` says besides its message. */
export interface FailureOptions {
  /** What the model could do instead. */
  suggestion?: string;
  /** Whether trying again may help: with `true` the host may do so by itself. Left out, it is unknown. */
  transient?: boolean;
  /** An error value that the model sees instead of message and suggestion. */
  value?: unknown;
  /** What led to it. It stays with the tool. */
  cause?: unknown;
}

/** A failure that the tool reports in words, so that the model can correct itself: what was expected and what was found. */
export class ToolFailure extends Error {
  constructor(message: string, options?: FailureOptions);
  readonly suggestion: string | undefined;
  readonly transient: boolean | undefined;
  readonly value: unknown;
}

/** One item of a result. Made by `text`, `json`, `blob`, `resource` and `link`. */
export class Content {
  private constructor();
  readonly tag: "text" | "json" | "blob" | "resource" | "link";
  /** As in `wit/types.wit`. */
  readonly val: unknown;
}

/** Text for the model. */
export function text(text: string): Content;

/**
 * A JSON value.
 *
 * @throws {TypeError} if it has no JSON form: a function, a symbol, something that contains itself.
 */
export function json(value: unknown): Content;

/** Bytes with a media type, such as `image/png`. */
export function blob(mediaType: string, data: Uint8Array | ArrayBuffer): Content;

/** Something that has an address, together with what it holds. */
export function resource(uri: string, body: string | Uint8Array | ArrayBuffer, mediaType?: string): Content;

/** The address of something that can be read on its own. */
export function link(uri: string, name: string, mediaType?: string): Content;

/**
 * A JSON Schema whose values have the type `T`. It never changes: each method returns another one. `Given` says whether an
 * object has the property at all.
 */
export class Schema<T, Given extends boolean = true> {
  private constructor();
  /** Only for TypeScript; there is no such property. */
  readonly _type?: [T, Given];

  /** The JSON Schema. */
  toJSON(): JsonSchema;
  /** Whether a model has to supply it. */
  readonly isRequired: boolean;

  /** Says what it is, for the model. */
  describe(description: string): Schema<T, Given>;
  /** It may be left out or null, and is this value then. */
  default(value: T): Schema<T>;
  /** It may be left out or null, and is not there then. */
  optional(): Schema<T, false>;
  /** It may be left out or null, and is null then. */
  nullable(): Schema<T | null>;
  /** The least number, length of a string in characters, or length of an array. */
  min(least: number): Schema<T, Given>;
  /** The most. */
  max(most: number): Schema<T, Given>;
  /** A regular expression that a string has to match somewhere. Flags do not count. */
  pattern(pattern: RegExp | string): Schema<T, Given>;
  /** Examples for the model. */
  examples(...examples: T[]): Schema<T, Given>;
}

/** A schema of an object with known properties. */
export type ObjectSchema<T> = Schema<T, boolean>;

/** The type of the values that a schema describes. */
export type Infer<S> = S extends Schema<infer T, boolean> ? T : never;

type Properties = { readonly [name: string]: Schema<any, boolean> };
type OptionalName<P extends Properties> = {
  [Name in keyof P]: P[Name] extends Schema<any, true> ? never : Name;
}[keyof P];
type ObjectOf<P extends Properties> = {
  [Name in Exclude<keyof P, OptionalName<P>>]: Infer<P[Name]>;
} & { [Name in OptionalName<P>]?: Infer<P[Name]> };
/** Shows an intersection as one object. */
type Shown<T> = { [Name in keyof T]: T[Name] };

/** Schemas. Each function takes a description as its last parameter. */
export const s: {
  string(description?: string): Schema<string>;
  number(description?: string): Schema<number>;
  /** An integer that a `number` holds. A larger one is refused, with words for the model. */
  integer(description?: string): Schema<number>;
  /** An integer with all its digits: a BigInt beyond 2^53 - 1. */
  int64(description?: string): Schema<number | bigint>;
  boolean(description?: string): Schema<boolean>;
  /** One of several strings. */
  enum<const Choice extends string>(choices: readonly Choice[], description?: string): Schema<Choice>;
  array<T>(items: Schema<T, boolean>, description?: string): Schema<T[]>;
  /** An object with any keys. */
  map<T>(values: Schema<T, boolean>, description?: string): Schema<Record<string, T>>;
  object<const P extends Properties>(properties: P, description?: string): Schema<Shown<ObjectOf<P>>>;
  /** Any JSON value, and so null where it is left out, even if it is `optional`. */
  any(description?: string): Schema<any>;
  /** A JSON Schema that is written by hand. */
  json<T = unknown>(schema: JsonSchema): Schema<T>;
};
