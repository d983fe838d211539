/** Secrets that are granted by name. Documented in `secrets.d.ts`. */

import host from "#host/secrets";
import { string } from "./checked.js";

export function get(name) {
  const asked = string(name, "the name of the secret");
  try {
    return host.get(asked);
  } catch (error) {
    if (error.payload === "access-denied") return undefined;
    throw error;
  }
}
