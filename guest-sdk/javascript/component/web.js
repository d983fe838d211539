/**
 * Globals of the web platform. The bundler puts each into a plugin whose code, or whose packages
 * mention it, so that other plugins neither grow nor import `wasi:http`.
 */

import { send } from "./http/exchange.js";
import { fetcher } from "./http/fetch.js";

export { AbortController, AbortSignal } from "./http/abort.js";
export { Headers } from "./http/headers.js";
export { ReadableStream } from "./http/streams.js";
export { Request } from "./http/request.js";
export { Response } from "./http/response.js";
export { clearInterval, clearTimeout, setInterval, setTimeout } from "./timers.js";
export { URL } from "./url/url.js";
export { URLSearchParams } from "./url/search.js";

export const fetch = /* @__PURE__ */ fetcher(send);
