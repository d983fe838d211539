/**
 * File stores in memory, as described in `wit/files.wit`. Globs and patterns are those of
 * JavaScript, not of the host.
 */

import { refusal } from "./refusal.js";

const bytewise = (a, b) => Buffer.compare(Buffer.from(a.name ?? a.path), Buffer.from(b.name ?? b.path));

export class MemoryStores {
  #stores;
  #readOnly;

  constructor(stores, readOnly) {
    const store = (files) => new Map(Object.entries(files).map(([path, content]) => [path, bytes(content)]));
    this.#stores = new Map(Object.entries(stores).map(([name, files]) => [name, store(files)]));
    this.#readOnly = new Set(readOnly);
  }

  text(store, path) {
    const content = this.#stores.get(store)?.get(path);
    return content === undefined ? undefined : new TextDecoder().decode(content);
  }

  stores() {
    return [...this.#stores.keys()].sort().map((name) => ({ name, writable: !this.#readOnly.has(name) }));
  }

  stat(store, path) {
    const files = this.#files(store, path);
    const content = files.get(path);
    if (content instanceof Uint8Array) return { type: "file", size: content.length };
    if (path !== "" && !isDirectory(files, path)) throw refusal({ tag: "not-found" });
    return { type: "directory", size: 0 };
  }

  read(store, path, offset, length) {
    const content = this.#files(store, path).get(path);
    if (!(content instanceof Uint8Array)) throw refusal({ tag: "not-found" });
    return content.slice(offset, Math.min(offset + length, content.length));
  }

  write(store, path, content, mode) {
    const files = this.#writable(store, path);
    const parents = path.split("/").slice(0, -1).map((_, index, parts) => parts.slice(0, index + 1).join("/"));
    const file = parents.find((parent) => files.get(parent) instanceof Uint8Array);
    if (file !== undefined) throw refusal({ tag: "wrong-type", val: `'${file}' is a file.` });
    if (path === "" || isDirectory(files, path)) throw refusal({ tag: "wrong-type", val: `'${path}' is a directory.` });
    if (mode === "create" && files.has(path)) throw refusal({ tag: "already-exists" });
    files.set(path, content.slice());
  }

  delete(store, path) {
    const files = this.#writable(store, path);
    if (!(files.get(path) instanceof Uint8Array)) throw refusal({ tag: "not-found" });
    files.delete(path);
  }

  createDirectory(store, path) {
    const files = this.#writable(store, path);
    if (path === "" || files.has(path) || isDirectory(files, path)) throw refusal({ tag: "already-exists" });
    // An empty directory has a key without content.
    files.set(path, null);
  }

  list(store, directory, glob, recursive) {
    const inside = directory === "" ? "" : `${directory}/`;
    const entries = new Map();
    for (const [path, content] of this.#files(store, directory)) {
      if (!path.startsWith(inside)) continue;
      const parts = path.slice(inside.length).split("/");
      const depth = recursive ? parts.length : 1;
      for (let length = 1; length <= depth; length++) {
        const isFile = length === parts.length && content !== null;
        entries.set(parts.slice(0, length).join("/"), isFile ? "file" : "directory");
      }
    }
    const listed = [...entries].map(([name, type]) => ({ name, type })).filter(({ name }) => matches(name, glob));
    const of = (type) => listed.filter((entry) => entry.type === type).sort(bytewise);
    return [...of("directory"), ...of("file")];
  }

  search(store, directory, { pattern, caseSensitive, glob, recursive }) {
    const expression = regular(pattern, caseSensitive ? "u" : "iu");
    const inside = directory === "" ? "" : `${directory}/`;
    const files = this.list(store, directory, glob, recursive).filter(({ type }) => type === "file");
    const found = files.map(({ name }) => {
      const lines = (this.text(store, inside + name) ?? "").split(/\r?\n/);
      const numbered = lines.map((text, index) => ({ number: index + 1, text }));
      const hits = numbered.filter(({ text }) => expression.test(text));
      return { path: inside + name, snippet: hits[0]?.text ?? "", lines: hits };
    });
    return { matches: found.filter(({ lines }) => lines.length > 0).sort(bytewise), truncated: false };
  }

  #files(store, path) {
    const files = this.#stores.get(store);
    if (files === undefined) throw refusal({ tag: "unknown-store" });
    const isBad = path !== "" && path.split("/").some((part) => part === "" || part === "." || part === "..");
    if (isBad) throw refusal({ tag: "invalid-path", val: `Invalid path: '${path}'.` });
    return files;
  }

  #writable(store, path) {
    const files = this.#files(store, path);
    if (this.#readOnly.has(store)) throw refusal({ tag: "read-only" });
    return files;
  }
}

function bytes(content) {
  return typeof content === "string" ? new TextEncoder().encode(content) : content.slice();
}

function isDirectory(files, path) {
  if (files.get(path) === null) return true;
  for (const other of files.keys()) if (other.startsWith(`${path}/`)) return true;
  return false;
}

function matches(path, glob) {
  if (glob === null) return true;
  const subject = glob.includes("/") ? path : path.split("/").at(-1);
  const parts = { "**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")", ",": "|", "[": "[", "]": "]" };
  const source = glob.replace(/\*\*\/|\*\*|[*?{},[\]]|[.+^$()|\\]/g, (part) => parts[part] ?? `\\${part}`);
  return regular(`^${source}$`, "iu").test(subject);
}

function regular(source, flags) {
  try {
    return new RegExp(source, flags);
  } catch (error) {
    throw refusal({ tag: "invalid-pattern", val: error.message });
  }
}
