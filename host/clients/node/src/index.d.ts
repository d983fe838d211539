/**
 * Runs tools of WebAssembly plugins, each call in a fresh sandbox.
 *
 * This package starts the program `cofferdam` and talks to it over a pipe.
 */

/** Path of a file or directory, or a `file:` URL. */
export type Location = string | URL;

/** JSON Schema. */
export type JsonSchema = Record<string, unknown>;

/** Options of {@link Cofferdam.start}. A string in place of an array is one item. */
export interface HostOptions {
  /** Component files, or an object of names and files. */
  plugins?: Location | readonly Location[] | Readonly<Record<string, Location>>;
  /** Stores by name, which the plugins see as directories, such as `{ data: "./notes:ro" }`. */
  mounts?: Readonly<Record<string, Location>>;
  /** Configuration file. */
  config?: Location;
  /** Store for the file-access tools, or an object of names and stores. */
  files?: Location | Readonly<Record<string, Location>>;
  /** Rules for HTTP requests, such as `GET https://api.example.com/v1`. */
  allowHttp?: string | readonly string[];
  /** Names of environment variables, or an object of names and values. */
  allowEnv?: string | readonly string[] | Readonly<Record<string, string>>;
  /** Names of secrets, or an object of names and environment variables. */
  secrets?: string | readonly string[] | Readonly<Record<string, string>>;
  /** Other permissions, such as `tool:lookup` or `ask:form`. */
  allow?: string | readonly string[];
  /** Limits of each call by name, such as `{ cpuMsMax: 60000 }`. */
  limits?: Readonly<Record<string, number>>;
  /** Wall-clock limit of each call in milliseconds. */
  timeoutMs?: number;
  /** Memory limit of each call in MiB. */
  memoryMib?: number;
  /** Names of the tools to offer instead of all. */
  tools?: string | readonly string[];
  /** Toolsets of the configuration to offer instead of all tools. */
  toolsets?: string | readonly string[];
  /** `true` or `both` offers `run_code` beside the tools, `only` in place of them. */
  code?: boolean | "both" | "only";
  /** Language of the programs that `run_code` runs. */
  codeLanguage?: "javascript" | "python";
  /** Record calls in the call log. */
  record?: boolean;
  /** Directory for compiled plugins, or `false` for none. */
  cacheDir?: Location | false;
  /** Functions of the program that plugins and programs of models may call. */
  functions?: readonly ProgramFunction[];
  /** Approves or refuses calls that need approval. Without it they are refused. */
  approve?: Approve;
  /** Answers questions of tools. Without it the tools cannot ask. */
  ask?: Ask;
  /**
   * Receives notes for the operator, for example about a plugin that cannot be used. What it throws
   * is an uncaught error, as with an event listener.
   */
  onNote?: (message: string) => void;
  /** Path of the program `cofferdam`. */
  executable?: Location;
}

/** Options of a call. */
export interface CallOptions {
  /** Cancels the call. */
  signal?: AbortSignal | undefined;
  /** Wall-clock limit of the call in milliseconds. It never raises the limit of the host. */
  timeoutMs?: number | undefined;
  /** Name of the conversation that the call belongs to. */
  session?: string | undefined;
  /** Report file changes without making them. */
  dryRun?: boolean | undefined;
  /** Include line differences in the record. */
  diff?: boolean | undefined;
  /**
   * Approves or refuses this call, in place of the function of the host. A boolean is not about the
   * calls that a program of a model makes.
   */
  approve?: Approve | boolean | undefined;
  /** Receives the progress of the call. What it throws is an uncaught error. */
  onProgress?: ((progress: Progress) => void) | undefined;
  /** Receives log messages of the tool. What it throws is an uncaught error. */
  onLog?: ((message: LogMessage) => void) | undefined;
}

/** Signal that is aborted when the host no longer waits for an answer. */
export interface RequestOptions {
  readonly signal: AbortSignal;
}

/** Approves or refuses a call, which waits for it. */
export type Approve = (request: Approval, options: RequestOptions) => boolean | Promise<boolean>;

/** Answers a question of a tool. */
export type Ask = (question: Question, options: RequestOptions) => Answer | Promise<Answer>;

