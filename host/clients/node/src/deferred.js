// Promises that are settled from elsewhere, and waits with a time limit.

/**
 * @template T
 * @typedef {{ promise: Promise<T>, resolve: (value: T) => void }} Deferred
 */

/**
 * Returns a promise and the function that resolves it.
 *
 * @template T
 * @returns {Deferred<T>}
 */
export function deferred() {
  /** @type {(value: T) => void} */
  let resolve = () => {};
  /** @type {Promise<T>} */
  const promise = new Promise((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/**
 * Returns true once a promise is resolved, or false after a time.
 *
 * @param {Promise<unknown>} promise
 * @param {number} ms
 */
export async function settledWithin(promise, ms) {
  /** @type {Deferred<boolean>} */
  const late = deferred();
  const timer = setTimeout(() => late.resolve(false), ms);
  const isSettled = await Promise.race([promise.then(() => true), late.promise]);
  clearTimeout(timer);
  return isSettled;
}
