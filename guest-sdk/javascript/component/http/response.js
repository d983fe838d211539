/** `Response`, as in the fetch standard. */

import { URL } from "../url/url.js";
import { Body, bodyOf, fork } from "./body.js";
import { Headers } from "./headers.js";

/** Statuses of responses without a body. */
export const WITHOUT_BODY = [101, 103, 204, 205, 304];
const REDIRECTS = [301, 302, 303, 307, 308];
/** Names the properties that only `fetch` sets. */
const received = Symbol("received");

export class Response extends Body {
  #status;
  #statusText;
  #headers;
  #received;

  constructor(body = null, init = {}) {
    const { status = 200, statusText = "", headers, [received]: properties } = init;
    if (properties === undefined && !(Number.isInteger(status) && status >= 200 && status <= 599)) {
      throw new RangeError(`the status of a response is an integer from 200 to 599, not ${status}`);
    }
    if (body !== null && WITHOUT_BODY.includes(status)) throw new TypeError(`a response with the status ${status} has no body`);
    const initial = bodyOf(body);
    super(initial.content);
    this.#status = status;
    this.#statusText = String(statusText);
    this.#headers = new Headers(headers);
    if (initial.type !== null && !this.#headers.has("content-type")) this.#headers.set("content-type", initial.type);
    this.#received = properties ?? { type: "default", url: "", redirected: false };
  }

  static error() {
    return new Response(null, { status: 0, [received]: { type: "error", url: "", redirected: false } });
  }

  static json(value, init = {}) {
    const text = JSON.stringify(value);
    if (text === undefined) throw new TypeError(`a ${typeof value} has no JSON form`);
    const headers = new Headers(init.headers);
    if (!headers.has("content-type")) headers.set("content-type", "application/json");
    return new Response(new TextEncoder().encode(text), { ...init, headers });
  }

  static redirect(url, status = 302) {
    if (!REDIRECTS.includes(status)) throw new RangeError(`the status of a redirect is one of ${REDIRECTS.join(", ")}, not ${status}`);
    return new Response(null, { status, headers: { location: new URL(url).href } });
  }

  get type() {
    return this.#received.type;
  }

  get url() {
    return this.#received.url;
  }

  get redirected() {
    return this.#received.redirected;
  }

  get status() {
    return this.#status;
  }

  get ok() {
    return this.#status >= 200 && this.#status <= 299;
  }

  get statusText() {
    return this.#statusText;
  }

  get headers() {
    return this.#headers;
  }

  clone() {
    const { status, statusText, headers } = this;
    return new Response(this[fork](), { status, statusText, headers, [received]: this.#received });
  }

  get [Symbol.toStringTag]() {
    return "Response";
  }
}

/** Makes the response of a server. */
export function receive(body, { status, headers, url, redirected }) {
  return new Response(body, { status, headers, [received]: { type: "basic", url, redirected } });
}
