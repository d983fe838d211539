/** `AbortController` and `AbortSignal`, as in the DOM standard. */

import { loop } from "#host/loop";

/** Permits construction inside this module. */
const PERMIT = Symbol("permit");
/** Names the method by which a controller aborts its signal. */
const abort = Symbol("abort");

export class AbortSignal {
  #reason;
  #isAborted = false;
  #listeners = [];
  onabort = null;

  constructor(permit) {
    if (permit !== PERMIT) throw new TypeError("signals come from an AbortController, or from a function of AbortSignal");
  }

  static abort(reason = abortError()) {
    const signal = new AbortSignal(PERMIT);
    signal[abort](reason);
    return signal;
  }

  static any(signals) {
    const all = [...signals];
    const aborted = all.find((signal) => signal.aborted);
    if (aborted !== undefined) return AbortSignal.abort(aborted.reason);
    const joint = new AbortSignal(PERMIT);
    for (const signal of all) signal.addEventListener("abort", () => joint[abort](signal.reason));
    return joint;
  }

  static timeout(ms) {
    const signal = new AbortSignal(PERMIT);
    loop.start(() => signal[abort](new DOMException("the operation timed out", "TimeoutError")), ms);
    return signal;
  }

  get aborted() {
    return this.#isAborted;
  }

  get reason() {
    return this.#reason;
  }

  throwIfAborted() {
    if (this.#isAborted) throw this.#reason;
  }

  addEventListener(type, listener, options) {
    const isListed = this.#listeners.some((other) => other.type === type && other.listener === listener);
    if (isListed || listener === null || listener === undefined) return;
    this.#listeners.push({ type, listener, once: options?.once === true });
  }

  removeEventListener(type, listener) {
    this.#listeners = this.#listeners.filter((other) => other.type !== type || other.listener !== listener);
  }

  dispatchEvent(event) {
    if (event.type === "abort" && typeof this.onabort === "function") notify(this, this.onabort, event);
    for (const { type, listener, once } of [...this.#listeners]) {
      if (type !== event.type) continue;
      if (once) this.removeEventListener(type, listener);
      notify(this, listener, event);
    }
    return true;
  }

  [abort](reason = abortError()) {
    if (this.#isAborted) return;
    this.#isAborted = true;
    this.#reason = reason;
    this.dispatchEvent({ type: "abort", target: this, currentTarget: this });
  }

  get [Symbol.toStringTag]() {
    return "AbortSignal";
  }
}

export class AbortController {
  #signal = new AbortSignal(PERMIT);

  get signal() {
    return this.#signal;
  }

  abort(reason) {
    this.#signal[abort](reason);
  }

  get [Symbol.toStringTag]() {
    return "AbortController";
  }
}

function abortError() {
  return new DOMException("the operation was aborted", "AbortError");
}

function notify(signal, listener, event) {
  try {
    if (typeof listener === "function") listener.call(signal, event);
    else listener.handleEvent(event);
  } catch (error) {
    // As in every engine, a listener that throws does not stop the others.
    console.error(error);
  }
}
