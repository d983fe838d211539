import { type Infer, RequestDenied, ToolFailure, blob, json, link, plugin, resource, s, text, tool } from "cofferdam";
import * as call from "cofferdam/call";
import { log } from "cofferdam/client";
import { FileError, store } from "cofferdam/files";
import * as secrets from "cofferdam/secrets";
import * as toolbox from "cofferdam/toolbox";

const echo = tool({
  name: "echo",
  description: "Returns what it was given.",
  parameters: s.object({
    text: s.string("A text."),
    flag: s.boolean("A truth value."),
    integer: s.integer("An integer."),
    number: s.number("A number."),
    list: s.array(s.string(), "Texts."),
    map: s.map(s.integer(), "Integers by name."),
  }),
  run: (args) => args,
});

const defaults = tool({
  name: "defaults",
  description: "Returns what it was given, and defaults for what was left out.",
  parameters: s.object({
    count: s.integer("How many.").default(3),
    word: s.string("A word.").default("abc"),
    tags: s.array(s.string(), "Tags.").default(["x", "y"]),
    ratio: s.number("A ratio.").default(0.5),
    flag: s.boolean("A truth value.").default(true),
  }),
  run: (args) => args,
});

const nullables = tool({
  name: "nullables",
  description: "Returns what it was given, and null for what was left out.",
  parameters: s.object({ name: s.string("A name.").nullable(), count: s.integer("A count.").nullable() }),
  run: ({ name, count }) => ({ name, count }),
});

const order = s.object({
  id: s.integer(),
  customer: s.object({ name: s.string(), email: s.string().optional() }),
  items: s.array(s.object({ sku: s.string(), quantity: s.integer().default(1) })),
  status: s.enum(["open", "paid"]),
});

const nested = tool({
  name: "nested",
  description: "Sums up an order.",
  parameters: s.object({ order: order.describe("The order.") }),
  run({ order: { id, customer, items, status } }) {
    const quantity = items.reduce((sum, item) => sum + item.quantity, 0);
    const { name, email = null } = customer;
    return { id, quantity, first: items[0]?.sku ?? null, customer: name, email, status };
  },
});

const fail = tool({
  name: "fail",
  description: "Reports a failure.",
  parameters: s.object({
    kind: s.enum(["plain", "suggestion", "transient", "permanent", "value", "empty", "exception"], "Which failure."),
  }),
  run({ kind }): never {
    switch (kind) {
      case "plain":
        throw new ToolFailure("it went wrong");
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
    }
  },
});

const unicode = tool({
  name: "unicode",
  description: "Takes a text apart.",
  parameters: s.object({ text: s.string("The text.") }),
  run({ text }) {
    const characters = [...text];
    const bytes = new TextEncoder().encode(text).length;
    return { text, characters: characters.length, bytes, reversed: characters.reverse().join("") };
  },
});

const bigNumbers = tool({
  name: "big_numbers",
  description: "Returns numbers with all their digits.",
  parameters: s.object({ integer: s.int64("An integer of 64 bits."), number: s.number("A number.") }),
  // Not necessary here, but tools may be asynchronous.
  run: async ({ integer, number }) => ({ integer: await integer, number }),
});

const nothing = tool({ name: "nothing", description: "Returns nothing.", async run() {} });

const word = tool({ name: "word", description: "Returns a text.", run: async () => "word" });

const blobTool = tool({
  name: "blob",
  description: "Returns bytes.",
  parameters: s.object({ size: s.integer("How many bytes.").min(0).max(1_000_000) }),
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
  parameters: s.object({
    store: s.string("The store."),
    path: s.string("Where the file is created."),
    text: s.string("What it holds."),
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
  parameters: s.object({ store: s.string("The store.") }),
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
  parameters: s.object({ steps: s.integer("How many steps there are.") }),
  run({ steps }) {
    for (let step = 1; step <= steps; step++) call.progress(step, steps, `step ${step}`);
    return { has_id: call.id() !== "", has_time_left: call.timeLeftMs() > 0, cancelled: call.cancelled() };
  },
});

const logTool = tool({
  name: "log",
  description: "Says something to the client and to the record of the call.",
  parameters: s.object({ message: s.string("What is said.") }),
  run({ message }) {
    log("warning", message);
    console.error(`${message} (printed)`);
  },
});

const relay = tool({
  name: "relay",
  description: "Calls another tool.",
  parameters: s.object({ tool: s.string("Which tool."), arguments: s.map(s.any(), "Its arguments.") }),
  run({ tool: name, arguments: args }) {
    try {
      return toolbox.call(name, args);
    } catch (error) {
      if (error instanceof toolbox.ToolboxError && error.code === "unknown-tool") {
        throw new ToolFailure(`there is no tool \`${name}\``);
      }
      throw error;
    }
  },
});

const secret = tool({
  name: "secret",
  description: "Returns the length of a secret.",
  parameters: s.object({ name: s.string("Which secret.") }),
  run({ name }) {
    const value = secrets.get(name);
    if (value === undefined) throw new ToolFailure("access denied");
    return [...value].length;
  },
});

const requesting = s.object({
  url: s.string("The URL."),
  method: s.string("The method.").default("GET"),
  headers: s.map(s.string(), "Headers of the request.").optional(),
  body: s.string("The text to send.").optional(),
  send_bytes: s.integer("Number of bytes to send instead, in chunks.").default(0),
  timeout_ms: s.integer("Timeout in milliseconds; 0 for none.").default(0),
  follow: s.boolean("True to follow redirects.").default(true),
  count: s.integer("Number of requests, one after the other.").default(1),
  parallel: s.integer("Number of requests at once.").default(1),
});

type Requesting = Infer<typeof requesting>;

async function sendRequest({ url, method, headers, body, send_bytes, timeout_ms, follow }: Requesting) {
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

function* chunks(size: number) {
  const chunk = new Uint8Array(65_536).fill(120);
  for (let left = size; left > 0; left -= chunk.length) yield chunk.subarray(0, left);
}

const http = tool({
  name: "http",
  description: "Sends requests over HTTP and returns the last response.",
  parameters: requesting,
  async run(args) {
    let ok = 0;
    let last: Awaited<ReturnType<typeof sendRequest>> | undefined;
    try {
      for (let sent = 0; sent < args.count; sent++) {
        const results = await Promise.all(Array.from({ length: args.parallel }, () => sendRequest(args)));
        ok += results.filter(({ status }) => status < 400).length;
        last = results.at(-1);
      }
    } catch (error) {
      if (error instanceof DOMException && error.name === "TimeoutError") throw new ToolFailure("timeout");
      if (!(error instanceof Error)) throw error;
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
  output: s.object({ answer: s.integer() }),
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