/** Request to approve one call. */
export interface Approval {
  readonly tool: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** Question of a tool to the user. */
export interface Question {
  readonly kind: "form";
  /** Text of the question. */
  readonly message: string;
  /** Parameters of MCP's `elicitation/create`: `message` and `requestedSchema`. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** Answer to a question, in the form of MCP's result of `elicitation/create`. */
export interface Answer {
  action: "accept" | "decline" | "cancel";
  content?: Readonly<Record<string, unknown>> | undefined;
}

/** Progress of a call: `done` of `total`. */
export interface Progress {
  readonly done: number;
  readonly total: number | null;
  readonly message: string | null;
}

/** Log message of a tool. */
export interface LogMessage {
  readonly level: string;
  readonly message: string;
}

/** Hints about a tool; `null` or absent if it does not say. */
export interface Annotations {
  readOnly?: boolean | null;
  destructive?: boolean | null;
  idempotent?: boolean | null;
  openWorld?: boolean | null;
  longRunning?: boolean | null;
}

/** Function of the program that is a tool of the host. It runs outside of any sandbox. */
export interface ProgramFunction {
  name: string;
  description: string;
  inputSchema: JsonSchema;
  title?: string;
  outputSchema?: JsonSchema;
  annotations?: Annotations;
  /**
   * Returns the result, any JSON value, for arguments that fit the schema. It throws a
   * {@link ToolFailure} to report a failure that the model sees. Of other errors the model sees
   * only the name.
   */
  // biome-ignore lint/suspicious/noExplicitAny: the arguments have the type that the schema says
  execute(args: any, options: RequestOptions): unknown;
}

/** Tool of the host. */
export interface Tool {
  readonly name: string;
  readonly title: string | null;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly inputSchema: JsonSchema;
  /** JSON Schema of the result, if the tool declares one. */
  readonly outputSchema: JsonSchema | null;
  readonly annotations: Readonly<Annotations>;
  /** Name of the plugin or server; `program` for functions of the program. */
  readonly source: string;
  /** True if calls may need approval. Rules of the host can require it for other calls. */
  readonly needsApproval: boolean;
}

/** Plugin or server that cannot be used. */
export interface UnavailableSource {
  readonly name: string;
  readonly reason: string;
}

/** Item of a result. Binary data is in base64. */
export type Content =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "json"; readonly json: unknown }
  | { readonly type: "blob"; readonly mediaType: string; readonly data: string }
  | {
      readonly type: "resource";
      readonly uri: string;
      readonly mediaType: string | null;
      readonly text?: string;
      readonly data?: string;
    }
  | {
      readonly type: "link";
      readonly uri: string;
      readonly name: string | null;
      readonly mediaType: string | null;
    };

/** Problem of an argument. */
export interface Problem {
  readonly path: string;
  readonly code: string;
  readonly message: string;
  readonly hint?: string | null;
}

/** Facts about a call for the operator. Do not show them to a model. */
export type CallRecord = Readonly<Record<string, unknown>>;

/** Result of a call. {@link Cofferdam.call} returns only results with the outcome `ok`. */
export class Result<Value = unknown> {
  private constructor();
  readonly tool: string;
  readonly outcome: "ok" | "failure" | "error" | "cancelled" | "refused";
  /** True unless the outcome is `ok` or `cancelled`. */
  readonly isError: boolean;
  /**
   * The result as a model sees it: a string or another JSON value. `undefined` if the result
   * consists of items, which are in `contents`.
   */
  readonly value: Value;
  /** The result as a model reads it. */
  get text(): string;
  /** The result as items. A result with one value is one item. */
  get contents(): readonly Content[];
  /** Record of the call; `undefined` if the call did not start. */
  get record(): CallRecord | undefined;
  /** Returns the error that {@link Cofferdam.call} throws for this result, if any. */
  error(): CallError | undefined;
}

/** Host that runs the tools of plugins, each call in a fresh sandbox. */
export class Cofferdam implements AsyncDisposable {
  private constructor();
  /**
   * Starts a host. It ends with {@link Cofferdam.close}, or with the program.
   *
   * @throws {StartError} if the host cannot start
   */
  static start(options?: HostOptions): Promise<Cofferdam>;
  /** Version of the host. */
  readonly version: string;
  /** Tools of the host. */
  readonly tools: readonly Tool[];
  /** Plugins and servers that cannot be used. */
  readonly unavailable: readonly UnavailableSource[];
  /**
   * Calls a tool and returns its result. Any outcome but `ok` is an error.
   *
   * @throws {ToolFailure} if the tool reports a failure
   * @throws {ToolError} if a trap, a limit, a denied permission or an invalid result ends the call
   * @throws {RefusedCall} if the call does not start
   * @throws {CallCancelled} if the call is canceled
   * @throws {HostExited} if the host ends during the call
   */
  call<Value = unknown>(
    tool: string,
    args?: Readonly<Record<string, unknown>>,
    options?: CallOptions,
  ): Promise<Result<Value>>;
  /**
   * Calls a tool and returns its result, whatever the outcome.
   *
   * @throws {HostExited} if the host ends during the call
   */
  run<Value = unknown>(
    tool: string,
    args?: Readonly<Record<string, unknown>>,
    options?: CallOptions,
  ): Promise<Result<Value>>;
  /** Cancels the calls in progress and ends the host. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Base class of the errors of this package. */
export class CofferdamError extends Error {}

/** The host did not start. */
export class StartError extends CofferdamError {
  /** Exit code of the process; `undefined` if none was started. */
  readonly exitCode: number | undefined;
}

/** The host ended, or was closed, while a call was in progress or before it. */
export class HostExited extends CofferdamError {
  readonly exitCode: number | undefined;
  /** Signal that ended the process. */
  readonly signal: string | undefined;
  /** Last lines of standard error, for the operator. */
  get detail(): string;
}

/**
 * Base class of the errors of a single call. `cause` is the reason of an `AbortSignal`, or what a
 * function or callback of the program threw last during the call.
 */
export class CallError extends CofferdamError {
  /** Result of the call; `undefined` for an error that a function throws. */
  get result(): Result | undefined;
  /** Text for a model. */
  get text(): string;
  /** Facts about the call for the operator. */
  get record(): CallRecord | undefined;
}

/** The call did not start. */
export class RefusedCall extends CallError {
  /**
   * `unknown_tool`, `invalid_arguments`, `approval_needed`, `not_approved` or another code of the
   * host, or `message_too_long`.
   */
  readonly code: string;
  /** Name of a similar tool. */
  readonly nearest: string | undefined;
  /** Problems of the arguments. */
  readonly problems: readonly Problem[];
}

/** The tool reported a failure: it ran to its end and could not do what was asked. */
export class ToolFailure extends CallError {
  constructor(message: string, options?: { suggestion?: string; value?: unknown; cause?: unknown });
  readonly suggestion: string | undefined;
  readonly value: unknown;
}

/** A trap, a limit, a denied permission or an invalid result ended the call. */
export class ToolError extends CallError {
  /** Stable name, such as `Trap.Unreachable` or `Timeout`. */
  readonly errorType: string;
  /** Cause, for the operator. Do not show it to a model. */
  get detail(): string | undefined;
}

/** The call was canceled. */
export class CallCancelled extends CallError {}
