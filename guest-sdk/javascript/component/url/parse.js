/** The parser of the URL standard, and the serializer. */

import { parseHost } from "./host.js";
import { CONTROLS, FRAGMENT, PATH, QUERY, SPECIAL_QUERY, USERINFO, percentEncode } from "./percent.js";

const DEFAULT_PORTS = { "ftp:": 21, "file:": null, "http:": 80, "https:": 443, "ws:": 80, "wss:": 443 };
const PORT_MAX = 65_535;
const SCHEME = /^([a-z][a-z0-9+.-]*):/i;
const DRIVE = /^[a-z][:|]$/i;
const NORMAL_DRIVE = /^[a-z]:$/i;
/** A drive letter at the beginning of a path. */
const STARTS_WITH_DRIVE = /^[a-z][:|](?:[/\\?#]|$)/i;
const SINGLE_DOT = /^(?:\.|%2e)$/i;
const DOUBLE_DOT = /^(?:\.|%2e){2}$/i;

export function isSpecial({ protocol }) {
  return Object.hasOwn(DEFAULT_PORTS, protocol);
}

/** Returns the port without which a URL of this protocol is written, or undefined. */
export function defaultPort(protocol) {
  return Object.hasOwn(DEFAULT_PORTS, protocol) ? DEFAULT_PORTS[protocol] : undefined;
}

/**
 * Parses a URL. Returns a record of its parts, or undefined if it is invalid: `host` and `query`
 * and `fragment` are null if they are missing, and `path` is a string if it is opaque, otherwise an
 * array of segments.
 */
export function parse(text, base) {
  const input = text.toWellFormed().replace(/^[\0-\x20]+|[\0-\x20]+$/g, "").replace(/[\t\n\r]/g, "");
  const { head, query, fragment } = split(input);
  const scheme = SCHEME.exec(head)?.[0];
  const url = { protocol: scheme?.toLowerCase(), username: "", password: "", host: null, port: null, path: [], query: null, fragment: null };
  if (scheme === undefined && typeof base?.path === "string" && input[0] !== "#") return undefined;
  const isParsed = scheme === undefined ? parseRelative(url, head, query, base) : parseAbsolute(url, head.slice(scheme.length), query, base);
  if (!isParsed) return undefined;
  if (query !== undefined) setQuery(url, query);
  if (fragment !== undefined) url.fragment = percentEncode(fragment, FRAGMENT);
  return url;
}

/** Splits the query and the fragment off. */
function split(input) {
  const hash = input.indexOf("#");
  const rest = hash < 0 ? input : input.slice(0, hash);
  const mark = rest.indexOf("?");
  return {
    head: mark < 0 ? rest : rest.slice(0, mark),
    query: mark < 0 ? undefined : rest.slice(mark + 1),
    fragment: hash < 0 ? undefined : input.slice(hash + 1),
  };
}

function parseAbsolute(url, rest, query, base) {
  if (url.protocol === "file:") return parseFile(url, rest, query, base?.protocol === "file:" ? base : undefined);
  if (isSpecial(url)) {
    // A special scheme without slashes, such as `http:a`, is relative to a base of the same scheme.
    if (base?.protocol === url.protocol && !/^[/\\]{2}/.test(rest)) return parseAgainst(url, rest, query, base);
    return parseAuthority(url, rest.replace(/^[/\\]+/, ""));
  }
  if (rest.startsWith("//")) return parseAuthority(url, rest.slice(2));
  if (rest.startsWith("/")) return setPath(url, rest);
  url.path = percentEncode(rest, CONTROLS);
  return true;
}

function parseRelative(url, head, query, base) {
  if (base === undefined) return false;
  url.protocol = base.protocol;
  if (typeof base.path === "string") {
    Object.assign(url, { path: base.path, query: base.query });
    return true;
  }
  return base.protocol === "file:" ? parseFile(url, head, query, base) : parseAgainst(url, head, query, base);
}

function parseAgainst(url, rest, query, base) {
  const isAuthority = isSpecial(url) ? /^[/\\]{2}/.test(rest) : rest.startsWith("//");
  if (isAuthority) return parseAuthority(url, isSpecial(url) ? rest.replace(/^[/\\]+/, "") : rest.slice(2));
  const { username, password, host, port } = base;
  Object.assign(url, { username, password, host, port });
  const isRooted = rest.startsWith("/") || (isSpecial(url) && rest.startsWith("\\"));
  if (isRooted) return setPath(url, rest);
  url.path = [...base.path];
  if (rest === "") {
    if (query === undefined) url.query = base.query;
    return true;
  }
  url.path.pop();
  return appendPath(url, rest);
}

function parseFile(url, rest, query, base) {
  url.host = "";
  if (/^[/\\]{2}/.test(rest)) return parseFileHost(url, rest.slice(2));
  if (/^[/\\]/.test(rest)) {
    if (base !== undefined) {
      url.host = base.host;
      const isDriveKept = NORMAL_DRIVE.test(base.path[0] ?? "") && !STARTS_WITH_DRIVE.test(rest.slice(1));
      if (isDriveKept) url.path.push(base.path[0]);
    }
    return appendPath(url, rest.slice(1));
  }
  if (base === undefined) return appendPath(url, rest);
  Object.assign(url, { host: base.host, path: [...base.path] });
  if (rest === "") {
    if (query === undefined) url.query = base.query;
    return true;
  }
  if (STARTS_WITH_DRIVE.test(rest)) url.path = [];
  else shorten(url);
  return appendPath(url, rest);
}

function parseFileHost(url, rest) {
  const [, authority, path] = /^([^/\\]*)(.*)$/s.exec(rest);
  if (DRIVE.test(authority)) return appendPath(url, rest);
  if (authority !== "") {
    const host = parseHost(authority, true);
    if (host === undefined) return false;
    url.host = host === "localhost" ? "" : host;
  }
  return appendPath(url, path.slice(1));
}

/** Parses `user:password@host:port/path`. */
function parseAuthority(url, rest) {
  const [, authority, path] = (isSpecial(url) ? /^([^/\\]*)(.*)$/s : /^([^/]*)(.*)$/s).exec(rest);
  const at = authority.lastIndexOf("@");
  if (at >= 0) {
    const colon = authority.indexOf(":");
    const hasPassword = colon >= 0 && colon < at;
    url.username = percentEncode(authority.slice(0, hasPassword ? colon : at), USERINFO);
    url.password = hasPassword ? percentEncode(authority.slice(colon + 1, at), USERINFO) : "";
  }
  const [, host, port] = /^((?:\[[^\]]*\]|[^:[])*)(?::(.*))?$/s.exec(authority.slice(at + 1)) ?? [];
  if (host === undefined) return false;
  if (host === "" && (isSpecial(url) || at >= 0 || port !== undefined)) return false;
  if (!setHost(url, host)) return false;
  if (port !== undefined && !setPort(url, port)) return false;
  return setPath(url, path);
}

/** Sets the host. Returns false if it is invalid. */
export function setHost(url, text) {
  const host = text === "" && !isSpecial(url) ? "" : parseHost(text, isSpecial(url));
  if (host === undefined) return false;
  url.host = host;
  return true;
}

/** Sets the port. Returns false if it is invalid. */
export function setPort(url, text) {
  if (text === "") {
    url.port = null;
    return true;
  }
  if (!/^[0-9]+$/.test(text) || Number(text) > PORT_MAX) return false;
  const port = Number(text);
  url.port = port === defaultPort(url.protocol) ? null : port;
  return true;
}

export function setQuery(url, text) {
  url.query = percentEncode(text, isSpecial(url) ? SPECIAL_QUERY : QUERY);
}

export function setFragment(url, text) {
  url.fragment = percentEncode(text, FRAGMENT);
}

export function setUserinfo(url, part, text) {
  url[part] = percentEncode(text, USERINFO);
}

/** Sets a path that is not opaque. */
export function setPath(url, text) {
  url.path = [];
  if (isSpecial(url)) return appendPath(url, text.replace(/^[/\\]/, ""));
  if (text === "" && url.host !== null) return true;
  return appendPath(url, text.replace(/^\//, ""));
}

function appendPath(url, text) {
  const segments = text.split(isSpecial(url) ? /[/\\]/ : "/");
  for (const [index, segment] of segments.entries()) {
    const isLast = index === segments.length - 1;
    if (DOUBLE_DOT.test(segment)) {
      shorten(url);
      if (isLast) url.path.push("");
    } else if (SINGLE_DOT.test(segment)) {
      if (isLast) url.path.push("");
    } else if (url.protocol === "file:" && url.path.length === 0 && DRIVE.test(segment)) {
      url.path.push(`${segment[0]}:`);
    } else {
      url.path.push(percentEncode(segment, PATH));
    }
  }
  return true;
}

function shorten({ protocol, path }) {
  const isDrive = protocol === "file:" && path.length === 1 && NORMAL_DRIVE.test(path[0]);
  if (!isDrive) path.pop();
}

/** Changes the scheme as a setter may. */
export function setProtocol(url, text) {
  const protocol = SCHEME.exec(`${text}:`)?.[0].toLowerCase();
  if (protocol === undefined || isSpecial({ protocol }) !== isSpecial(url)) return;
  const hasAuthority = url.username !== "" || url.password !== "" || url.port !== null;
  if (protocol === "file:" && hasAuthority) return;
  if (url.protocol === "file:" && url.host === "") return;
  url.protocol = protocol;
  if (url.port === defaultPort(protocol)) url.port = null;
}

export function serializePath({ path }) {
  return typeof path === "string" ? path : path.map((segment) => `/${segment}`).join("");
}

export function serialize(url, { fragment = true } = {}) {
  const { protocol, username, password, host, port, path, query } = url;
  let text = protocol;
  if (host !== null) {
    text += "//";
    if (username !== "" || password !== "") text += `${username}${password === "" ? "" : `:${password}`}@`;
    text += host + (port === null ? "" : `:${port}`);
  } else if (typeof path !== "string" && path.length > 1 && path[0] === "") {
    text += "/.";
  }
  text += serializePath(url);
  if (query !== null) text += `?${query}`;
  return fragment && url.fragment !== null ? `${text}#${url.fragment}` : text;
}
