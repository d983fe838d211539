/** `setTimeout` and `setInterval`, as in the HTML standard. */

import { loop } from "#host/loop";

export function setTimeout(act, delay = 0, ...args) {
  return loop.start(() => act(...args), delay);
}

export function setInterval(act, delay = 0, ...args) {
  return loop.start(() => act(...args), delay, true);
}

export function clearTimeout(id) {
  loop.stop(id);
}

export { clearTimeout as clearInterval };
