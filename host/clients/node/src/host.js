// The host: `Cofferdam`.

import { Calls } from "./calls.js";
import { Connection } from "./connection.js";
import { deferred, settledWithin } from "./deferred.js";
import { CofferdamError, HostExited, StartError } from "./errors.js";
import { findExecutable } from "./executable.js";
import { commandLine } from "./flags.js";
import { checkCallOptions, checkHostOptions } from "./options.js";
import { declaration } from "./requests.js";
import { encode } from "./wire.js";

/** @import { CallOptions, HostOptions, Result, Tool, UnavailableSource } from "./index.js" */
/** @import { Message } from "./wire.js" */

const PROTOCOL = 1;
/** Maximum time for canceled calls to end before the host ends. */
const CANCEL_MS_MAX = 2000;

export class Cofferdam {
  #connection;
  #calls;
  /** @type {Promise<void> | undefined} */
  #closing;

  /**
   * @private
   * @param {Message} ready
   * @param {Connection} connection
   * @param {Calls} calls
   */
  constructor(ready, connection, calls) {
    /** @type {string} */
    this.version = ready.version;
    /** @type {readonly Tool[]} */
    this.tools = ready.tools.map(tool);
    /** @type {readonly UnavailableSource[]} */
    this.unavailable = ready.unavailable;
    this.#connection = connection;
    this.#calls = calls;
  }

  /** @param {HostOptions} [options] */
  static async start(options = {}) {
    checkHostOptions(options);
    const { functions = [], approve, ask, onNote } = options;
    const byName = new Map(functions.map((tool) => [tool.name, tool]));
    if (byName.size < functions.length) {
      throw new CofferdamError("expected functions with different names, found a name twice");
    }
    /** @type {import("./deferred.js").Deferred<Message | undefined>} */
    const start = deferred();
    const executable = findExecutable(options.executable);
    const hello = encode({
      type: "hello",
      protocol: PROTOCOL,
      tools: functions.map(declaration),
      approves: true,
      answers: ask === undefined ? [] : ["form"],
    });
    const connection = new Connection(executable, commandLine(options), (message) => {
      if (message.type === "ready") start.resolve(message);
      // Errors of the function are uncaught, as those of a listener, and do not stop the reader.
      else if (message.type === "note") queueMicrotask(() => onNote?.(message.message));
      else calls.receive(message);
    });
    const calls = new Calls(connection, { functions: byName, approve, ask });
    connection.ended.then(() => {
      start.resolve(undefined);
      calls.end();
    });
    connection.hold();
    connection.sendLine(hello);
    const ready = await start.promise;
    connection.release();
    if (ready === undefined) throw connection.startError();
    if (ready.protocol !== PROTOCOL) {
      await connection.close();
      throw new StartError(
        `expected version ${PROTOCOL} of the protocol, found ${ready.protocol}: install versions ` +
          "of the package and the program that match",
      );
    }
    return new Cofferdam(ready, connection, calls);
  }

  /**
   * @template Value
   * @param {string} tool
   * @param {Readonly<Record<string, unknown>>} [args]
   * @param {CallOptions} [options]
   * @returns {Promise<Result<Value>>}
   */
  async call(tool, args, options) {
    const result = await this.run(tool, args, options);
    const error = result.error();
    if (error !== undefined) throw error;
    return /** @type {Result<Value>} */ (result);
  }

  /**
   * @template Value
   * @param {string} tool
   * @param {Readonly<Record<string, unknown>>} [args]
   * @param {CallOptions} [options]
   * @returns {Promise<Result<Value>>}
   */
  async run(tool, args = {}, options = {}) {
    checkCallOptions(options);
    if (this.#closing !== undefined) throw new HostExited("the host is closed");
    return /** @type {Result<Value>} */ (await this.#calls.run(tool, args, options));
  }

  close() {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }

  async #close() {
    await settledWithin(this.#calls.cancelAll(), CANCEL_MS_MAX);
    await this.#connection.close();
  }
}

/**
 * @param {Message} declared
 * @returns {Tool}
 */
function tool(declared) {
  const { read_only, destructive, idempotent, open_world, long_running } = declared.annotations;
  return {
    name: declared.name,
    title: declared.title,
    description: declared.description,
    inputSchema: declared.input_schema,
    outputSchema: declared.output_schema,
    annotations: {
      readOnly: read_only,
      destructive,
      idempotent,
      openWorld: open_world,
      longRunning: long_running,
    },
    source: declared.source,
    needsApproval: declared.needs_approval,
  };
}
