/** Bodies of requests and responses. */

import { URLSearchParams } from "../url/search.js";
import { ReadableStream, disturbed, drain } from "./streams.js";

const TEXT = "text/plain;charset=UTF-8";
const FORM = "application/x-www-form-urlencoded;charset=UTF-8";

/** Names the content of a body for `fetch`: null, bytes, or a stream. */
export const content = Symbol("content");

/** Names the function that copies the content of a body, for `clone`. */
export const fork = Symbol("fork");

/** Returns the content and the media type of an initial body. */
export function bodyOf(init) {
  if (init === undefined || init === null) return { content: null, type: null };
  if (init instanceof ReadableStream) {
    if (init.locked || init[disturbed]) throw new TypeError("the stream of the body has been read already, or has a reader");
    return { content: init, type: null };
  }
  if (init instanceof ArrayBuffer) return { content: new Uint8Array(init.slice(0)), type: null };
  if (ArrayBuffer.isView(init)) {
    return { content: new Uint8Array(init.buffer, init.byteOffset, init.byteLength).slice(), type: null };
  }
  if (typeof init === "object" && typeof init[Symbol.asyncIterator] === "function") {
    return { content: ReadableStream.from(init), type: null };
  }
  const type = init instanceof URLSearchParams ? FORM : TEXT;
  return { content: new TextEncoder().encode(String(init)), type };
}

/** The methods that requests and responses share. */
export class Body {
  #content;
  #stream;
  #isUsed = false;

  constructor(content) {
    this.#content = content;
  }

  get body() {
    if (this.#content === null) return null;
    this.#stream ??= this.#content instanceof ReadableStream ? this.#content : ReadableStream.from([this.#content]);
    return this.#stream;
  }

  get bodyUsed() {
    return this.#isUsed || this.#stream?.[disturbed] === true;
  }

  async arrayBuffer() {
    const bytes = await this.bytes();
    return bytes.buffer;
  }

  async bytes() {
    const taken = this[content]();
    return taken instanceof ReadableStream ? collect(taken) : (taken?.slice() ?? new Uint8Array());
  }

  json() {
    return this.text().then(JSON.parse);
  }

  text() {
    return this.bytes().then((bytes) => new TextDecoder().decode(bytes));
  }

  /** Takes the content, which is then used. */
  [content]() {
    if (this.bodyUsed || this.#stream?.locked) throw new TypeError("the body has been read already, or has a reader");
    if (this.#content === null) return null;
    this.#isUsed = true;
    return this.#stream ?? this.#content;
  }

  /** Returns the content for a copy of this message. */
  [fork]() {
    if (this.bodyUsed || this.#stream?.locked) throw new TypeError("a message whose body has been read cannot be copied");
    const stream = this.#stream ?? this.#content;
    if (!(stream instanceof ReadableStream)) return stream;
    const [kept, copied] = stream.tee();
    this.#stream = kept;
    this.#content = kept;
    return copied;
  }
}

async function collect(stream) {
  const chunks = [];
  let length = 0;
  await stream[drain]((chunk) => {
    if (!(chunk instanceof Uint8Array)) throw new TypeError("a chunk of the body is not a Uint8Array");
    chunks.push(chunk);
    length += chunk.length;
  });
  if (chunks.length === 1 && chunks[0].buffer.byteLength === length) return chunks[0];
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}
