/** Secrets that a person has granted by name. Documented in `secrets.d.ts`. */

import host from "#host/secrets";

export function get(name) {
  try {
    return host.get(name);
  } catch (error) {
    if (error.payload === "access-denied") return undefined;
    throw error;
  }
}
