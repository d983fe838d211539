/** Percent-encoding of the URL standard. */

/** Code points that a part of a URL encodes besides controls and those beyond ASCII. */
const QUERY_CHARACTERS = ' "#<>';
const PATH_CHARACTERS = `${QUERY_CHARACTERS}?^\`{}`;
const USERINFO_CHARACTERS = `${PATH_CHARACTERS}/:;=@[\\]|`;

export const CONTROLS = encodeSet("");
export const FRAGMENT = encodeSet(' "<>`');
export const QUERY = encodeSet(QUERY_CHARACTERS);
export const SPECIAL_QUERY = encodeSet(`${QUERY_CHARACTERS}'`);
export const PATH = encodeSet(PATH_CHARACTERS);
export const USERINFO = encodeSet(USERINFO_CHARACTERS);
export const FORM = encodeSet(`${USERINFO_CHARACTERS}$%&+,!'()~`);

/** Returns an expression that matches the code points to encode. */
function encodeSet(characters) {
  const escaped = characters.replace(/[\\\]^-]/g, "\\$&");
  return new RegExp(`[${escaped}\\0-\\x1f]|[^\\0-\\x7e]`, "gu");
}

/** Encodes the code points of `set`, in UTF-8. */
export function percentEncode(text, set) {
  return text.toWellFormed().replace(set, (character) => {
    if (character > "\x7f") return encodeURIComponent(character);
    return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
  });
}

/** Decodes to a string; invalid UTF-8 becomes U+FFFD. */
export function percentDecode(text) {
  if (!text.includes("%")) return text.toWellFormed();
  const source = new TextEncoder().encode(text);
  const bytes = new Uint8Array(source.length);
  let length = 0;
  for (let at = 0; at < source.length; at++) {
    const digits = source[at] === 0x25 ? String.fromCharCode(...source.subarray(at + 1, at + 3)) : "";
    const isEncoded = /^[0-9a-f]{2}$/i.test(digits);
    bytes[length++] = isEncoded ? Number.parseInt(digits, 16) : source[at];
    if (isEncoded) at += 2;
  }
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(0, length));
}
