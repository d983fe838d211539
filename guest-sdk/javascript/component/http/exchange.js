/** One request and its response, over `wasi:http`. */

import { loop } from "#host/loop";
import handler from "host:http/outgoing-handler@0.2.11";
import types from "host:http/types@0.2.11";
import { failed, requestError } from "./errors.js";
import { ReadableStream } from "./streams.js";

const READ_BYTES = 65_536;
const METHODS = ["get", "head", "post", "put", "delete", "connect", "options", "trace", "patch"];

/**
 * Maximum number of requests that wait for a response at one time; the others wait for their turn.
 * Each needs a few of the handles that the host allows a call.
 */
const WAITING_MAX = 32;
const waiting = new Set();
/** Functions that give an exchange its turn. */
const queue = new Map();

/**
 * Sends a request of a `method`, a `url`, pairs of `headers`, a `content` (null, bytes or a stream)
 * and a `signal`, and waits for the head of the response: its `status`, and pairs of `headers`.
 * Then exactly one of its functions is called: `body` returns a stream, and `close` drops the body.
 */
export function send(request) {
  const exchange = new Exchange(request.url, request.signal);
  return exchange.run(request).catch((error) => {
    exchange.close();
    throw error;
  });
}

class Exchange {
  #url;
  #signal;
  /** Open handles of the host, each after the one that it belongs to. */
  #handles = new Set();
  #aborted = Promise.withResolvers();
  #close = () => this.close();
  #abort = () => {
    this.#aborted.reject(this.#signal.reason);
    this.close();
  };

  constructor(url, signal) {
    this.#url = url;
    this.#signal = signal;
    this.#aborted.promise.catch(() => {});
    signal.addEventListener("abort", this.#abort);
    loop.keep(this.#close);
  }

  /** Drops the request or the response. The host then ends the connection. */
  close() {
    loop.release(this.#close);
    this.#endTurn();
    this.#signal.removeEventListener("abort", this.#abort);
    for (const handle of [...this.#handles].reverse()) this.#drop(handle);
  }

  async run({ method, headers, content }) {
    if (waiting.size < WAITING_MAX) waiting.add(this);
    else await Promise.race([new Promise((resolve) => queue.set(this, resolve)), this.#aborted.promise]);
    const outgoing = this.#outgoing(method, headers);
    const body = content === null ? undefined : this.#open(outgoing.body());
    this.#handles.delete(outgoing);
    const future = this.#open(this.#denoted(() => handler.handle(outgoing, null)));
    const ends = [this.#response(future), this.#aborted.promise];
    if (body !== undefined) ends.push(failureOf(this.#upload(body, content)));
    const response = await Promise.race(ends);
    this.#endTurn();
    return this.#incoming(response);
  }

  #endTurn() {
    queue.delete(this);
    if (!waiting.delete(this)) return;
    const [next] = queue;
    if (next === undefined) return;
    const [exchange, begin] = next;
    queue.delete(exchange);
    waiting.add(exchange);
    begin();
  }

  #outgoing(method, headers) {
    const fields = this.#open(new types.Fields());
    for (const [name, value] of headers) {
      try {
        fields.append(name, latin1(value));
      } catch (error) {
        // As in browsers, headers that a program may not set are ignored.
        if (error.payload?.tag !== "forbidden") throw new TypeError(`the header ${name} is invalid`);
      }
    }
    this.#handles.delete(fields);
    const outgoing = this.#open(new types.OutgoingRequest(fields));
    const { protocol, host, pathname, search } = this.#url;
    const known = METHODS.find((name) => name.toUpperCase() === method);
    outgoing.setMethod(known === undefined ? { tag: "other", val: method } : { tag: known });
    outgoing.setScheme({ tag: protocol === "https:" ? "HTTPS" : "HTTP" });
    outgoing.setAuthority(host);
    outgoing.setPathWithQuery(pathname + search);
    return outgoing;
  }

  async #response(future) {
    await this.#ready(future);
    const { tag, val } = future.get() ?? {};
    if (tag !== "ok") throw requestError(this.#url);
    this.#drop(future);
    if (val.tag === "err") throw requestError(this.#url, val.val);
    return this.#open(val.val);
  }

  #incoming(response) {
    const fields = this.#open(response.headers());
    const headers = fields.entries().map(([name, value]) => [name, fromLatin1(value)]);
    this.#drop(fields);
    return {
      status: response.status(),
      headers,
      body: () => this.#download(response, contentLength(headers)),
      close: () => this.close(),
    };
  }

  /** Returns a stream of a body of `length` bytes; Infinity if the response does not say. */
  #download(response, length) {
    let left = length;
    const input = this.#open(this.#open(response.consume()).stream());
    this.#drop(response);
    return new ReadableStream(
      {
        start: (controller) => void this.#aborted.promise.catch((reason) => controller.error(reason)),
        pull: async (controller) => {
          let bytes = this.#read(input);
          while (bytes?.length === 0) {
            await this.#ready(input);
            bytes = this.#read(input);
          }
          if (bytes !== undefined) {
            controller.enqueue(bytes);
            left -= bytes.length;
            // A read at the end would throw, which takes as long as the whole read of a short body.
            if (left > 0) return;
          }
          this.close();
          controller.close();
        },
        cancel: () => this.close(),
      },
      { highWaterMark: 0 },
    );
  }

  /** Returns bytes, none if the host has none yet, or undefined at the end. */
  #read(input) {
    try {
      return input.read(READ_BYTES);
    } catch (error) {
      if (error.payload?.tag === "closed") return undefined;
      const told = this.#streamError(error);
      this.close();
      throw told;
    }
  }

  /**
   * Sends a body. A failure of the connection is not reported here, because the response tells it,
   * or a server has responded before it has read the body.
   */
  async #upload(body, content) {
    const output = this.#open(body.write());
    try {
      for await (const chunk of content instanceof Uint8Array ? [content] : content) {
        if (!(chunk instanceof Uint8Array)) throw new TypeError("a chunk of the body is not a Uint8Array");
        await this.#write(output, chunk);
      }
      output.flush();
      await this.#room(output);
    } catch (error) {
      if (error?.payload?.tag === undefined) throw failed(error instanceof Error ? error : new Error(String(error)));
      error.payload.val?.[Symbol.dispose]();
      return;
    }
    this.#drop(output);
    this.#handles.delete(body);
    this.#denoted(() => types.OutgoingBody.finish(body, null));
  }

  async #write(output, bytes) {
    for (let start = 0; start < bytes.length; ) {
      const end = start + (await this.#room(output));
      output.write(bytes.subarray(start, end));
      start = end;
    }
  }

  /** Waits until the host accepts bytes, and returns their number. */
  async #room(output) {
    for (;;) {
      const room = output.checkWrite();
      if (room > 0) return room;
      await this.#ready(output);
    }
  }

  /** Waits for a handle with the method `subscribe`. */
  #ready(handle) {
    const pollable = this.#open(handle.subscribe());
    return loop.ready(pollable).then(() => this.#drop(pollable));
  }

  #open(handle) {
    this.#handles.add(handle);
    return handle;
  }

  #drop(handle) {
    if (!this.#handles.delete(handle)) return;
    loop.forget(handle);
    handle[Symbol.dispose]();
  }

  /** Calls a function that throws an `error-code`. */
  #denoted(act) {
    try {
      return act();
    } catch (error) {
      throw requestError(this.#url, error.payload);
    }
  }

  #streamError({ payload }) {
    if (payload?.tag !== "last-operation-failed") return requestError(this.#url);
    try {
      return requestError(this.#url, types.httpErrorCode(payload.val) ?? undefined);
    } finally {
      payload.val[Symbol.dispose]();
    }
  }
}

/** Returns a promise that rejects as `promise` does, and never resolves. */
function failureOf(promise) {
  return new Promise((_, reject) => promise.catch(reject));
}

function contentLength(headers) {
  const [, value] = headers.find(([name]) => name.toLowerCase() === "content-length") ?? [];
  return value !== undefined && /^[0-9]+$/.test(value) ? Number(value) : Infinity;
}

function latin1(text) {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

function fromLatin1(bytes) {
  return String.fromCharCode(...bytes);
}
