/** The call that is being served. Documented in `call.d.ts`. */

import host from "#host/call";

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
  host.progress(done, total ?? null, message === undefined ? null : String(message));
}
