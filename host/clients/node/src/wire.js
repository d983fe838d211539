// Messages as lines of JSON.

/** Maximum bytes of a message. */
export const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

/** Message of the protocol. */
/** @typedef {{ type: string, [member: string]: any }} Message */

/** Message that the host does not read. */
export class MessageTooLong extends RangeError {
  static {
    MessageTooLong.prototype.name = "MessageTooLong";
  }
}

/**
 * Returns the line of a message.
 *
 * @param {Message} message
 */
export function encode(message) {
  const line = `${wellFormed(JSON.stringify(message))}\n`;
  const bytes = Buffer.byteLength(line);
  if (bytes <= MESSAGE_BYTES_MAX) return line;
  throw new MessageTooLong(
    `expected a message of at most ${MESSAGE_BYTES_MAX} bytes, found ${bytes} bytes`,
  );
}

/**
 * Returns the message of a line, or `undefined` if it is not a message.
 *
 * @param {string} line
 * @returns {Message | undefined}
 */
export function decode(line) {
  try {
    const message = JSON.parse(line);
    return typeof message?.type === "string" ? message : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Replaces halves of surrogate pairs, which `slice` leaves and which are not Unicode. In JSON they
 * are escapes; an even number of backslashes before an escape belongs to the string.
 *
 * @param {string} json
 */
function wellFormed(json) {
  if (!json.includes("\\ud")) return json;
  return json.replace(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, "$1\\ufffd");
}

/** Splits a stream of bytes into lines. */
export class LineSplitter {
  /** @type {Buffer[]} */
  #parts = [];

  /**
   * Returns the lines that a chunk completes.
   *
   * @param {Buffer} chunk
   */
  push(chunk) {
    const lines = [];
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      const rest = chunk.subarray(start, end);
      start = end + 1;
      if (this.#parts.length === 0) {
        lines.push(rest.toString());
      } else {
        lines.push(Buffer.concat([...this.#parts, rest]).toString());
        this.#parts = [];
      }
    }
    if (start < chunk.length) this.#parts.push(chunk.subarray(start));
    return lines;
  }
}
