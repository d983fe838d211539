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

/** Implements `Promise`. */
export class JobPromise {
  #state = "pending";
  #value;
  #reactions = [];

  constructor(executor) {
    if (typeof executor !== "function") throw new TypeError("a promise needs a function");
    const { resolve, reject } = this.#settlers();
    try {
      executor(resolve, reject);
    } catch (error) {
      reject(error);
    }
  }

  then(onFulfilled, onRejected) {
    return new JobPromise((resolve, reject) => {
      const react = () => {
        const handler = this.#state === "fulfilled" ? onFulfilled : onRejected;
        if (typeof handler !== "function") return this.#state === "fulfilled" ? resolve(this.#value) : reject(this.#value);
        try {
          resolve(handler(this.#value));
        } catch (error) {
          reject(error);
        }
      };
      if (this.#state === "pending") this.#reactions.push(react);
      else later(react);
    });
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
    return value instanceof JobPromise ? value : new JobPromise((resolve) => resolve(value));
  }

  static reject(reason) {
    return new JobPromise((_, reject) => reject(reason));
  }

  static withResolvers() {
    let resolve, reject;
    const promise = new JobPromise((...both) => ([resolve, reject] = both));
    return { promise, resolve, reject };
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
    const once = (act) => (value) => {
      if (isDone) return;
      isDone = true;
      act(value);
    };
    return {
      resolve: once((value) => this.#resolve(value)),
      reject: once((reason) => this.#settle("rejected", reason)),
    };
  }

  #resolve(value) {
    if (value === this) return this.#settle("rejected", new TypeError("a promise cannot wait for itself"));
    if ((typeof value !== "object" && typeof value !== "function") || value === null) return this.#settle("fulfilled", value);
    const { resolve, reject } = this.#settlers();
    try {
      const then = value.then;
      if (typeof then !== "function") return this.#settle("fulfilled", value);
      later(() => {
        try {
          then.call(value, resolve, reject);
        } catch (error) {
          reject(error);
        }
      });
    } catch (error) {
      reject(error);
    }
  }

  #settle(state, value) {
    this.#state = state;
    this.#value = value;
    for (const react of this.#reactions) later(react);
    this.#reactions = [];
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
