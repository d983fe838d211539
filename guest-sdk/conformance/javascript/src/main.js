import { RequestDenied, ToolFailure, blob, json, link, plugin, resource, text, tool } from "cofferdam";
import * as call from "cofferdam/call";
import { log } from "cofferdam/client";
import { FileError, store } from "cofferdam/files";
import * as secrets from "cofferdam/secrets";
import * as toolbox from "cofferdam/toolbox";

/** Returns the schema of an object whose properties are all required. */
function object(properties) {
  return { type: "object", properties, required: Object.keys(properties) };
}

const echo = tool({
  name: "echo",
  description: "Returns what it was given.",
  parameters: object({
    text: { type: "string", description: "A text." },
    flag: { type: "boolean", description: "A truth value." },
    integer: { type: "integer", description: "An integer." },
    number: { type: "number", description: "A number." },
    list: { type: "array", description: "Texts.", items: { type: "string" } },
    map: { type: "object", description: "Integers by name.", additionalProperties: { type: "integer" } },
  }),
  run: (args) => args,
});

const defaults = tool({
  name: "defaults",
  description: "Returns what it was given, and defaults for what was left out.",
  parameters: {
    type: "object",
    properties: {
      count: { type: "integer", description: "How many.", default: 3 },
      word: { type: "string", description: "A word.", default: "abc" },
      tags: { type: "array", description: "Tags.", items: { type: "string" }, default: ["x", "y"] },
      ratio: { type: "number", description: "A ratio.", default: 0.5 },
      flag: { type: "boolean", description: "A truth value.", default: true },
    },
  },
  run: (args) => args,
});

const nullables = tool({
  name: "nullables",
  description: "Returns what it was given, and null for what was left out.",
  parameters: {
    type: "object",
    properties: {
      name: { type: "string", description: "A name." },
      count: { type: "integer", description: "A count." },
    },
  },
  run: ({ name = null, count = null }) => ({ name, count }),
});

const nested = tool({
  name: "nested",
  description: "Sums up an order.",
  parameters: object({
    order: {
      description: "The order.",
      ...object({
        id: { type: "integer" },
        customer: {
          type: "object",
          properties: { name: { type: "string" }, email: { type: ["string", "null"] } },
          required: ["name"],
        },
        items: {
          type: "array",
          items: {
            type: "object",
            properties: { sku: { type: "string" }, quantity: { type: "integer", default: 1 } },
            required: ["sku"],
          },
        },
        status: { enum: ["open", "paid"] },
      }),
    },
  }),
  run({ order: { id, customer, items, status } }) {
    const quantity = items.reduce((sum, item) => sum + item.quantity, 0);
    return { id, quantity, first: items[0]?.sku ?? null, customer: customer.name, email: customer.email, status };
  },
});

const fail = tool({
  name: "fail",
  description: "Reports a failure.",
  parameters: object({
    kind: {
      enum: ["plain", "suggestion", "transient", "permanent", "value", "empty", "exception"],
      description: "Which failure.",
    },
  }),
  run({ kind }) {
    switch (kind) {
      case "suggestion":
        throw new ToolFailure("it went wrong", { suggestion: "try again tomorrow" });
      case "transient":
        throw new ToolFailure("it went wrong", { transient: true });
      case "permanent":
        throw new ToolFailure("it went wrong", { transient: false });
      case "value":
        throw new ToolFailure("it went wrong", { value: { code: 7, detail: ["a", null] } });
      case "empty":
        throw new ToolFailure("");
      case "exception":
        throw new RangeError("the shelf is empty");
      default:
        throw new ToolFailure("it went wrong");
    }
  },
});

const unicode = tool({
  name: "unicode",
  description: "Takes a text apart.",
  parameters: object({ text: { type: "string", description: "The text." } }),
  run({ text }) {
    const characters = [...text];
    const bytes = new TextEncoder().encode(text).length;
    return { text, characters: characters.length, bytes, reversed: characters.reverse().join("") };
  },
});

const bigNumbers = tool({
  name: "big_numbers",
  description: "Returns numbers with all their digits.",
  parameters: object({
    integer: { type: "integer", description: "An integer of 64 bits." },
    number: { type: "number", description: "A number." },
  }),
  run: ({ integer, number }) => ({ integer, number }),
});

const nothing = tool({ name: "nothing", description: "Returns nothing.", run() {} });

const word = tool({ name: "word", description: "Returns a text.", run: () => "word" });

const blobTool = tool({
  name: "blob",
  description: "Returns bytes.",
  parameters: object({ size: { type: "integer", description: "How many bytes.", minimum: 0, maximum: 1_000_000 } }),
  run: ({ size }) => blob("application/octet-stream", Uint8Array.from({ length: size }, (_, index) => index)),
});

const several = tool({
  name: "several",
  description: "Returns one content of each kind.",
  run: () => [
    text("one"),
    json({ two: 2 }),
    blob("image/png", new Uint8Array([137, 80, 78, 71])),
    resource("memo:three", "three", "text/plain"),
    link("https://example.com/four.csv", "four.csv", "text/csv"),
  ],
});

