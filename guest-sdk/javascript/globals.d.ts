/**
 * The globals of a component, besides those of the language, for `"types": ["cofferdam/globals"]`
 * in `tsconfig.json`. All others are missing: `process`, `Buffer`, `Blob`, `FormData`,
 * `structuredClone`, `Intl`.
 *
 * Requests, timers and URLs are part of a component only if its code mentions them.
 */

/**
 * Prints to standard error, which the host stores in the record of the call. A client never sees
 * it.
 */
declare const console: {
  debug(...values: unknown[]): void;
  error(...values: unknown[]): void;
  info(...values: unknown[]): void;
  log(...values: unknown[]): void;
  trace(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  assert(holds: unknown, ...values: unknown[]): void;
};

/** Supports only UTF-8. */
declare class TextEncoder {
  readonly encoding: "utf-8";
  encode(text?: string): Uint8Array<ArrayBuffer>;
  encodeInto(text: string, target: Uint8Array): { read: number; written: number };
}

/** Supports only UTF-8. */
declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: "utf-8";
  decode(input?: ArrayBuffer | ArrayBufferView, options?: { stream?: boolean }): string;
}

/** Random numbers of the host, which `Math.random` uses too. There is no `subtle`. */
declare const crypto: {
  getRandomValues<T extends ArrayBufferView>(target: T): T;
  randomUUID(): `${string}-${string}-${string}-${string}-${string}`;
};

declare const performance: { now(): number; readonly timeOrigin: number };
declare function atob(base64: string): string;
declare function btoa(latin1: string): string;
/** Runs a job when the tool waits for a promise or has returned. */
declare function queueMicrotask(job: () => void): void;

/**
 * Runs a function once, after at least `delay` milliseconds. Timers run while the tool waits for a
 * promise; those that are left when it has returned never run.
 */
declare function setTimeout<Args extends unknown[]>(act: (...args: Args) => void, delay?: number, ...args: Args): number;
/** Runs a function again and again, with `delay` milliseconds in between. */
declare function setInterval<Args extends unknown[]>(act: (...args: Args) => void, delay?: number, ...args: Args): number;
declare function clearTimeout(id: number | undefined): void;
declare function clearInterval(id: number | undefined): void;

declare class DOMException extends Error {
  constructor(message?: string, name?: string);
  readonly name: string;
  readonly message: string;
  readonly code: number;
}

interface AbortEvent {
  readonly type: string;
  readonly target: AbortSignal;
}

declare class AbortSignal {
  private constructor();
  /** Returns a signal that is aborted already. */
  static abort(reason?: any): AbortSignal;
  /** Returns a signal that is aborted as soon as one of several is. */
  static any(signals: Iterable<AbortSignal>): AbortSignal;
  /** Returns a signal that is aborted after `ms` milliseconds, with a `TimeoutError`. */
  static timeout(ms: number): AbortSignal;
  readonly aborted: boolean;
  readonly reason: any;
  onabort: ((this: AbortSignal, event: AbortEvent) => any) | null;
  throwIfAborted(): void;
  addEventListener(type: "abort", listener: (this: AbortSignal, event: AbortEvent) => any, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: (this: AbortSignal, event: AbortEvent) => any): void;
}

declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: any): void;
}

declare class URL {
  /** @throws {TypeError} if the URL is invalid. */
  constructor(url: string | URL, base?: string | URL);
  static canParse(url: string | URL, base?: string | URL): boolean;
  static parse(url: string | URL, base?: string | URL): URL | null;
  href: string;
  readonly origin: string;
  protocol: string;
  username: string;
  password: string;
  host: string;
  hostname: string;
  port: string;
  pathname: string;
  search: string;
  readonly searchParams: URLSearchParams;
  hash: string;
  toString(): string;
  toJSON(): string;
}

declare class URLSearchParams {
  constructor(init?: string | Iterable<readonly [string, string]> | Record<string, string> | URLSearchParams);
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  forEach(act: (value: string, name: string, parent: URLSearchParams) => void, receiver?: any): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
  toString(): string;
}

type HeadersInit = Headers | Iterable<readonly [string, string]> | Record<string, string>;

