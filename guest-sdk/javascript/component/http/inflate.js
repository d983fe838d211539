/** Decompresses gzip and zlib (RFC 1950 to 1952). Checksums are not verified, lengths are. */

/** Smallest length and distance of each symbol, and its extra bits. */
const [LENGTHS, LENGTH_BITS] = ranges(3, [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5]);
const [DISTANCES, DISTANCE_BITS] = ranges(1, Array.from({ length: 30 }, (_, symbol) => Math.max(0, (symbol >> 1) - 1)));
/** Order in which the lengths of the codes for lengths are stored. */
const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
const END = 256;
const MAX_BITS = 15;

/** Decompresses the members of a gzip file. */
export function gunzip(bytes) {
  const input = new Input(bytes);
  const output = new Output();
  do {
    if (input.byte() !== 0x1f || input.byte() !== 0x8b || input.byte() !== 8) throw invalid();
    const flags = input.byte();
    input.skip(6);
    if (flags & 4) input.skip(input.byte() + input.byte() * 256);
    for (const flag of [8, 16]) if (flags & flag) while (input.byte() !== 0);
    if (flags & 2) input.skip(2);
    const start = output.length;
    inflate(input, output);
    input.skip(4);
    const length = input.byte() + input.byte() * 2 ** 8 + input.byte() * 2 ** 16 + input.byte() * 2 ** 24;
    if (length !== (output.length - start) % 2 ** 32) throw invalid();
  } while (!input.isAtEnd);
  return output.bytes();
}

/** Decompresses the content coding `deflate`: zlib, or what some servers send, without its header. */
export function unzlib(bytes) {
  const input = new Input(bytes);
  const isZlib = bytes.length > 1 && (bytes[0] & 15) === 8 && (bytes[0] * 256 + bytes[1]) % 31 === 0;
  if (isZlib) input.skip(2);
  const output = new Output();
  inflate(input, output);
  return output.bytes();
}

function inflate(input, output) {
  let isLast = false;
  while (!isLast) {
    isLast = input.bits(1) === 1;
    const type = input.bits(2);
    if (type === 0) copyStored(input, output);
    else if (type === 1) copyCoded(input, output, fixedCodes());
    else if (type === 2) copyCoded(input, output, readCodes(input));
    else throw invalid();
  }
  input.align();
}

function copyStored(input, output) {
  input.align();
  const length = input.byte() + input.byte() * 256;
  input.skip(2);
  for (let left = length; left > 0; left--) output.add(input.byte());
}

function copyCoded(input, output, [literals, distances]) {
  for (;;) {
    const symbol = literals.read(input);
    if (symbol < END) {
      output.add(symbol);
    } else if (symbol === END) {
      return;
    } else {
      const length = LENGTHS[symbol - 257] + input.bits(LENGTH_BITS[symbol - 257] ?? 0);
      const back = distances.read(input);
      output.repeat(DISTANCES[back] + input.bits(DISTANCE_BITS[back] ?? 0), length);
    }
  }
}

function fixedCodes() {
  const lengths = Array.from({ length: 288 }, (_, symbol) => (symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8));
  return [new Code(lengths), new Code(Array(30).fill(5))];
}

function readCodes(input) {
  const [literals, distances, given] = [input.bits(5) + 257, input.bits(5) + 1, input.bits(4) + 4];
  const lengthsOfLengths = Array(19).fill(0);
  for (const symbol of ORDER.slice(0, given)) lengthsOfLengths[symbol] = input.bits(3);
  const code = new Code(lengthsOfLengths);
  const lengths = [];
  while (lengths.length < literals + distances) {
    const symbol = code.read(input);
    if (symbol < 16) lengths.push(symbol);
    else if (symbol === 16) repeat(lengths, lengths.at(-1) ?? 0, 3 + input.bits(2));
    else if (symbol === 17) repeat(lengths, 0, 3 + input.bits(3));
    else repeat(lengths, 0, 11 + input.bits(7));
  }
  return [new Code(lengths.slice(0, literals)), new Code(lengths.slice(literals, literals + distances))];
}

function repeat(list, value, count) {
  for (let left = count; left > 0; left--) list.push(value);
}

/** A canonical Huffman code. */
class Code {
  #counts = new Uint16Array(MAX_BITS + 1);
  #symbols;

  constructor(lengths) {
    for (const length of lengths) if (length > 0) this.#counts[length]++;
    const starts = new Uint16Array(MAX_BITS + 2);
    for (let length = 1; length <= MAX_BITS; length++) starts[length + 1] = starts[length] + this.#counts[length];
    this.#symbols = new Uint16Array(starts[MAX_BITS + 1]);
    for (const [symbol, length] of lengths.entries()) if (length > 0) this.#symbols[starts[length]++] = symbol;
  }

  read(input) {
    let [code, first, index] = [0, 0, 0];
    for (let length = 1; length <= MAX_BITS; length++) {
      code += input.bits(1);
      const count = this.#counts[length];
      if (code - first < count) return this.#symbols[index + code - first];
      index += count;
      first = (first + count) * 2;
      code *= 2;
    }
    throw invalid();
  }
}

class Input {
  #bytes;
  #at = 0;
  #bits = 0;
  #count = 0;

  constructor(bytes) {
    this.#bytes = bytes;
  }

  get isAtEnd() {
    return this.#at >= this.#bytes.length;
  }

  bits(count) {
    while (this.#count < count) {
      this.#bits |= this.byte() << this.#count;
      this.#count += 8;
    }
    const value = this.#bits & ((1 << count) - 1);
    this.#bits >>>= count;
    this.#count -= count;
    return value;
  }

  byte() {
    if (this.isAtEnd) throw invalid();
    return this.#bytes[this.#at++];
  }

  skip(count) {
    this.#at += count;
  }

  /** Drops the rest of the current byte. */
  align() {
    this.#bits = 0;
    this.#count = 0;
  }
}

class Output {
  #bytes = new Uint8Array(65_536);
  length = 0;

  add(byte) {
    if (this.length === this.#bytes.length) this.#grow(1);
    this.#bytes[this.length++] = byte;
  }

  /** Adds bytes that begin `distance` before the end. */
  repeat(distance, count) {
    if (!(distance <= this.length && count > 0)) throw invalid();
    if (this.length + count > this.#bytes.length) this.#grow(count);
    for (let left = count; left > 0; left--) this.#bytes[this.length] = this.#bytes[this.length++ - distance];
  }

  bytes() {
    return this.#bytes.slice(0, this.length);
  }

  #grow(count) {
    const larger = new Uint8Array((this.length + count) * 2);
    larger.set(this.#bytes.subarray(0, this.length));
    this.#bytes = larger;
  }
}

/** Returns the starts of ranges, each with a size in bits. */
function ranges(first, bits) {
  let start = first;
  const starts = bits.map((count) => {
    const begin = start;
    start += 1 << count;
    return begin;
  });
  // The longest length has a symbol of its own.
  return first === 3 ? [[...starts, 258], [...bits, 0]] : [starts, bits];
}

function invalid() {
  return new TypeError("the compressed body is invalid or incomplete");
}
