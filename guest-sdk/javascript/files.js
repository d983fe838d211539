/** The granted file stores. Documented in `files.d.ts`. */

import host from "#host/files";
import { bytes, count, optionalString, string } from "./checked.js";
import { ToolFailure } from "./failure.js";

const MESSAGES = {
  "unknown-store": "no store of that name was granted",
  "not-found": "not found",
  "already-exists": "it exists already",
  "read-only": "the store may only be read",
  "not-text": "the content is not UTF-8 text",
  unavailable: "the store cannot be reached at the moment",
};

export class FileError extends ToolFailure {
  constructor(code, detail, location) {
    const message = detail ?? MESSAGES[code] ?? code;
    super(location === undefined ? message : `${location}: ${message}`, { transient: code === "unavailable" ? true : undefined });
    this.code = code;
  }
}

FileError.prototype.name = "FileError";

export function granted() {
  return host.stores();
}

export function store(name) {
  return new Store(name);
}

/** `/data/reports/may.csv` is `reports/may.csv` in the store `data`. */
const LOCATION = /^\/([^/]+)(?:\/(.*))?$/s;

export function locate(location) {
  const [, name, path = ""] = LOCATION.exec(location) ?? [];
  const names = granted().map((store) => store.name);
  if (name !== undefined && names.includes(name)) return { store: store(name), path };
  const suggestion =
    names.length === 0
      ? "no store is granted; ask the user to grant one"
      : `pass a path that begins with ${names.map((name) => `/${name}/`).join(" or ")}`;
  throw new ToolFailure(`\`${location}\` is not in a store that was granted`, { suggestion, transient: false });
}

export class Store {
  constructor(name) {
    this.name = string(name, "the name of the store");
    Object.freeze(this);
  }

  stat(path) {
    return this.#host(path, (path) => host.stat(this.name, path));
  }

  exists(path) {
    try {
      this.stat(path);
      return true;
    } catch (error) {
      if (error.code === "not-found") return false;
      throw error;
    }
  }

  read(path, offset = 0, length = Number.MAX_SAFE_INTEGER) {
    const [from, most] = [count(offset, "`offset`"), count(length, "`length`")];
    return this.#host(path, (path) => host.read(this.name, path, from, most));
  }

  readText(path) {
    const bytes = this.read(path);
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
      throw new FileError("not-text", undefined, this.#location(path));
    }
  }

  create(path, content) {
    this.#write(path, content, "create");
  }

  replace(path, content) {
    this.#write(path, content, "replace");
  }

  delete(path) {
    this.#host(path, (path) => host.delete(this.name, path));
  }

  createDirectory(path) {
    this.#host(path, (path) => host.createDirectory(this.name, path));
  }

  list(directory = "", { glob, recursive = false } = {}) {
    const only = optionalString(glob, "`glob`");
    return this.#host(directory, (directory) => host.list(this.name, directory, only, Boolean(recursive)));
  }

  search(directory, pattern, { glob, caseSensitive = false, recursive = true } = {}) {
    const query = {
      pattern: string(pattern, "`pattern`"),
      caseSensitive: Boolean(caseSensitive),
      glob: optionalString(glob, "`glob`"),
      recursive: Boolean(recursive),
    };
    return this.#host(directory, (directory) => host.search(this.name, directory, query));
  }

  #write(path, content, mode) {
    const written = typeof content === "string" ? new TextEncoder().encode(content) : bytes(content, "the content");
    this.#host(path, (path) => host.write(this.name, path, written, mode));
  }

  #location(path) {
    return `\`/${this.name}${path === "" ? "" : `/${path}`}\``;
  }

  #host(path, act) {
    const checked = string(path, "the path");
    try {
      return act(checked);
    } catch (error) {
      const { tag, val } = error.payload ?? {};
      if (tag === undefined) throw error;
      throw new FileError(tag, val, this.#location(path));
    }
  }
}
