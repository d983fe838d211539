/**
 * Random numbers of the host.
 *
 * The state of the engine's own generator is part of the component, so its numbers would be the
 * same in every call.
 */

import host from "wasi:random/random@0.2.12";

/** Number of bytes that are requested from the host at once, for `Math.random`. */
const POOL_BYTES = 512;
/** Maximum bytes of one `getRandomValues`, as in every engine. */
const VALUES_BYTES_MAX = 65_536;

let pool = new Uint32Array();
let next = 0;

/**
 * Drops the pool, which may contain numbers from the build of the component or from an earlier
 * call.
 */
export function forget() {
  pool = new Uint32Array();
  next = 0;
}

/** Implements `Math.random`, with 53 bits. */
export function random() {
  if (next + 2 > pool.length) {
    pool = new Uint32Array(bytes(POOL_BYTES).buffer);
    next = 0;
  }
  const high = pool[next++] >>> 5;
  const low = pool[next++] >>> 6;
  return (high * 2 ** 26 + low) / 2 ** 53;
}

/** Implements the random numbers of `crypto`. */
export const crypto = {
  getRandomValues(target) {
    if (target.byteLength > VALUES_BYTES_MAX) throw new RangeError(`at most ${VALUES_BYTES_MAX} bytes at once`);
    new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(bytes(target.byteLength));
    return target;
  },

  randomUUID() {
    const drawn = bytes(16);
    drawn[6] = (drawn[6] & 0x0f) | 0x40;
    drawn[8] = (drawn[8] & 0x3f) | 0x80;
    return drawn.toHex().replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  },
};

function bytes(length) {
  // Copied, because the host's array can begin inside a larger buffer.
  return Uint8Array.from(host.getRandomBytes(length));
}
