/**
 * The file stores that were granted to the plugin. There is no `node:fs` in a component: this is the way to files.
 *
 * A path is relative to its store, with `/` between segments and without `.`, `..` or a leading `/`. The changes of a call become
 * visible to others together when the tool has succeeded; if it fails, none remain.
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

/** The stores that were granted, by name. */
export function granted(): { name: string; writable: boolean }[];

/** The store of that name. Naming one asks for nothing: whether it was granted shows when it is used. */
export function store(name: string): Store;

/**
 * The store and the path in it of a place as models and people write it: `/data/reports/may.csv` is `reports/may.csv` in the
 * store `data`. The same places are the paths of files for tools in languages with a file API.
 *
 * @throws {ToolFailure} if it is in no store that was granted. It says which there are.
 */
export function locate(place: string): { store: Store; path: string };

/** Every method throws a `FileError` for what it refuses, and has changed nothing then. */
export class Store {
  private constructor();
  readonly name: string;

  /** What is at a path; `""` is the root. */
  stat(path: string): Stat;
  /** Whether there is a file or directory. */
  exists(path: string): boolean;
  /** The bytes of a file: all of them, or at most `length` from `offset` on. Fewer come back only at its end. */
  read(path: string, offset?: number, length?: number): Uint8Array;
  /** The text of a file in UTF-8; a mark of byte order stays. `not-text` if it is something else. */
  readText(path: string): string;
  /** Writes a new file in one step, and directories above it. Of several that create it exactly one succeeds. */
  create(path: string, content: string | Uint8Array): void;
  /** Writes a whole file in one step, whether it is there or not, and directories above it. */
  replace(path: string, content: string | Uint8Array): void;
  /** Deletes a file. A directory is `not-found`. */
  delete(path: string): void;
  /** Creates a directory and those above it. One that is there is `already-exists`. */
  createDirectory(path: string): void;
  /**
   * The children of a directory: directories first, then files, each bytewise by name; with `recursive` all below, by their path
   * from it. A missing directory has none. Only what matches `glob` (`*`, `?`, `**`, `[ab]`, `{a,b}`, case ignored) is listed.
   */
  list(directory?: string, options?: { glob?: string; recursive?: boolean }): Entry[];
  /**
   * Searches the text files below a directory, at the speed of the host: read what was found, not everything. `pattern` is in
   * the syntax of the Rust `regex` crate, at most 256 characters, matched per line. `recursive` is true unless it says otherwise.
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
  /** The name; in a recursive listing the path from the listed directory. */
  name: string;
  type: EntryType;
}

export interface Found {
  /** The matching files, bytewise by path. */
  matches: Match[];
  /** Whether something was left out because there was too much. */
  truncated: boolean;
}

export interface Match {
  /** The path in the store. */
  path: string;
  /** The text around the first match. */
  snippet: string;
  /** The lines that match, counted from 1. */
  lines: { number: number; text: string }[];
}

/** Why an operation was refused. */
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

/** An operation was refused. One that nobody catches is reported to the model, with the path. */
export class FileError extends ToolFailure {
  /** `code` says what happened, `detail` what the host says of it, `place` where. */
  constructor(code: FileErrorCode, detail?: string, place?: string);
  readonly code: FileErrorCode;
}
