// Calls in progress, and the requests of the host about them.
//
// Functions and callbacks run in the async context of the call that they belong to, so that an
// `AsyncLocalStorage` of the program has its value there.

import { AsyncLocalStorage } from "node:async_hooks";

import { Cancellation } from "./cancellation.js";
import { deferred } from "./deferred.js";
import { answer, answerError } from "./requests.js";
import { Result } from "./result.js";
import { encode, MessageTooLong } from "./wire.js";

/** @import { Connection } from "./connection.js" */
/** @import { Deferred } from "./deferred.js" */
/** @import { CallOptions } from "./index.js" */
/** @import { Handlers } from "./requests.js" */
/** @import { ResultMessage } from "./result.js" */
/** @import { Message } from "./wire.js" */

/** Maximum number of calls in progress; further calls wait. A host refuses more. */
const CALLS_MAX = 1024;

/**
 * Call in progress.
 *
 * @typedef {object} RunningCall
 * @property {Deferred<ResultMessage | undefined>} end Its result, or `undefined` if the host has ended.
 * @property {CallOptions} options
 * @property {Handlers} handlers
 * @property {<R>(run: () => R) => R} inContext Runs a function in the caller's async context.
 * @property {unknown} cause What a function or callback threw last.
 */

export class Calls {
  #connection;
  #handlers;
  #cancellation = new Cancellation((id) => this.#cancel(id));
  /** @type {Map<number, RunningCall>} */
  #running = new Map();
  /** @type {Map<number, AbortController>} */
  #requests = new Map();
  /**
   * Wake calls that wait for one of `CALLS_MAX`, the first one first.
   *
   * @type {Set<() => void>}
   */
  #waiting = new Set();
  #lastId = 0;
  #isClosing = false;
  #hasEnded = false;

  /**
   * @param {Connection} connection
   * @param {Handlers} handlers
   */
  constructor(connection, handlers) {
    this.#connection = connection;
    this.#handlers = handlers;
  }

