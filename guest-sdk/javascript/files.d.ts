/**
 * The file stores that are granted to the plugin. A component has no `node:fs`, so use this module
 * for files.
 *
 * A path is relative to its store, with `/` between segments and without `.`, `..` or a leading
 * `/`. The changes of a call become visible to others together when the tool has succeeded; if it
 * fails, the host drops them all.
 *
 * ```ts
 * import { store } from "cofferdam/files";
 *
 * const notes = store("notes");
 * const found = notes.search("", "TODO|FIXME", { glob: "*.md" });
 * notes.create("todo.txt", `${found.matches.length} files`);
 * ```
 *
 * @module cofferdam/files
 */

import { ToolFailure } from "./index.js";

/** Returns the granted stores, sorted by name. */
export function granted(): { name: string; writable: boolean }[];

/** Returns the store of this name. The name is not checked until the store is used. */
export function store(name: string): Store;

/**
 * Returns the store and the path in it for a path as models and users write it:
 * `/data/reports/may.csv` is `reports/may.csv` in the store `data`. Tools in languages with a file
 * API use the same paths.
 *
 * @throws {ToolFailure} if it is in no granted store. The message lists the granted stores.
 */
export function locate(location: string): { store: Store; path: string };

/**
 * A store with a given name. Methods throw a `FileError`; a failed operation has changed nothing.
 */
export class Store {
  private constructor();
  readonly name: string;

  /** Returns the metadata of the entry at a path; `""` is the root. */
  stat(path: string): Stat;
  /** Returns whether a file or directory exists. */
  exists(path: string): boolean;
  /** Reads a file: all of it, or at most `length` bytes from `offset`; fewer only at its end. */
  read(path: string, offset?: number, length?: number): Uint8Array;
  /** Reads a UTF-8 file as a string, including a byte order mark. `not-text` if it is not UTF-8. */
  readText(path: string): string;
  /**
   * Writes a new file atomically and creates missing parent directories. Of several concurrent
   * creators exactly one succeeds.
   */
  create(path: string, content: string | Uint8Array): void;
  /**
   * Writes a whole file atomically, whether it exists or not, and creates missing parent
   * directories.
   */
  replace(path: string, content: string | Uint8Array): void;
  /** Deletes a file. `not-found` for a directory. */
  delete(path: string): void;
  /** Creates a directory and its missing parents. `already-exists` if it exists. */
  createDirectory(path: string): void;
  /**
   * Lists a directory: directories first, then files, each sorted bytewise by name; with
   * `recursive`, all entries below, with their path relative to it. A missing directory has none.
   * `glob` (`*`, `?`, `**`, `[ab]`, `{a,b}`, case ignored) selects the entries to list.
   */
  list(directory?: string, options?: { glob?: string; recursive?: boolean }): Entry[];
  /**
   * Searches the text files below a directory. The host runs the search, which is faster than
   * reading all files. `pattern` is in the syntax of the Rust `regex` crate, at most 256
   * characters, matched per line. `recursive` is true by default.
   */
  search(
    directory: string,
    pattern: string,
    options?: { glob?: string; caseSensitive?: boolean; recursive?: boolean },
  ): Found;
}

export type EntryType = "file" | "directory";

export interface Stat {
  type: EntryType;
  /** Length in bytes; 0 for a directory. */
  size: number;
}

export interface Entry {
  /** Name. In a recursive listing, the path relative to the listed directory. */
  name: string;
  type: EntryType;
}

export interface Found {
  /** The matching files, sorted bytewise by path. */
  matches: Match[];
  /** True if matches were dropped because there were too many. */
  truncated: boolean;
}

export interface Match {
  /** Path in the store. */
  path: string;
  /** The text around the first match. */
  snippet: string;
  /** The matching lines, with numbers from 1. */
  lines: { number: number; text: string }[];
}

/** Reason of a `FileError`. */
export type FileErrorCode =
  | "unknown-store"
  | "not-found"
  | "already-exists"
  | "wrong-type"
  | "invalid-path"
  | "read-only"
  | "denied"
  | "limit"
  | "invalid-pattern"
  | "not-text"
  | "unavailable";

/** Error of an operation. If it is not caught, it is reported to the model, with the path. */
export class FileError extends ToolFailure {
  /** Creates an error from its reason, the host's message and the path. */
  constructor(code: FileErrorCode, detail?: string, location?: string);
  readonly code: FileErrorCode;
}
