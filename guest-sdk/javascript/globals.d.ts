/**
 * The globals of a component, besides those of the language, for `"types": ["cofferdam/globals"]` in `tsconfig.json`. What is
 * not here is not there: `fetch`, `setTimeout`, `URL`, `process`, `Buffer`, `structuredClone`, `Intl`.
 */

/** Prints to standard error, which the host keeps with the record of the call. A client never sees it. */
declare const console: {
  debug(...values: unknown[]): void;
  error(...values: unknown[]): void;
  info(...values: unknown[]): void;
  log(...values: unknown[]): void;
  trace(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  assert(holds: unknown, ...values: unknown[]): void;
};

/** UTF-8 only. */
declare class TextEncoder {
  readonly encoding: "utf-8";
  encode(text?: string): Uint8Array<ArrayBuffer>;
  encodeInto(text: string, target: Uint8Array): { read: number; written: number };
}

/** UTF-8 only, and a text as a whole. */
declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: "utf-8";
  decode(input?: ArrayBuffer | ArrayBufferView): string;
}

/** Random numbers of the host, as those of `Math.random` are. There is no `subtle`. */
declare const crypto: {
  getRandomValues<T extends ArrayBufferView>(target: T): T;
  randomUUID(): `${string}-${string}-${string}-${string}-${string}`;
};

declare const performance: { now(): number; readonly timeOrigin: number };
declare function atob(base64: string): string;
declare function btoa(latin1: string): string;
/** Runs when the tool waits for a promise or has returned. */
declare function queueMicrotask(job: () => void): void;
