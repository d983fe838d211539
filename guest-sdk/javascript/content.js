/**
 * Items of a tool's result. `Content` is the `content` of WIT, and `returned` converts the return
 * value of a function.
 */

import { bytes, optionalString, string } from "./checked.js";
import { writeJson } from "./numbers.js";

/** One item of a result, made by the functions below. */
export class Content {
  constructor(tag, val) {
    this.tag = tag;
    this.val = val;
    Object.freeze(this);
  }
}

export function text(text) {
  return new Content("text", String(text).toWellFormed());
}

export function json(value) {
  return new Content("json", writeJson(value));
}

export function blob(mediaType, data) {
  return new Content("blob", { mediaType: string(mediaType, "the media type"), data: bytes(data, "the data") });
}

export function resource(uri, body, mediaType) {
  const content =
    typeof body === "string" ? { tag: "text", val: body.toWellFormed() } : { tag: "blob", val: bytes(body, "the body") };
  return new Content("resource", { ...address(uri, mediaType), body: content });
}

export function link(uri, name, mediaType) {
  return new Content("link", { ...address(uri, mediaType), name: string(name, "the name") });
}

function address(uri, mediaType) {
  return { uri: string(uri, "the URI"), mediaType: optionalString(mediaType, "the media type") };
}

/** Converts the return value of a function to items. An array with a `Content` is one item each. */
export function returned(value) {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value) && value.some((item) => item instanceof Content)) return Array.from(value, (item) => content(item ?? null));
  return [content(value)];
}

function content(value) {
  if (value instanceof Content) return value;
  if (typeof value === "string") return text(value);
  if (value instanceof Uint8Array || value instanceof ArrayBuffer) {
    throw new TypeError("bytes are returned with their media type: `blob(mediaType, bytes)`");
  }
  return json(value);
}

/**
 * Returns the value that a model sees: null, a string or a JSON value; for several items, an array.
 * `read` parses JSON.
 */
export function visible(contents, read = JSON.parse) {
  const values = contents.map((content) => visibleItem(content, read));
  return values.length > 1 ? values : (values[0] ?? null);
}

function visibleItem({ tag, val }, read) {
  switch (tag) {
    case "text":
      return val;
    case "json":
      return read(val);
    case "blob":
      return { media_type: val.mediaType, bytes: val.data.length };
    case "resource": {
      const body = val.body.tag === "text" ? { text: val.body.val } : { bytes: val.body.val.length };
      return { uri: val.uri, media_type: val.mediaType ?? null, ...body };
    }
    default:
      return { uri: val.uri, name: val.name, media_type: val.mediaType ?? null };
  }
}
