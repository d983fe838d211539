/** The current call. Documented in `call.d.ts`. */

import host from "#host/call";
import { finite, optionalString } from "./checked.js";

export function id() {
  return host.id();
}

export function session() {
  return host.session() ?? undefined;
}

export function timeLeftMs() {
  return host.timeLeftMs();
}

export function cancelled() {
  return host.cancelled();
}

export function progress(done, total, message) {
  const whole = total === undefined || total === null ? null : finite(total, "`total`");
  host.progress(finite(done, "`done`"), whole, optionalString(message, "`message`"));
}
