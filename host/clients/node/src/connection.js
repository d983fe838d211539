// The process of the host and its messages.
//
// The process lives as long as its standard input, which the system closes when this program ends,
// however it ends. It keeps the event loop running only while something holds the connection.

import { spawn } from "node:child_process";

import { deferred, settledWithin } from "./deferred.js";
import { HostExited, StartError } from "./errors.js";
import { decode, encode, LineSplitter } from "./wire.js";

/** @import { ChildProcessByStdio } from "node:child_process" */
/** @import { Socket } from "node:net" */
/** @import { Message } from "./wire.js" */

/** Maximum characters of standard error in an error. */
const DETAIL_LENGTH_MAX = 16 * 1024;
/** Maximum time for standard error to end after the process, whose children may keep it open. */
const DETAIL_MS_MAX = 200;
/** Maximum time for the process to end after its standard input. */
const END_MS_MAX = 5000;

/** @typedef {ChildProcessByStdio<Socket, Socket, Socket>} Child */

export class Connection {
  /** @type {Child} */
  #child;
  #holders = 0;
  #detail = "";
  /** Message of `failed`, or another reason why the connection ended. */
  #reason = "";
  #isClosed = false;
  /** @type {string | undefined} */
  #spawnError;
  /** @type {import("./deferred.js").Deferred<undefined>} */
  #processEnd = deferred();

  /** Resolves when the process has ended and all of its messages have been received. */
  ended;

  /**
   * @param {string} executable
   * @param {readonly string[]} flags
   * @param {(message: Message) => void} receive
   */
  constructor(executable, flags, receive) {
    this.#child = start(executable, flags);
    const { stdin, stdout, stderr } = this.#child;
    const lines = new LineSplitter();
    stdout.on("data", (chunk) => {
      for (const line of lines.push(chunk)) this.#receive(line, receive);
    });
    stderr.setEncoding("utf8").on("data", (text) => {
      this.#detail = (this.#detail + text).slice(-DETAIL_LENGTH_MAX);
    });
    // A process that has ended reads nothing. Its end tells why.
    stdin.on("error", () => {});
    this.#child.once("exit", () => this.#processEnd.resolve(undefined));
    this.#child.once("error", (error) => {
      this.#spawnError = error.message;
      this.#processEnd.resolve(undefined);
    });
    this.ended = this.#end();
    this.#setHeld(false);
  }

  /** Sends a message. @param {Message} message */
  send(message) {
    this.sendLine(encode(message));
  }

  /** Sends an encoded message. @param {string} line */
  sendLine(line) {
    if (this.#child.stdin.writable) this.#child.stdin.write(line);
  }

  /** Keeps the event loop running until `release`. */
  hold() {
    if (this.#holders++ === 0) this.#setHeld(true);
  }

  release() {
    if (--this.#holders === 0) this.#setHeld(false);
  }

  /** Ends the process and waits for its end. */
  async close() {
    this.#isClosed = true;
    this.hold();
    this.#child.stdin.end();
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), END_MS_MAX);
    await this.ended;
    clearTimeout(timer);
    this.release();
  }

  /** Returns the error of a host that has not started. */
  startError() {
    const reason = this.#spawnError ?? (this.#reason || this.#detail.trim() || this.#exit());
    const exitCode = this.#child.exitCode ?? undefined;
    return new StartError(`the host did not start: ${reason}`, { exitCode });
  }

  /** Returns the error of calls that the end of the process has ended. */
  exitError() {
    const { exitCode, signalCode } = this.#child;
    return new HostExited(this.#isClosed ? "the host is closed" : this.#exit(), {
      exitCode: exitCode ?? undefined,
      signal: signalCode ?? undefined,
      detail: (this.#reason ? `${this.#reason}\n` : "") + this.#detail,
    });
  }

  #exit() {
    const { exitCode, signalCode } = this.#child;
    if (signalCode !== null) return `the host was ended by the signal \`${signalCode}\``;
    return `the host exited with code ${exitCode}`;
  }

  async #end() {
    const { stdout, stderr } = this.#child;
    const detailEnd = closed(stderr);
    await Promise.all([this.#processEnd.promise, closed(stdout)]);
    await settledWithin(detailEnd, DETAIL_MS_MAX);
    stderr.destroy();
  }

  /** @param {string} line @param {(message: Message) => void} receive */
  #receive(line, receive) {
    const message = decode(line);
    if (message === undefined) {
      this.#reason = "expected messages of `cofferdam pipe`, found a line that is not one";
      this.#child.kill("SIGKILL");
    } else if (message.type === "failed") {
      this.#reason = message.message;
    } else {
      receive(message);
    }
  }

  /** @param {boolean} isHeld */
  #setHeld(isHeld) {
    const { stdin, stdout, stderr } = this.#child;
    for (const handle of [this.#child, stdin, stdout, stderr]) {
      if (isHeld) handle.ref();
      else handle.unref();
    }
  }
}

/**
 * Starts the process.
 *
 * @param {string} executable
 * @param {readonly string[]} flags
 * @returns {Child}
 */
function start(executable, flags) {
  let child;
  try {
    child = spawn(executable, ["pipe", ...flags], { stdio: "pipe", windowsHide: true });
  } catch (cause) {
    throw new StartError(`the host did not start: ${/** @type {Error} */ (cause).message}`, {
      cause,
    });
  }
  if (child.stdin === undefined) {
    child.on("error", () => {});
    throw new StartError("the host did not start: this process has too many open files");
  }
  // Pipes of child processes are sockets.
  return /** @type {Child} */ (child);
}

/** @param {Socket} stream */
function closed(stream) {
  return new Promise((resolve) => stream.once("close", resolve));
}
