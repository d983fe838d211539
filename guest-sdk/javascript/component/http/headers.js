/** `Headers`, as in the fetch standard. */

const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;
/** Values are bytes, written as the characters U+0000 to U+00FF. */
const VALUE = /^[^\0\r\n\u0100-\uffff]*$/;

export class Headers {
  /** Values by lower-case name. */
  #values = new Map();

  constructor(init) {
    if (init === undefined || init === null) return;
    if (typeof init !== "object" && typeof init !== "function") throw new TypeError("headers are an object, or pairs of a name and a value");
    const isList = typeof init[Symbol.iterator] === "function";
    for (const pair of isList ? init : Object.entries(init)) {
      const items = [...pair];
      if (items.length !== 2) throw new TypeError("a header has a name and a value");
      this.append(...items);
    }
  }

  append(name, value) {
    const [key, text] = [checkedName(name), checkedValue(name, value)];
    if (this.#values.has(key)) this.#values.get(key).push(text);
    else this.#values.set(key, [text]);
  }

  delete(name) {
    this.#values.delete(checkedName(name));
  }

  get(name) {
    return this.#values.get(checkedName(name))?.join(", ") ?? null;
  }

  getSetCookie() {
    return [...(this.#values.get("set-cookie") ?? [])];
  }

  has(name) {
    return this.#values.has(checkedName(name));
  }

  set(name, value) {
    this.#values.set(checkedName(name), [checkedValue(name, value)]);
  }

  forEach(act, receiver) {
    for (const [name, value] of this) act.call(receiver, value, name, this);
  }

  *entries() {
    for (const name of [...this.#values.keys()].sort()) {
      const values = this.#values.get(name);
      if (name === "set-cookie") for (const value of values) yield [name, value];
      else yield [name, values.join(", ")];
    }
  }

  *keys() {
    for (const [name] of this.entries()) yield name;
  }

  *values() {
    for (const [, value] of this.entries()) yield value;
  }

  [Symbol.iterator]() {
    return this.entries();
  }

  get [Symbol.toStringTag]() {
    return "Headers";
  }
}

function checkedName(name) {
  const text = String(name);
  if (!NAME.test(text)) throw new TypeError(`${JSON.stringify(text)} is no name of a header`);
  return text.toLowerCase();
}

function checkedValue(name, value) {
  const text = String(value).replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
  if (!VALUE.test(text)) throw new TypeError(`the header ${name} has a line break or a character beyond U+00FF`);
  return text;
}
