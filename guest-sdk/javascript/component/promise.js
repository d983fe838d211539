/**
 * Promises that settle before a call returns.
 *
 * The engine runs the jobs of its own promises only when the host asks for it, which does not
 * happen for a component without asynchronous exports. Therefore `cofferdam build` compiles `async`
 * functions to functions that use `Promise` by name. This implementation of it stores its jobs in a
 * list and runs them at the end of each call. If the result still waits, an event loop waits for
 * timers and for the host.
 */

const jobs = [];
let loop;
let isCalling = false;

/**
 * Returns the outcome of a call: `value`, or if it is a promise, its value after all jobs have run.
 */
export function settled(value) {
  if (typeof value?.then !== "function") return value;
  let outcome;
  value.then(
    (result) => (outcome = () => result),
    (reason) =>
      (outcome = () => {
        throw reason;
      }),
  );
  runJobs();
  while (outcome === undefined && loop?.turn()) runJobs();
  if (outcome === undefined) throw new Error("the tool waits for a promise that nothing settles");
  return outcome();
}

/** Begins a call. */
export function enter() {
  isCalling = true;
}

/** Ends a call and drops everything that still waits. */
export function leave() {
  isCalling = false;
  loop?.end();
  jobs.length = 0;
}

export function isInCall() {
  return isCalling;
}

/** Connects an event loop, whose `turn` waits for the next events and returns whether there are any. */
export function connect(events) {
  loop = events;
}

/** Implements `queueMicrotask`. */
export function later(job) {
  jobs.push(job);
}

function runJobs() {
  // Jobs can add jobs. Iterating over the list is cheaper than removing its first item each time.
  for (let next = 0; next < jobs.length; next++) {
    const job = jobs[next];
    jobs[next] = undefined;
    try {
      job();
    } catch (error) {
      // As in every engine, a microtask that throws does not stop the others.
      console.error(error);
    }
  }
  jobs.length = 0;
}

/** Passed instead of an executor to make a promise that only this class settles. */
const WITHOUT_EXECUTOR = () => {};

/**
 * Implements `Promise`. A tool that sends one request makes dozens of promises, so that each makes
 * as few functions as it can.
 */
export class JobPromise {
  #state = "pending";
  #value;
  /** Jobs that begin when the promise settles; undefined while there are none. */
  #reactions;

  constructor(executor) {
    if (executor === WITHOUT_EXECUTOR) return;
    if (typeof executor !== "function") throw new TypeError("a promise needs a function");
    const { resolve, reject } = this.#settlers();
    try {
      executor(resolve, reject);
    } catch (error) {
      reject(error);
    }
  }

  then(onFulfilled, onRejected) {
    const next = new JobPromise(WITHOUT_EXECUTOR);
    this.#follow(() => {
      const handler = this.#state === "fulfilled" ? onFulfilled : onRejected;
      if (typeof handler !== "function") return next.#adopt(this);
      let result;
      try {
        result = handler(this.#value);
      } catch (error) {
        return next.#settle("rejected", error);
      }
      next.#resolve(result);
    });
    return next;
  }

  catch(onRejected) {
    return this.then(undefined, onRejected);
  }

  finally(act) {
    if (typeof act !== "function") return this.then(act, act);
    return this.then(
      (value) => JobPromise.resolve(act()).then(() => value),
      (reason) =>
        JobPromise.resolve(act()).then(() => {
          throw reason;
        }),
    );
  }

  get [Symbol.toStringTag]() {
    return "Promise";
  }

  static resolve(value) {
    if (value instanceof JobPromise) return value;
    const promise = new JobPromise(WITHOUT_EXECUTOR);
    promise.#resolve(value);
    return promise;
  }

  static reject(reason) {
    const promise = new JobPromise(WITHOUT_EXECUTOR);
    promise.#settle("rejected", reason);
    return promise;
  }

  static withResolvers() {
    const promise = new JobPromise(WITHOUT_EXECUTOR);
    return { promise, ...promise.#settlers() };
  }

  static try(act, ...args) {
    return new JobPromise((resolve) => resolve(act(...args)));
  }

  static all(items) {
    return collect(items, (promise, keep, resolve, reject) => promise.then(keep, reject));
  }

  static allSettled(items) {
    return collect(items, (promise, keep) =>
      promise.then(
        (value) => keep({ status: "fulfilled", value }),
        (reason) => keep({ status: "rejected", reason }),
      ),
    );
  }

  static any(items) {
    const failed = collect(items, (promise, keep, resolve, reject) => promise.then(reject, keep));
    return new JobPromise((resolve, reject) =>
      failed.then((reasons) => reject(new AggregateError(reasons, "all promises were rejected")), resolve),
    );
  }

  static race(items) {
    return new JobPromise((resolve, reject) => {
      for (const item of items) JobPromise.resolve(item).then(resolve, reject);
    });
  }

  /** Returns functions of which only the first call has an effect. */
  #settlers() {
    let isDone = false;
    return {
      resolve: (value) => {
        if (isDone) return;
        isDone = true;
        this.#resolve(value);
      },
      reject: (reason) => {
        if (isDone) return;
        isDone = true;
        this.#settle("rejected", reason);
      },
    };
  }

  #resolve(value) {
    if (value === this) return this.#settle("rejected", new TypeError("a promise cannot wait for itself"));
    if ((typeof value !== "object" && typeof value !== "function") || value === null) return this.#settle("fulfilled", value);
    let then;
    try {
      then = value.then;
    } catch (error) {
      return this.#settle("rejected", error);
    }
    if (typeof then !== "function") return this.#settle("fulfilled", value);
    if (then === JobPromise.prototype.then && #state in value) return later(() => value.#follow(() => this.#adopt(value)));
    const { resolve, reject } = this.#settlers();
    later(() => {
      try {
        then.call(value, resolve, reject);
      } catch (error) {
        reject(error);
      }
    });
  }

  /** Settles as `other` has settled. */
  #adopt(other) {
    if (other.#state === "fulfilled") this.#resolve(other.#value);
    else this.#settle("rejected", other.#value);
  }

  /** Adds a job that begins when the promise has settled. */
  #follow(react) {
    if (this.#state !== "pending") later(react);
    else if (this.#reactions === undefined) this.#reactions = [react];
    else this.#reactions.push(react);
  }

  #settle(state, value) {
    this.#state = state;
    this.#value = value;
    const reactions = this.#reactions;
    if (reactions === undefined) return;
    this.#reactions = undefined;
    for (const react of reactions) later(react);
  }
}

/** Returns a promise of a list that is complete when `keep` has been called for each item. */
function collect(items, follow) {
  return new JobPromise((resolve, reject) => {
    const values = [];
    let open = 1;
    const close = () => {
      if (--open === 0) resolve(values);
    };
    let count = 0;
    for (const item of items) {
      const index = count++;
      open++;
      const keep = (value) => {
        values[index] = value;
        close();
      };
      follow(JobPromise.resolve(item), keep, resolve, reject);
    }
    close();
  });
}