const storeTool = tool({
  name: "store",
  description: "Creates a file and looks at the store that it is in.",
  parameters: object({
    store: { type: "string", description: "The store." },
    path: { type: "string", description: "Where the file is created." },
    text: { type: "string", description: "What it holds." },
  }),
  run({ store: name, path, text }) {
    const files = store(name);
    files.create(path, text);
    const found = files.search("", "needle", { caseSensitive: true }).matches.find((match) => match.path === path);
    return {
      text: files.readText(path),
      size: files.stat(path).size,
      files: files.list("", { recursive: true }).map((entry) => entry.name).sort(),
      lines: (found?.lines ?? []).map((line) => line.number),
    };
  },
});

const missing = tool({
  name: "missing",
  description: "Reads a file that is not there.",
  parameters: object({ store: { type: "string", description: "The store." } }),
  run({ store: name }) {
    try {
      return store(name).readText("nosuch.txt");
    } catch (error) {
      if (error instanceof FileError && error.code === "not-found") return "not found";
      throw error;
    }
  },
});

const progress = tool({
  name: "progress",
  description: "Reports progress.",
  parameters: object({ steps: { type: "integer", description: "How many steps there are." } }),
  run({ steps }) {
    for (let step = 1; step <= steps; step++) call.progress(step, steps, `step ${step}`);
    return { has_id: call.id() !== "", has_time_left: call.timeLeftMs() > 0, cancelled: call.cancelled() };
  },
});

const logTool = tool({
  name: "log",
  description: "Says something to the client and to the record of the call.",
  parameters: object({ message: { type: "string", description: "What is said." } }),
  run({ message }) {
    log("warning", message);
    console.error(`${message} (printed)`);
  },
});

const relay = tool({
  name: "relay",
  description: "Calls another tool.",
  parameters: object({
    tool: { type: "string", description: "Which tool." },
    arguments: { type: "object", description: "Its arguments.", additionalProperties: true },
  }),
  run({ tool: name, arguments: args }) {
    try {
      return toolbox.call(name, args);
    } catch (error) {
      if (error.code === "unknown-tool") throw new ToolFailure(`there is no tool \`${name}\``);
      throw error;
    }
  },
});

const secret = tool({
  name: "secret",
  description: "Returns the length of a secret.",
  parameters: object({ name: { type: "string", description: "Which secret." } }),
  run({ name }) {
    const value = secrets.get(name);
    if (value === undefined) throw new ToolFailure("access denied");
    return [...value].length;
  },
});

async function sendRequest({ url, method, headers, body, send_bytes, timeout_ms, follow }) {
  const response = await fetch(url, {
    method,
    headers,
    body: send_bytes > 0 ? ReadableStream.from(chunks(send_bytes)) : body,
    duplex: "half",
    redirect: follow ? "follow" : "manual",
    signal: timeout_ms > 0 ? AbortSignal.timeout(timeout_ms) : null,
  });
  const content = await response.bytes();
  return {
    status: response.status,
    url: response.url,
    type: response.headers.get("content-type"),
    bytes: content.length,
    text: content.length <= 2000 ? new TextDecoder().decode(content) : "",
  };
}

function* chunks(size) {
  const chunk = new Uint8Array(65_536).fill(120);
  for (let left = size; left > 0; left -= chunk.length) yield chunk.subarray(0, left);
}

const http = tool({
  name: "http",
  description: "Sends requests over HTTP and returns the last response.",
  parameters: {
    type: "object",
    properties: {
      url: { type: "string", description: "The URL." },
      method: { type: "string", description: "The method.", default: "GET" },
      headers: { type: "object", description: "Headers of the request.", additionalProperties: { type: "string" } },
      body: { type: "string", description: "The text to send." },
      send_bytes: { type: "integer", description: "Number of bytes to send instead, in chunks.", default: 0 },
      timeout_ms: { type: "integer", description: "Timeout in milliseconds; 0 for none.", default: 0 },
      follow: { type: "boolean", description: "True to follow redirects.", default: true },
      count: { type: "integer", description: "Number of requests, one after the other.", default: 1 },
      parallel: { type: "integer", description: "Number of requests at once.", default: 1 },
    },
    required: ["url"],
  },
  async run(args) {
    let ok = 0;
    let last;
    try {
      for (let sent = 0; sent < args.count; sent++) {
        const results = await Promise.all(Array.from({ length: args.parallel }, () => sendRequest(args)));
        ok += results.filter(({ status }) => status < 400).length;
        last = results.at(-1);
      }
    } catch (error) {
      if (error instanceof DOMException && error.name === "TimeoutError") throw new ToolFailure("timeout");
      if (error.cause instanceof RequestDenied) throw error.cause;
      throw new ToolFailure(error.message);
    }
    return { ...last, ok };
  },
});

const annotated = tool({
  name: "annotated",
  title: "An annotated tool",
  group: "reading",
  description: "Answers.",
  annotations: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
  output: object({ answer: { type: "integer" } }),
  run: () => ({ answer: 42 }),
});

export default plugin(
  echo,
  defaults,
  nullables,
  nested,
  fail,
  unicode,
  bigNumbers,
  nothing,
  word,
  blobTool,
  several,
  storeTool,
  missing,
  progress,
  logTool,
  relay,
  secret,
  http,
  annotated,
);
