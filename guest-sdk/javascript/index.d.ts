/**
 * Write tools for Cofferdam in JavaScript or TypeScript: objects with a function in, one
 * WebAssembly component out.
 *
 * ```ts
 * import { ToolFailure, plugin, s, tool } from "cofferdam";
 *
 * const repeat = tool({
 *   name: "repeat",
 *   description: "Repeats a string.",
 *   parameters: s.object({
 *     text: s.string("The text to repeat."),
 *     times: s.integer("Number of repetitions; at most 100.").min(0).default(2),
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
 * The default export of the entry file is the plugin. A component imports only what its tools use:
 * without an import of `cofferdam/call`, it cannot report progress. The other modules are
 * `cofferdam/call`, `/client`, `/files`, `/secrets`, `/toolbox`, and for tests `/testing`.
 *
 * @module cofferdam
 */

/** A JSON Schema 2020-12 as a JavaScript object. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/**
 * Hints about the effects of a call, as in MCP. They grant nothing; a missing hint means unknown.
 */
export interface Annotations {
  /** True if the tool changes nothing. */
  readOnly?: boolean;
  /** True if the tool may destroy something: delete, overwrite, send. */
  destructive?: boolean;
  /** True if a second call with the same arguments has no further effect. */
  idempotent?: boolean;
  /** True if the tool accesses systems outside the host, such as the network. */
  openWorld?: boolean;
  /** True if the tool may take minutes. */
  longRunning?: boolean;
}

/** Definition of a tool, without its parameters. */
export interface ToolOptions<Args> {
  /** Name: 1 to 128 characters from `A-Z a-z 0-9 _ . -`, unique within the plugin. */
  name: string;
  /** Display name for users. */
  title?: string;
  /**
   * Purpose of the tool and when to use it. The model knows nothing else about the tool. At most
   * 4096 bytes.
   */
  description: string;
  /** The schema of the value of a success. The host checks each result against it. */
  output?: Schema<unknown, boolean> | JsonSchema;
  annotations?: Annotations;
  /**
   * Group by which operators can select the tool: 1 to 64 characters from `A-Z a-z 0-9 _ . -`.
   */
  group?: string;
  /**
   * Runs the tool. The host has decoded and checked the arguments: defaults are filled in, and
   * undeclared keys and null values that are not allowed are removed.
   *
   * | it returns | the model sees |
   * |---|---|
   * | a string | text |
   * | nothing, or null | null |
   * | a `Content`, or an array of these | exactly these items |
   * | an array of `Content` and other values | these items, and the others as if returned by themselves |
   * | anything else | the output of `JSON.stringify`; a BigInt becomes an integer |
   * | a promise of one of these | the same |
   *
   * A thrown `ToolFailure` is reported as it is. Any other error becomes a failure of which
   * the model sees the name of its class only, unless the operator shows errors; its text and its
   * stack go to the record of the call.
   */
  run(args: Args): unknown;
}

/** A checked tool. Immutable. */
export class Tool<Args = any> {
  private constructor();
  readonly name: string;
  readonly title: string | undefined;
  readonly description: string;
  /** The schema of the arguments. */
  readonly parameters: JsonSchema;
  readonly output: JsonSchema | undefined;
  readonly annotations: Annotations;
  readonly group: string | undefined;
  /** The function that was passed to `tool`. */
  readonly run: (args: Args) => unknown;
}

/**
 * Makes a tool whose parameters are described with `s`, so that TypeScript knows the types of the
 * arguments.
 *
 * @throws {TypeError} if the host would reject the tool, or a model could not use it. That ends the
 *   build.
 */
export function tool<Args>(options: ToolOptions<Args> & { parameters: ObjectSchema<Args> }): Tool<Args>;
/** Makes a tool whose parameters are a JSON Schema of an object, or a tool without parameters. */
export function tool(options: ToolOptions<any> & { parameters?: JsonSchema }): Tool;

/** The tools of a component. */
export class Plugin {
  private constructor();
  readonly tools: readonly Tool[];
  /**
   * Returns the tool of this name.
   *
   * @throws {ToolFailure} if the plugin has no such tool.
   */
  tool(name: string): Tool;
}

/**
 * Exports tools as a component: `export default plugin(…)` in the entry file.
 *
 * @throws {TypeError} for no tools, for more than 128, or for two names that are equal apart from
 *   case.
 */
