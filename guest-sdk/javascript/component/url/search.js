/** `URLSearchParams`. */

import { FORM, percentDecode, percentEncode } from "./percent.js";

const encoded = (text) => percentEncode(text, FORM).replaceAll("%20", "+");
const decoded = (text) => percentDecode(text.replaceAll("+", " "));

/** Parses `application/x-www-form-urlencoded` to pairs. */
function pairsOf(text) {
  const parts = text.toWellFormed().split("&").filter((part) => part !== "");
  return parts.map((part) => {
    const equals = part.indexOf("=");
    const [name, value] = equals < 0 ? [part, ""] : [part.slice(0, equals), part.slice(equals + 1)];
    return [decoded(name), decoded(value)];
  });
}

/** Names the query of a URL, which changes with its parameters. */
export const follow = Symbol("follow");
export const reload = Symbol("reload");

export class URLSearchParams {
  #pairs = [];
  #changed = () => {};

  constructor(init = "") {
    if (typeof init === "function" || (typeof init === "object" && init !== null)) this.#pairs = initialPairs(init);
    else this.#pairs = pairsOf(String(init).replace(/^\?/, ""));
  }

  /** Calls `changed` with the serialized parameters after each change. */
  [follow](changed) {
    this.#changed = () => changed(this.toString());
  }

  [reload](query) {
    this.#pairs = pairsOf(query);
  }

  get size() {
    return this.#pairs.length;
  }

  append(name, value) {
    this.#pairs.push([text(name), text(value)]);
    this.#changed();
  }

  delete(name, value) {
    const isKept = ([key, held]) => key !== text(name) || (value !== undefined && held !== text(value));
    this.#pairs = this.#pairs.filter(isKept);
    this.#changed();
  }

  get(name) {
    return this.#pairs.find(([key]) => key === text(name))?.[1] ?? null;
  }

  getAll(name) {
    return this.#pairs.filter(([key]) => key === text(name)).map(([, value]) => value);
  }

  has(name, value) {
    return this.#pairs.some(([key, held]) => key === text(name) && (value === undefined || held === text(value)));
  }

  set(name, value) {
    const first = this.#pairs.find(([key]) => key === text(name));
    if (first === undefined) return this.append(name, value);
    first[1] = text(value);
    this.#pairs = this.#pairs.filter((pair) => pair === first || pair[0] !== first[0]);
    this.#changed();
  }

  sort() {
    this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    this.#changed();
  }

  forEach(act, receiver) {
    for (const [name, value] of this) act.call(receiver, value, name, this);
  }

  *entries() {
    for (const [name, value] of this.#pairs) yield [name, value];
  }

  *keys() {
    for (const [name] of this.#pairs) yield name;
  }

  *values() {
    for (const [, value] of this.#pairs) yield value;
  }

  [Symbol.iterator]() {
    return this.entries();
  }

  toString() {
    return this.#pairs.map(([name, value]) => `${encoded(name)}=${encoded(value)}`).join("&");
  }

  get [Symbol.toStringTag]() {
    return "URLSearchParams";
  }
}

function text(value) {
  return String(value).toWellFormed();
}

function initialPairs(init) {
  if (typeof init[Symbol.iterator] !== "function") {
    return Reflect.ownKeys(init).map((name) => [text(name), text(init[name])]);
  }
  return Array.from(init, (pair) => {
    const items = [...pair];
    if (items.length !== 2) throw new TypeError("a pair of URLSearchParams has a name and a value");
    return items.map(text);
  });
}
