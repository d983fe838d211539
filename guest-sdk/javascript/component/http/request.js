/** `Request`, as in the fetch standard. */

import { URL } from "../url/url.js";
import { AbortController, AbortSignal } from "./abort.js";
import { Body, bodyOf, content, fork } from "./body.js";
import { Headers } from "./headers.js";

const METHOD = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;
/** Methods that are written in upper case, whatever a program writes. */
const NORMALIZED = /^(?:DELETE|GET|HEAD|OPTIONS|POST|PUT)$/i;
const FORBIDDEN = /^(?:CONNECT|TRACE|TRACK)$/i;
const REDIRECTS = ["follow", "error", "manual"];

/** Names the parsed URL of a request. */
export const address = Symbol("address");

export class Request extends Body {
  #method;
  #url;
  #headers;
  #redirect;
  #signal;

  constructor(input, init = {}) {
    const given = input instanceof Request ? input : undefined;
    const method = methodOf(init.method ?? given?.method ?? "GET");
    const url = given === undefined ? urlOf(input) : given.#url;
    const replaced = bodyOf(init.body);
    const isReplaced = init.body !== undefined && init.body !== null;
    if (isReplaced && /^(?:GET|HEAD)$/.test(method)) throw new TypeError(`a request with the method ${method} cannot have a body`);
    super(isReplaced || given === undefined ? replaced.content : given[content]());
    this.#method = method;
    this.#url = url;
    this.#headers = new Headers(init.headers ?? given?.headers);
    if (replaced.type !== null && !this.#headers.has("content-type")) this.#headers.set("content-type", replaced.type);
    this.#redirect = choice(init.redirect ?? given?.redirect ?? "follow");
    this.#signal = signalOf(init.signal === undefined ? given?.signal : init.signal);
  }

  get method() {
    return this.#method;
  }

  get url() {
    return this.#url.href;
  }

  get [address]() {
    return this.#url;
  }

  get headers() {
    return this.#headers;
  }

  get redirect() {
    return this.#redirect;
  }

  get signal() {
    return this.#signal;
  }

  get duplex() {
    return "half";
  }

  clone() {
    const { method, headers, redirect, signal } = this;
    return new Request(this.url, { method, headers, redirect, signal, body: this[fork]() });
  }

  get [Symbol.toStringTag]() {
    return "Request";
  }
}

function methodOf(method) {
  const text = String(method);
  if (!METHOD.test(text) || FORBIDDEN.test(text)) throw new TypeError(`${JSON.stringify(text)} is no method of a request`);
  return NORMALIZED.test(text) ? text.toUpperCase() : text;
}

function urlOf(input) {
  const url = new URL(String(input));
  if (url.username !== "" || url.password !== "") {
    throw new TypeError(`the URL of a request to ${url.host} has credentials; pass them in the header Authorization`);
  }
  return url;
}

function choice(redirect) {
  if (REDIRECTS.includes(redirect)) return redirect;
  throw new TypeError(`\`redirect\` is one of ${REDIRECTS.join(", ")}, not ${JSON.stringify(redirect)}`);
}

function signalOf(signal) {
  if (signal === undefined || signal === null) return new AbortController().signal;
  if (!(signal instanceof AbortSignal)) throw new TypeError("`signal` is not an AbortSignal");
  return signal;
}
