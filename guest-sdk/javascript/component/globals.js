/**
 * Globals that JavaScript programmers expect and the engine does not have. Runs before all other
 * code of a component.
 */

import { console } from "./console.js";
import { JobPromise, later } from "./promise.js";
import { crypto, random } from "./random.js";
import { Decoder, Encoder } from "./text.js";

for (const [name, value] of Object.entries({
  Promise: JobPromise,
  TextDecoder: Decoder,
  TextEncoder: Encoder,
  console,
  crypto,
  queueMicrotask: later,
})) {
  Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
}

Math.random = random;
