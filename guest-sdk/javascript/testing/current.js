/** The host of the current test. Concurrent calls each have their own. */

import { AsyncLocalStorage } from "node:async_hooks";

const hosts = new AsyncLocalStorage();

/** Calls `act` with a host. */
export function within(host, act) {
  return hosts.run(host, act);
}

/** Returns an interface of the host, which is looked up when one of its functions is called. */
export function delegate(name) {
  return new Proxy(Object.freeze({}), {
    get: (_, key) => (...args) => {
      const host = hosts.getStore();
      if (host === undefined) {
        throw new Error(`there is no host outside of a component: run the tool with \`call\` of cofferdam/testing`);
      }
      return host.interfaces[name][key](...args);
    },
  });
}