  /**
   * Makes a call and returns its result.
   *
   * @param {string} tool
   * @param {Readonly<Record<string, unknown>>} args
   * @param {CallOptions} options
   */
  async run(tool, args, options) {
    const signal = options.signal ?? undefined;
    if (signal?.aborted) return Result.of(tool, { outcome: "cancelled" }, signal.reason);
    if (this.#hasEnded) throw this.#connection.exitError();
    const id = ++this.#lastId;
    let line;
    try {
      line = encode(callMessage(id, tool, args, options));
    } catch (error) {
      if (!(error instanceof MessageTooLong)) throw error;
      const { message } = error;
      return Result.of(tool, { outcome: "refused", code: "message_too_long", message });
    }
    // A function of the program may hold up the calls in progress until a call of its own has ended.
    if (this.#running.size >= CALLS_MAX && this.#requests.size === 0) {
      await this.#turn(signal);
      if (this.#hasEnded) throw this.#connection.exitError();
      if (signal?.aborted) return Result.of(tool, { outcome: "cancelled" }, signal.reason);
      if (this.#isClosing) return Result.of(tool, { outcome: "cancelled" });
    }
    const call = this.#open(id, options);
    if (signal !== undefined) this.#cancellation.add(signal, id);
    this.#connection.sendLine(line);
    const message = await call.end.promise;
    if (signal !== undefined) this.#cancellation.remove(signal, id);
    this.#connection.release();
    if (message === undefined) throw this.#connection.exitError();
    if (message.code === "not_approved" && call.handlers.approve === undefined) {
      message.code = "approval_needed";
      message.message = `this call of \`${tool}\` has to be approved, and the program approves no calls`;
    }
    const isAborted = message.outcome === "cancelled" && signal?.aborted;
    return Result.of(tool, message, isAborted ? signal.reason : call.cause);
  }

  /**
   * Handles a message of the host.
   *
   * @param {Message} message
   */
  receive(message) {
    switch (message.type) {
      case "result":
        this.#running.get(message.id)?.end.resolve(/** @type {any} */ (message));
        this.#running.delete(message.id);
        this.#wakeNext();
        break;
      case "progress":
      case "log":
        this.#report(message);
        break;
      case "invoke":
      case "approve":
      case "ask":
        this.#serve(message);
        break;
      case "revoke":
        this.#requests.get(message.id)?.abort();
        this.#requests.delete(message.id);
        break;
      default: // A message of a later version.
    }
  }

  /** Cancels all calls and waits for their results. */
  async cancelAll() {
    this.#isClosing = true;
    for (const wake of this.#waiting) wake();
    const ends = [...this.#running].map(([id, call]) => {
      this.#cancel(id);
      return call.end.promise;
    });
    await Promise.all(ends);
  }

  /** Ends all calls and requests after the end of the process. */
  end() {
    this.#hasEnded = true;
    for (const call of this.#running.values()) call.end.resolve(undefined);
    this.#running.clear();
    for (const wake of this.#waiting) wake();
    for (const controller of this.#requests.values()) controller.abort();
    this.#requests.clear();
  }

  /**
   * Waits until fewer than `CALLS_MAX` calls are in progress, the host ends or the signal is aborted.
   *
   * @param {AbortSignal | undefined} signal
   */
  async #turn(signal) {
    do {
      /** @type {Deferred<void>} */
      const turn = deferred();
      const wake = () => turn.resolve();
      this.#waiting.add(wake);
      signal?.addEventListener("abort", wake);
      await turn.promise;
      signal?.removeEventListener("abort", wake);
      this.#waiting.delete(wake);
    } while (
      this.#running.size >= CALLS_MAX &&
      !this.#isClosing &&
      !this.#hasEnded &&
      !signal?.aborted
    );
    // An aborted call passes its turn on.
    if (signal?.aborted) this.#wakeNext();
  }

  #wakeNext() {
    const [wake] = this.#waiting;
    if (wake === undefined) return;
    this.#waiting.delete(wake);
    wake();
  }

  /** @param {number} id */
  #cancel(id) {
    this.#connection.send({ type: "cancel", id });
  }

  /** @param {number} id @param {CallOptions} options */
  #open(id, options) {
    const approve = options.approve ?? this.#handlers.approve;
    // What a program will do is not known when its call is approved.
    const approveInner = typeof approve === "boolean" ? this.#handlers.approve : approve;
    /** @type {RunningCall} */
    const call = {
      end: deferred(),
      options,
      handlers: { ...this.#handlers, approve, approveInner },
      inContext: AsyncLocalStorage.snapshot(),
      cause: undefined,
    };
    this.#running.set(id, call);
    this.#connection.hold();
    return call;
  }

  /** @param {Message} message */
  #report({ type, id, done, total, message, level }) {
    const call = this.#running.get(id);
    // Errors of the function are uncaught, as those of a listener, and do not stop the reader.
    queueMicrotask(() => {
      call?.inContext(() => {
        if (type === "log") call.options.onLog?.({ level, message });
        else call.options.onProgress?.({ done, total, message });
      });
    });
  }

  /** @param {Message} request */
  async #serve(request) {
    const call = this.#running.get(request.call);
    // A request of a call that has just ended. The host no longer waits for the answer.
    if (call === undefined && request.call != null) return;
    const controller = new AbortController();
    this.#requests.set(request.id, controller);
    const { signal } = controller;
    const run = () => answer(request, call?.handlers ?? this.#handlers, { signal });
    let line;
    try {
      line = encode(await (call === undefined ? run() : call.inContext(run)));
    } catch (error) {
      if (call !== undefined) call.cause = error;
      line = encodeError(request, error);
    }
    if (this.#requests.delete(request.id)) this.#connection.sendLine(line);
  }
}

/**
 * Returns the answer to a request whose function has thrown an error, or an error about a failure
 * whose value cannot be sent.
 *
 * @param {Message} request
 * @param {unknown} error
 */
function encodeError(request, error) {
  try {
    return encode(answerError(request, error));
  } catch (reason) {
    return encode(answerError(request, reason));
  }
}

/**
 * @param {number} id
 * @param {string} tool
 * @param {Readonly<Record<string, unknown>>} args
 * @param {CallOptions} options
 * @returns {Message}
 */
function callMessage(id, tool, args, options) {
  const { session, timeoutMs, dryRun, diff, onProgress, onLog } = options;
  if (timeoutMs !== undefined && !(timeoutMs > 0 && timeoutMs <= Number.MAX_SAFE_INTEGER)) {
    throw new RangeError(`expected timeoutMs above 0 and finite, found ${timeoutMs}`);
  }
  return {
    type: "call",
    id,
    tool,
    arguments: args,
    session,
    timeout_ms: timeoutMs === undefined ? undefined : Math.ceil(timeoutMs),
    dry_run: dryRun,
    diff,
    progress: onProgress !== undefined || onLog !== undefined,
  };
}