declare class Headers {
  constructor(init?: HeadersInit);
  append(name: string, value: string): void;
  delete(name: string): void;
  get(name: string): string | null;
  getSetCookie(): string[];
  has(name: string): boolean;
  set(name: string, value: string): void;
  forEach(act: (value: string, name: string, parent: Headers) => void, receiver?: any): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

interface ReadableStreamDefaultController<Chunk = any> {
  readonly desiredSize: number | null;
  close(): void;
  enqueue(chunk: Chunk): void;
  error(error?: any): void;
}

interface UnderlyingDefaultSource<Chunk = any> {
  start?(controller: ReadableStreamDefaultController<Chunk>): any;
  pull?(controller: ReadableStreamDefaultController<Chunk>): void | PromiseLike<void>;
  cancel?(reason?: any): void | PromiseLike<void>;
}

type ReadableStreamReadResult<Chunk> = { done: false; value: Chunk } | { done: true; value: Chunk | undefined };

interface ReadableStreamDefaultReader<Chunk = any> {
  readonly closed: Promise<void>;
  read(): Promise<ReadableStreamReadResult<Chunk>>;
  cancel(reason?: any): Promise<void>;
  releaseLock(): void;
}

/** Supports no byte streams, no pipes, and of a strategy only `highWaterMark`, in chunks. */
declare class ReadableStream<Chunk = any> {
  constructor(source?: UnderlyingDefaultSource<Chunk>, strategy?: { highWaterMark?: number });
  static from<Chunk>(iterable: Iterable<Chunk> | AsyncIterable<Chunk>): ReadableStream<Chunk>;
  readonly locked: boolean;
  cancel(reason?: any): Promise<void>;
  getReader(): ReadableStreamDefaultReader<Chunk>;
  tee(): [ReadableStream<Chunk>, ReadableStream<Chunk>];
  values(options?: { preventCancel?: boolean }): AsyncIterableIterator<Chunk>;
  [Symbol.asyncIterator](options?: { preventCancel?: boolean }): AsyncIterableIterator<Chunk>;
}

type BodyInit = string | ArrayBuffer | ArrayBufferView | URLSearchParams | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

/** The methods that requests and responses share. */
interface Body {
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>> | null;
  readonly bodyUsed: boolean;
  arrayBuffer(): Promise<ArrayBuffer>;
  bytes(): Promise<Uint8Array<ArrayBuffer>>;
  json(): Promise<any>;
  text(): Promise<string>;
}

type RequestRedirect = "follow" | "error" | "manual";

interface RequestInit {
  method?: string;
  headers?: HeadersInit;
  /** A stream is sent in chunks. It cannot be sent again, so that some redirects fail. */
  body?: BodyInit | null;
  /** Other engines require it for a body that is a stream. */
  duplex?: "half";
  /** `manual` returns the redirect as it is, as in Node. */
  redirect?: RequestRedirect;
  signal?: AbortSignal | null;
}

interface Request extends Body {}
declare class Request {
  /** @throws {TypeError} if the URL is not absolute, or has credentials. */
  constructor(input: string | URL | Request, init?: RequestInit);
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly redirect: RequestRedirect;
  readonly signal: AbortSignal;
  clone(): Request;
}

interface ResponseInit {
  status?: number;
  statusText?: string;
  headers?: HeadersInit;
}

interface Response extends Body {}
declare class Response {
  constructor(body?: BodyInit | null, init?: ResponseInit);
  static error(): Response;
  static json(value: any, init?: ResponseInit): Response;
  static redirect(url: string | URL, status?: number): Response;
  readonly type: "basic" | "default" | "error";
  readonly url: string;
  readonly redirected: boolean;
  readonly status: number;
  readonly ok: boolean;
  /** Empty for the response of a server. */
  readonly statusText: string;
  readonly headers: Headers;
  clone(): Response;
}

/**
 * Sends a request over HTTP. The manifest must request the address, and also the address of each
 * redirect.
 *
 * Rejects with a `TypeError` if there is no response. Its `cause` is a `RequestDenied` if there is
 * no grant, and otherwise an error with a `code` as in Node, such as `ECONNREFUSED`.
 */
declare function fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
