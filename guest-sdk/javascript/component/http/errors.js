/** Errors of requests: `fetch` rejects with a TypeError, whose cause says more. */

import { RequestDenied } from "../../failure.js";

/** Codes of Node for errors of `wasi:http`, with messages. */
const ERRORS = {
  "DNS-timeout": ["EAI_AGAIN", (host) => `the lookup of the host ${host} timed out`],
  "DNS-error": ["ENOTFOUND", (host) => `the host ${host} is unknown`],
  "destination-not-found": ["ENOTFOUND", (host) => `the host ${host} is unknown`],
  "destination-unavailable": ["EHOSTUNREACH", (host) => `the connection to ${host} failed`],
  "destination-IP-unroutable": ["EHOSTUNREACH", (host) => `there is no route to the host ${host}`],
  "connection-refused": ["ECONNREFUSED", (host) => `the connection to ${host} was refused`],
  "connection-terminated": ["ECONNRESET", closed],
  "HTTP-response-incomplete": ["ECONNRESET", closed],
  "connection-timeout": ["ETIMEDOUT", timedOut],
  "connection-read-timeout": ["ETIMEDOUT", timedOut],
  "connection-write-timeout": ["ETIMEDOUT", timedOut],
  "HTTP-response-timeout": ["ETIMEDOUT", timedOut],
  "connection-limit-reached": ["EMFILE", (host) => `${host}: the host has reached its limit of open connections`],
  "TLS-certificate-error": ["ERR_TLS", (host) => `the certificate of ${host} was rejected`],
  "TLS-protocol-error": ["ERR_TLS", (host) => `the TLS connection to ${host} failed`],
  "TLS-alert-received": ["ERR_TLS", (host) => `${host} refused the TLS connection`],
  "HTTP-request-URI-invalid": ["ERR_INVALID_URL", (host) => `the URL of the request to ${host} is invalid`],
  "HTTP-request-method-invalid": ["ERR_INVALID_ARG_VALUE", (host) => `the method of the request to ${host} is invalid`],
  "HTTP-request-body-size": ["ERR_LIMIT", (host, most) => `${host}: the call has reached its limit of sent data${bytes(most)}`],
  "HTTP-response-body-size": ["ERR_LIMIT", (host, most) => `${host}: the call has reached its limit of received data${bytes(most)}`],
  "HTTP-response-header-section-size": ["ERR_LIMIT", headersTooLarge],
  "HTTP-response-header-size": ["ERR_LIMIT", headersTooLarge],
  "HTTP-protocol-error": ["ERR_HTTP_PROTOCOL", (host) => `the connection to ${host} failed: its server broke HTTP`],
  "configuration-error": ["ERR_CONFIGURATION", (host) => `${host}: a header that the operator configured has no value`],
};

/** Returns the error for an `error-code` of `wasi:http`, or for an unknown failure. */
export function requestError({ protocol, host }, code) {
  const scheme = protocol.replace(":", "");
  switch (code?.tag) {
    case "HTTP-request-denied":
      return failed(
        new RequestDenied(`${host}: no grant for this request; the operator can allow it with --allow-http ${scheme}://${host}/`),
      );
    case "destination-IP-prohibited":
      return failed(
        new RequestDenied(`${host}: no grant for its address, which is not public; the operator can allow it with \`addresses\` beside the rule`),
      );
    default: {
      const [name, message] = ERRORS[code?.tag] ?? ["ERR_REQUEST", () => `the connection to ${host} failed: ${code?.tag ?? "it was closed"}`];
      return failed(Object.assign(new Error(message(host, code?.val)), { code: name }));
    }
  }
}

/** Returns a TypeError with the message of its cause. */
export function failed(cause) {
  return new TypeError(cause.message, { cause });
}

function closed(host) {
  return `the connection to ${host} was closed before the response was complete`;
}

function timedOut(host) {
  return `the connection to ${host} timed out`;
}

function headersTooLarge(host, most) {
  return `${host}: the headers of the response exceed the limit of 100 headers, or that${bytes(most?.fieldSize ?? most)}`;
}

function bytes(most) {
  return typeof most === "number" ? ` of ${most} bytes` : "";
}
