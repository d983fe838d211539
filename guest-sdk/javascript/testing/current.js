/** Which host the code of a test talks to. Calls that run at the same time each have their own. */

import { AsyncLocalStorage } from "node:async_hooks";

const hosts = new AsyncLocalStorage();

/** Runs something with a host. */
export function within(host, act) {
  return hosts.run(host, act);
}

/** An interface of the host that is there when one of its functions is called. */
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
