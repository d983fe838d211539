/** Hosts of the URL standard: domains, IPv4 and IPv6 addresses. */

import { CONTROLS, percentDecode, percentEncode } from "./percent.js";

const FORBIDDEN = /[\0\t\n\r #/:<>?@[\\\]^|]/;
const FORBIDDEN_IN_DOMAIN = /[\0-\x20"#%/:<>?@[\\\]^`{|}\x7f]/;
/** Characters that the mapping of domains drops. */
const IGNORED = /[\u00ad\u034f\u180b-\u180f\u200b\u2060\u2064\ufe00-\ufe0f\ufeff]/g;
const DOTS = /[\u3002\uff0e\uff61]/g;

/** Returns the serialized host, or undefined if it is invalid. */
export function parseHost(text, isSpecial) {
  if (text.startsWith("[")) {
    if (!text.endsWith("]")) return undefined;
    const pieces = parseIpv6(text.slice(1, -1));
    return pieces && `[${serializeIpv6(pieces)}]`;
  }
  if (!isSpecial) return FORBIDDEN.test(text) ? undefined : percentEncode(text, CONTROLS);
  const domain = domainToAscii(percentDecode(text));
  if (domain === "" || FORBIDDEN_IN_DOMAIN.test(domain)) return undefined;
  return endsInNumber(domain) ? parseIpv4(domain) : domain;
}

/**
 * Converts a domain to ASCII. Approximates the mapping of UTS 46 by Unicode's compatibility
 * normalization, because its table is larger than the engine's.
 */
function domainToAscii(domain) {
  if (/^[\0-\x7f]*$/.test(domain)) return domain.toLowerCase();
  const lower = (text) => Array.from(text, (character) => character.toLowerCase()).join("");
  const mapped = lower(domain.replace(IGNORED, "").normalize("NFKC")).normalize("NFKC").replace(DOTS, ".");
  const labels = mapped.split(".").map((label) => (/^[\0-\x7f]*$/.test(label) ? label : `xn--${punycode(label)}`));
  return labels.join(".");
}

/** Encodes a label as in RFC 3492. */
function punycode(label) {
  const points = Array.from(label, (character) => character.codePointAt(0));
  let output = points.filter((point) => point < 0x80).map((point) => String.fromCodePoint(point)).join("");
  const basic = output.length;
  if (basic > 0) output += "-";
  let handled = basic;
  let [least, delta, bias] = [0x80, 0, 72];
  while (handled < points.length) {
    const next = Math.min(...points.filter((point) => point >= least));
    delta += (next - least) * (handled + 1);
    least = next;
    for (const point of points) {
      if (point < least) delta++;
      if (point !== least) continue;
      output += variableLength(delta, bias);
      bias = adapted(delta, handled + 1, handled === basic);
      delta = 0;
      handled++;
    }
    delta++;
    least++;
  }
  return output;
}

function variableLength(number, bias) {
  let output = "";
  for (let position = 36; ; position += 36) {
    const threshold = Math.min(Math.max(position - bias, 1), 26);
    if (number < threshold) return output + digit(number);
    output += digit(threshold + ((number - threshold) % (36 - threshold)));
    number = Math.floor((number - threshold) / (36 - threshold));
  }
}

function digit(value) {
  return value.toString(36).replace(/[0-9a-z]/, () => String.fromCharCode(value < 26 ? 0x61 + value : 0x16 + value));
}

function adapted(delta, count, isFirst) {
  let left = isFirst ? Math.floor(delta / 700) : Math.floor(delta / 2);
  left += Math.floor(left / count);
  let steps = 0;
  for (; left > 455; steps += 36) left = Math.floor(left / 35);
  return steps + Math.floor((36 * left) / (left + 38));
}

function endsInNumber(domain) {
  const parts = domain.split(".");
  if (parts.at(-1) === "" && parts.length > 1) parts.pop();
  const last = parts.at(-1);
  return /^[0-9]+$/.test(last) || ipv4Number(last) !== undefined;
}

function parseIpv4(domain) {
  const parts = domain.split(".");
  if (parts.at(-1) === "" && parts.length > 1) parts.pop();
  if (parts.length > 4) return undefined;
  const numbers = parts.map(ipv4Number);
  if (numbers.includes(undefined)) return undefined;
  const last = numbers.pop();
  if (numbers.some((number) => number > 255) || last >= 256 ** (4 - numbers.length)) return undefined;
  const address = numbers.reduce((sum, number, index) => sum + number * 256 ** (3 - index), last);
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join(".");
}

/** Returns a decimal, octal or hexadecimal number, or undefined. */
function ipv4Number(text) {
  if (/^0x[0-9a-f]*$/i.test(text)) return text.length === 2 ? 0 : Number.parseInt(text.slice(2), 16);
  if (/^0[0-7]+$/.test(text)) return Number.parseInt(text, 8);
  return /^(?:0|[1-9][0-9]*)$/.test(text) ? Number(text) : undefined;
}

/** Returns the eight pieces of an address, or undefined. */
function parseIpv6(text) {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const [before, after] = halves.map((half, index) => ipv6Pieces(half, index === halves.length - 1));
  if (before === undefined) return undefined;
  if (halves.length === 1) return before.length === 8 ? before : undefined;
  if (after === undefined || before.length + after.length > 7) return undefined;
  return [...before, ...Array(8 - before.length - after.length).fill(0), ...after];
}

function ipv6Pieces(half, isLast) {
  if (half === "") return [];
  const pieces = [];
  const parts = half.split(":");
  for (const [index, part] of parts.entries()) {
    if (/^[0-9a-f]{1,4}$/i.test(part)) {
      pieces.push(Number.parseInt(part, 16));
    } else if (isLast && index === parts.length - 1 && /^(?:(?:0|[1-9][0-9]{0,2})(?:\.|$)){4}$/.test(part) && !part.endsWith(".")) {
      const [a, b, c, d] = part.split(".").map(Number);
      if (Math.max(a, b, c, d) > 255) return undefined;
      pieces.push(a * 256 + b, c * 256 + d);
    } else {
      return undefined;
    }
  }
  return pieces;
}

function serializeIpv6(pieces) {
  const [start, length] = longestZeros(pieces);
  const hex = (part) => part.map((piece) => piece.toString(16)).join(":");
  return length < 2 ? hex(pieces) : `${hex(pieces.slice(0, start))}::${hex(pieces.slice(start + length))}`;
}

/** Returns the first longest run of zeros as its start and its length. */
function longestZeros(pieces) {
  let [best, bestLength] = [0, 0];
  for (let start = 0; start < pieces.length; start++) {
    let end = start;
    while (pieces[end] === 0) end++;
    if (end - start > bestLength) [best, bestLength] = [start, end - start];
  }
  return [best, bestLength];
}
