/**
 * `TextEncoder` and `TextDecoder` for UTF-8, which the engine does not have.
 *
 * Uses built-in functions of the engine on pieces of the input: for mostly ASCII input, a loop over
 * the bytes takes ten times as long.
 */

/**
 * Number of bytes or characters per piece. The conversion temporarily needs up to nine times this
 * size.
 */
const PIECE = 65_536;
const NOT_ASCII = /[^\0-\x7f]/;

export class Encoder {
  get encoding() {
    return "utf-8";
  }

  encode(text = "") {
    const written = String(text).toWellFormed();
    if (written.length <= PIECE) return encodePiece(written);
    const pieces = [];
    for (let start = 0; start < written.length; ) {
      const end = textEnd(written, start);
      pieces.push(encodePiece(written.slice(start, end)));
      start = end;
    }
    return joined(pieces);
  }

  encodeInto(text, target) {
    let read = 0;
    let written = 0;
    for (const character of String(text)) {
      const bytes = this.encode(character);
      if (written + bytes.length > target.length) break;
      target.set(bytes, written);
      written += bytes.length;
      read += character.length;
    }
    return { read, written };
  }
}

export class Decoder {
  #fatal;
  #ignoreBOM;
  /** Bytes of an incomplete character at the end of the last piece. */
  #rest = new Uint8Array();
  #isStarted = false;

  constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
    if (!/^\s*(?:utf-?8|unicode-1-1-utf-8)\s*$/i.test(label)) throw new RangeError(`there is no decoder for ${label}, only for utf-8`);
    this.#fatal = fatal;
    this.#ignoreBOM = ignoreBOM;
  }

  get encoding() {
    return "utf-8";
  }

  get fatal() {
    return this.#fatal;
  }

  get ignoreBOM() {
    return this.#ignoreBOM;
  }

  decode(input = new Uint8Array(), { stream = false } = {}) {
    const given = ArrayBuffer.isView(input)
      ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength)
      : new Uint8Array(input);
    const bytes = this.#rest.length === 0 ? given : joined([this.#rest, given]);
    const end = stream ? completeEnd(bytes) : bytes.length;
    this.#rest = bytes.slice(end);
    const text = decode(bytes.subarray(0, end), this.#fatal);
    const hasMark = !this.#isStarted && !this.#ignoreBOM && text.startsWith("\ufeff");
    this.#isStarted = stream && (this.#isStarted || text !== "");
    return hasMark ? text.slice(1) : text;
  }
}

function encodePiece(text) {
  return fromLatin1(NOT_ASCII.test(text) ? unescape(encodeURIComponent(text)) : text);
}

/** Returns the end of a piece of a string that splits no character. */
function textEnd(text, start) {
  const end = start + PIECE;
  const last = text.charCodeAt(end - 1);
  return last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
}

function joined(pieces) {
  const bytes = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

function decode(bytes, fatal) {
  const pieces = [];
  for (let start = 0; start < bytes.length; ) {
    const end = bytesEnd(bytes, start);
    pieces.push(decodePiece(bytes.subarray(start, end), fatal));
    start = end;
  }
  return pieces.length === 1 ? pieces[0] : pieces.join("");
}

/** Returns the end of a piece of bytes that splits no character. */
function bytesEnd(bytes, start) {
  let end = Math.min(start + PIECE, bytes.length);
  for (let back = 0; back < 3 && end < bytes.length && (bytes[end] & 0xc0) === 0x80; back++) end--;
  return end;
}

/** Returns the end of the last character that is complete. */
function completeEnd(bytes) {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back];
    if ((byte & 0xc0) === 0x80) continue;
    return sequence(byte).length > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

function decodePiece(bytes, fatal) {
  const latin1 = atob(bytes.toBase64());
  if (!NOT_ASCII.test(latin1)) return latin1;
  try {
    return decodeURIComponent(escape(latin1));
  } catch {
    if (fatal) throw new TypeError("the bytes are not UTF-8");
    return decodeLeniently(bytes);
  }
}

/**
 * Decodes invalid UTF-8. Replaces each longest incomplete sequence by U+FFFD, as the standard
 * requires.
 */
function decodeLeniently(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const { length, lowest, highest } = sequence(bytes[at]);
    let taken = 1;
    let point = length === 1 ? bytes[at] : bytes[at] & (0x7f >> length);
    while (taken < length) {
      const next = bytes[at + taken];
      const isNext = taken === 1 ? next >= lowest && next <= highest : next >= 0x80 && next <= 0xbf;
      if (!isNext) break;
      point = (point << 6) | (next & 0x3f);
      taken++;
    }
    text += length > 0 && taken === length ? String.fromCodePoint(point) : "\ufffd";
    at += taken;
  }
  return text;
}

/**
 * Returns the length of a sequence by its first byte, and the range of its second byte. The length
 * is 0 for an invalid first byte.
 */
function sequence(first) {
  const of = (length, lowest = 0x80, highest = 0xbf) => ({ length, lowest, highest });
  if (first <= 0x7f) return of(1);
  if (first >= 0xc2 && first <= 0xdf) return of(2);
  if (first === 0xe0) return of(3, 0xa0);
  if (first === 0xed) return of(3, 0x80, 0x9f);
  if (first >= 0xe1 && first <= 0xef) return of(3);
  if (first === 0xf0) return of(4, 0x90);
  if (first >= 0xf1 && first <= 0xf3) return of(4);
  if (first === 0xf4) return of(4, 0x80, 0x8f);
  return of(0);
}

function fromLatin1(text) {
  return Uint8Array.fromBase64(btoa(text));
}
