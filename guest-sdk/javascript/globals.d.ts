/**
 * The globals of a component, besides those of the language, for `"types": ["cofferdam/globals"]`
 * in `tsconfig.json`. All others are missing: `fetch`, `setTimeout`, `URL`, `process`, `Buffer`,
 * `structuredClone`, `Intl`.
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

/** Supports only UTF-8, and only complete input. */
declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: "utf-8";
  decode(input?: ArrayBuffer | ArrayBufferView): string;
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