export function plugin(...tools: Tool[]): Plugin;

/** Details of a `ToolFailure` besides its message. */
export interface FailureOptions {
  /** Advice for the model's next attempt. */
  suggestion?: string;
  /**
   * True if a retry may help: then the host may retry the call by itself. If missing, it is
   * unknown.
   */
  transient?: boolean;
  /**
   * An error value that the model sees instead of message and suggestion. A value without a JSON
   * form is dropped, so that the model sees the message.
   */
  value?: unknown;
  /** The cause, which only the tool sees. */
  cause?: unknown;
}

/**
 * Failure that the tool reports with a message, so that the model can correct itself: what was
 * expected and what was found.
 */
export class ToolFailure extends Error {
  constructor(message: string, options?: FailureOptions);
  readonly suggestion: string | undefined;
  readonly transient: boolean | undefined;
  readonly value: unknown;
}

/**
 * Refusal of a request over HTTP for which there is no grant: the `cause` of the `TypeError` of
 * `fetch`. The model sees its message, which says how the operator can allow the request, even if
 * the tool does not catch the error.
 */
export class RequestDenied extends ToolFailure {
  readonly code: "EACCES";
}

/** One item of a result, made by `text`, `json`, `blob`, `resource` and `link`. */
export class Content {
  private constructor();
  readonly tag: "text" | "json" | "blob" | "resource" | "link";
  /** The value as in `wit/types.wit`. */
  readonly val: unknown;
}

/** Makes text for the model. */
export function text(text: string): Content;

/**
 * Makes a JSON value.
 *
 * @throws {TypeError} if it has no JSON form: a function, a symbol, a circular structure.
 */
export function json(value: unknown): Content;

/** Makes bytes with a media type, such as `image/png`. */
export function blob(mediaType: string, data: Uint8Array | ArrayBuffer): Content;

/** Makes a resource with its content. */
export function resource(uri: string, body: string | Uint8Array | ArrayBuffer, mediaType?: string): Content;

/** Makes the address of a resource that can be read separately. */
export function link(uri: string, name: string, mediaType?: string): Content;

/**
 * A JSON Schema whose values have the type `T`. Immutable: each method returns a changed copy.
 * `Given` says whether an object always has the property.
 */
export class Schema<T, Given extends boolean = true> {
  private constructor();
  /** Only for TypeScript; the property does not exist. */
  readonly _type?: [T, Given];

  /** Returns the JSON Schema. */
  toJSON(): JsonSchema;
  /** True if a model must supply the value. */
  readonly isRequired: boolean;

  /** Sets the description for the model. */
  describe(description: string): Schema<T, Given>;
  /** Sets a default for a missing or null value. */
  default(value: T): Schema<T>;
  /** Makes the value optional: if it is missing or null, the property is absent. */
  optional(): Schema<T, false>;
  /** Makes the value optional: if it is missing or null, it is null. */
  nullable(): Schema<T | null>;
  /**
   * Sets the minimum of a number, of the length of a string in characters, or of the length of an
   * array.
   */
  min(least: number): Schema<T, Given>;
  /** Sets the maximum, like `min`. */
  max(most: number): Schema<T, Given>;
  /** Sets a regular expression that must match somewhere in a string. Flags are ignored. */
  pattern(pattern: RegExp | string): Schema<T, Given>;
  /** Sets examples for the model. */
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
  /** An integer that fits in a `number`. A larger one is rejected with a message for the model. */
  integer(description?: string): Schema<number>;
  /** An exact integer: a BigInt beyond 2^53 - 1. */
  int64(description?: string): Schema<number | bigint>;
  boolean(description?: string): Schema<boolean>;
  /** One of several strings. */
  enum<const Choice extends string>(choices: readonly Choice[], description?: string): Schema<Choice>;
  array<T>(items: Schema<T, boolean>, description?: string): Schema<T[]>;
  /** An object with any keys. */
  map<T>(values: Schema<T, boolean>, description?: string): Schema<Record<string, T>>;
  object<const P extends Properties>(properties: P, description?: string): Schema<Shown<ObjectOf<P>>>;
  /** Any JSON value. If it is missing it is null, even if it is `optional`. */
  any(description?: string): Schema<any>;
  /**
   * A JSON Schema that is written by hand.
   *
   * @throws {TypeError} if it is not an object.
   */
  json<T = unknown>(schema: JsonSchema): Schema<T>;
};
