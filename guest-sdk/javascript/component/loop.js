/**
 * The event loop of a call: timers, and pollables of the host.
 *
 * `settled` takes a turn whenever no promise has a job. Nothing waits outside of a call, because
 * the host of a build has no clock.
 */

import { connect, isInCall } from "./promise.js";

/** Maximum delay of a timer, as in every engine; a longer one counts as 0. */
const DELAY_MS_MAX = 2 ** 31 - 1;
const NS_PER_MS = 1_000_000;

export class EventLoop {
  #poll;
  #clock;
  /** Functions that resolve a wait, by pollable. */
  #waits = new Map();
  #timers = new Map();
  #lastTimer = 0;
  /** Functions that release what a call has left open. */
  #closers = new Set();

  constructor(poll, clock) {
    this.#poll = poll;
    this.#clock = clock;
  }

  /** Waits until a pollable is ready. */
  ready(pollable) {
    this.#use();
    return new Promise((resolve) => this.#waits.set(pollable, resolve));
  }

  /** Ends a wait; its promise never settles. */
  forget(pollable) {
    this.#waits.delete(pollable);
  }

  /** Starts a timer and returns its id. */
  start(act, delay, repeats = false) {
    this.#use();
    const whole = Math.trunc(Number(delay)) || 0;
    const ms = whole > 0 && whole <= DELAY_MS_MAX ? whole : 0;
    const id = ++this.#lastTimer;
    this.#timers.set(id, { act, ms, repeats, due: this.#clock.now() + ms * NS_PER_MS });
    return id;
  }

  stop(id) {
    this.#timers.delete(id);
  }

  /** Calls `close` at the end of the call, unless `release` is called with it first. */
  keep(close) {
    this.#closers.add(close);
  }

  release(close) {
    this.#closers.delete(close);
  }

  /**
   * Waits for the next events, and resolves their promises or runs one timer. Returns false if
   * there is nothing to wait for.
   */
  turn() {
    const next = this.#nextTimer();
    if (this.#waits.size === 0 && next === undefined) return false;
    const left = next === undefined ? undefined : this.#timers.get(next).due - this.#clock.now();
    this.#wait(left);
    if (next !== undefined && this.#timers.get(next).due <= this.#clock.now()) this.#run(next);
    return true;
  }

  /** Drops everything that a call has left. */
  end() {
    this.#waits.clear();
    this.#timers.clear();
    for (const close of [...this.#closers]) close();
    this.#closers.clear();
  }

  #use() {
    if (!isInCall()) throw new TypeError("timers and requests work only within a call, and this code runs while the plugin is built");
    connect(this);
  }

  /** Returns the id of the timer that is due first; of several, that which was started first. */
  #nextTimer() {
    let next;
    for (const [id, { due }] of this.#timers) if (next === undefined || due < this.#timers.get(next).due) next = id;
    return next;
  }

  /** Waits for pollables, for at most `left` nanoseconds. */
  #wait(left) {
    const pollables = [...this.#waits.keys()];
    if (pollables.length === 0 && left <= 0) return;
    const timer = left === undefined ? undefined : this.#clock.subscribeDuration(Math.max(0, left));
    try {
      const ready = this.#poll.poll(timer === undefined ? pollables : [...pollables, timer]);
      for (const index of ready) {
        if (index === pollables.length) continue;
        const resolve = this.#waits.get(pollables[index]);
        this.#waits.delete(pollables[index]);
        resolve();
      }
    } finally {
      timer?.[Symbol.dispose]();
    }
  }

  #run(id) {
    const timer = this.#timers.get(id);
    if (timer.repeats) {
      // Moved to the end, so that timers of the same time take turns.
      this.#timers.delete(id);
      this.#timers.set(id, { ...timer, due: this.#clock.now() + Math.max(1, timer.ms) * NS_PER_MS });
    } else {
      this.#timers.delete(id);
    }
    try {
      timer.act();
    } catch (error) {
      // As in browsers, a timer that throws does not stop the others.
      console.error(error);
    }
  }
}
