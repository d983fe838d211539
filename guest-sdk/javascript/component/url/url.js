/** `URL`, as in the URL standard. */

import {
  defaultPort,
  isSpecial,
  parse,
  serialize,
  serializePath,
  setFragment,
  setHost,
  setPath,
  setPort,
  setProtocol,
  setQuery,
  setUserinfo,
} from "./parse.js";
import { URLSearchParams, follow, reload } from "./search.js";

export class URL {
  #url;
  #searchParams;

  constructor(url, base) {
    const parsed = parsedWith(url, base);
    if (parsed === undefined) throw invalid(url, base);
    this.#url = parsed;
  }

  static canParse(url, base) {
    return parsedWith(url, base) !== undefined;
  }

  static parse(url, base) {
    return URL.canParse(url, base) ? new URL(url, base) : null;
  }

  get href() {
    return serialize(this.#url);
  }

  set href(value) {
    const parsed = parse(String(value));
    if (parsed === undefined) throw invalid(value);
    this.#url = parsed;
    this.#reload();
  }

  get origin() {
    const { protocol, path } = this.#url;
    if (protocol === "blob:" && typeof path === "string") {
      const inner = parse(path);
      return ["http:", "https:"].includes(inner?.protocol) ? originOf(inner) : "null";
    }
    return isSpecial(this.#url) && protocol !== "file:" ? originOf(this.#url) : "null";
  }

  get protocol() {
    return this.#url.protocol;
  }

  set protocol(value) {
    setProtocol(this.#url, clean(value));
  }

  get username() {
    return this.#url.username;
  }

  set username(value) {
    if (this.#hasPort()) setUserinfo(this.#url, "username", String(value));
  }

  get password() {
    return this.#url.password;
  }

  set password(value) {
    if (this.#hasPort()) setUserinfo(this.#url, "password", String(value));
  }

  get host() {
    const { host, port } = this.#url;
    return host === null ? "" : host + (port === null ? "" : `:${port}`);
  }

  set host(value) {
    this.#setAuthority(value, true);
  }

  get hostname() {
    return this.#url.host ?? "";
  }

  set hostname(value) {
    this.#setAuthority(value, false);
  }

  get port() {
    return this.#url.port === null ? "" : String(this.#url.port);
  }

  set port(value) {
    if (!this.#hasPort()) return;
    const text = clean(value);
    const digits = /^[0-9]*/.exec(text)[0];
    if (text === "" || digits !== "") setPort(this.#url, digits);
  }

  get pathname() {
    return serializePath(this.#url);
  }

  set pathname(value) {
    // Delimiters that would end the path in a URL are part of it here.
    const encoded = clean(value).replaceAll("?", "%3F").replaceAll("#", "%23");
    if (typeof this.#url.path !== "string") setPath(this.#url, encoded);
  }

  get search() {
    const { query } = this.#url;
    return query === null || query === "" ? "" : `?${query}`;
  }

  set search(value) {
    const text = clean(value);
    if (text === "") this.#url.query = null;
    else setQuery(this.#url, text.replace(/^\?/, ""));
    this.#reload();
  }

  get searchParams() {
    if (this.#searchParams === undefined) {
      this.#searchParams = new URLSearchParams(this.#url.query ?? "");
      this.#searchParams[follow]((query) => (this.#url.query = query === "" ? null : query));
      this.#reload();
    }
    return this.#searchParams;
  }

  get hash() {
    const { fragment } = this.#url;
    return fragment === null || fragment === "" ? "" : `#${fragment}`;
  }

  set hash(value) {
    const text = clean(value);
    if (text === "") this.#url.fragment = null;
    else setFragment(this.#url, text.replace(/^#/, ""));
  }

  toString() {
    return this.href;
  }

  toJSON() {
    return this.href;
  }

  get [Symbol.toStringTag]() {
    return "URL";
  }

  #reload() {
    this.#searchParams?.[reload](this.#url.query ?? "");
  }

  /** Returns whether the URL can have credentials and a port. */
  #hasPort() {
    const { host, protocol } = this.#url;
    return host !== null && host !== "" && protocol !== "file:";
  }

  #setAuthority(value, hasPort) {
    if (typeof this.#url.path === "string") return;
    const end = isSpecial(this.#url) ? /[/\\?#].*$/s : /[/?#].*$/s;
    const text = clean(value).replace(end, "");
    const [, host, port] = /^((?:\[[^\]]*\]|[^:[])*)(?::(.*))?$/s.exec(text) ?? [];
    const hasAuthority = this.#url.username !== "" || this.#url.password !== "" || this.#url.port !== null;
    if (host === undefined || (host === "" && (hasAuthority || port !== undefined))) return;
    if (port !== undefined && (!hasPort || this.#url.protocol === "file:")) return;
    if (this.#url.protocol === "file:") {
      if (host === "") this.#url.host = "";
      else if (setHost(this.#url, host) && this.#url.host === "localhost") this.#url.host = "";
      return;
    }
    if (!setHost(this.#url, host)) return;
    const digits = /^[0-9]+/.exec(port ?? "")?.[0];
    if (digits !== undefined) setPort(this.#url, digits);
  }
}

/** Returns the parsed URL, or undefined if it or its base is invalid. */
function parsedWith(url, base) {
  const parsedBase = base === undefined ? undefined : parse(String(base));
  return base !== undefined && parsedBase === undefined ? undefined : parse(String(url), parsedBase);
}

function originOf({ protocol, host, port }) {
  return `${protocol}//${host}${port === null || port === defaultPort(protocol) ? "" : `:${port}`}`;
}

/** Drops the characters that the parser ignores. */
function clean(value) {
  return String(value).toWellFormed().replace(/[\t\n\r]/g, "");
}

function invalid(url, base) {
  const against = base === undefined ? "" : ` with the base ${JSON.stringify(String(base))}`;
  return Object.assign(new TypeError(`invalid URL ${JSON.stringify(String(url))}${against}`), { code: "ERR_INVALID_URL" });
}
