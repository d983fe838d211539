/** `fetch`, as in the fetch standard. Manual redirects are as in Node: the response is not opaque. */

import { URL } from "../url/url.js";
import { content } from "./body.js";
import { failed } from "./errors.js";
import { gunzip, unzlib } from "./inflate.js";
import { Request, address } from "./request.js";
import { Response, WITHOUT_BODY, receive } from "./response.js";
import { ReadableStream } from "./streams.js";

const REDIRECTS = [301, 302, 303, 307, 308];
const REDIRECTS_MAX = 20;
/** Headers of a body, which a redirect drops with it. */
const OF_BODY = ["content-encoding", "content-language", "content-length", "content-location", "content-type"];
/** Headers that a redirect to another origin drops. */
const CREDENTIALS = ["authorization", "cookie", "proxy-authorization"];
/** Decoders by content coding. */
const DECODERS = { deflate: unzlib, gzip: gunzip, "x-gzip": gunzip };
const DEFAULTS = [
  ["accept", "*/*"],
  ["user-agent", "cofferdam"],
];

/** Makes `fetch` of a function that sends one request, as in `exchange.js`. */
export function fetcher(send) {
  return async function fetch(input, init) {
    const request = new Request(input, init);
    const { signal } = request;
    signal.throwIfAborted();
    let hop = firstHop(request);
    for (let redirects = 0; ; redirects++) {
      checkProtocol(hop.url);
      const exchange = await send({ ...hop, signal });
      const location = REDIRECTS.includes(exchange.status) ? header(exchange, "location") : undefined;
      if (location === undefined || request.redirect === "manual") return responseOf(exchange, hop, redirects > 0);
      exchange.close();
      if (request.redirect === "error") throw failed(new Error(`${hop.url.host} redirects the request, and \`redirect\` is "error"`));
      if (redirects === REDIRECTS_MAX) throw failed(new Error(`${hop.url.host} redirects the request more than ${REDIRECTS_MAX} times`));
      hop = nextHop(hop, exchange.status, location);
    }
  };
}

function firstHop(request) {
  const body = request[content]();
  const headers = [...request.headers];
  for (const [name, value] of DEFAULTS) if (!request.headers.has(name)) headers.push([name, value]);
  const { method } = request;
  const length = body instanceof Uint8Array ? body.length : body === null && /^(?:POST|PUT)$/.test(method) ? 0 : undefined;
  if (length !== undefined && !request.headers.has("content-length")) headers.push(["content-length", String(length)]);
  return { method, url: request[address], headers, content: body };
}

function nextHop({ method, url, headers, content }, status, location) {
  const next = URL.parse(fromUtf8(location), url);
  if (next === null) throw failed(new Error(`${url.host} redirects the request to an invalid URL`));
  if (next.hash === "") next.hash = url.hash;
  const isGet = ([301, 302].includes(status) && method === "POST") || (status === 303 && !/^(?:GET|HEAD)$/.test(method));
  if (!isGet && content !== null && !(content instanceof Uint8Array)) {
    throw failed(new Error(`${url.host} redirects the request, and its body is a stream, which cannot be sent again`));
  }
  const dropped = [...(isGet ? OF_BODY : []), ...(next.origin === url.origin ? [] : CREDENTIALS)];
  return {
    method: isGet ? "GET" : method,
    url: next,
    headers: headers.filter(([name]) => !dropped.includes(name)),
    content: isGet ? null : content,
  };
}

/**
 * Decodes a header's value, whose characters are bytes, as UTF-8. Returns the value itself if it is
 * not UTF-8.
 */
function fromUtf8(value) {
  try {
    return decodeURIComponent(escape(value));
  } catch {
    return value;
  }
}

function checkProtocol({ protocol }) {
  if (protocol === "http:" || protocol === "https:") return;
  throw failed(new Error(`a request needs a URL of http or https, not of ${protocol.slice(0, -1)}`));
}

function header({ headers }, name) {
  return headers.find(([other]) => other.toLowerCase() === name)?.[1];
}

function responseOf(exchange, { method, url }, redirected) {
  const { status, headers } = exchange;
  const properties = { status, headers, url: withoutFragment(url), redirected };
  const isEmpty = method === "HEAD" || WITHOUT_BODY.includes(status);
  if (!isEmpty && header(exchange, "content-length") !== "0") return receive(decoded(exchange), properties);
  exchange.close();
  return receive(isEmpty ? null : new Uint8Array(), properties);
}

/** Returns the body without its content coding. A compressed body is decoded when it is complete. */
function decoded(exchange) {
  const coding = header(exchange, "content-encoding")?.trim().toLowerCase();
  if (!Object.hasOwn(DECODERS, coding)) return exchange.body();
  const encoded = exchange.body();
  return new ReadableStream(
    {
      async pull(controller) {
        const bytes = await new Response(encoded).bytes();
        // A response without content has no header of a compressed file either.
        if (bytes.length > 0) controller.enqueue(DECODERS[coding](bytes));
        controller.close();
      },
      cancel: (reason) => encoded.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

function withoutFragment({ href }) {
  return href.replace(/#.*$/s, "");
}
