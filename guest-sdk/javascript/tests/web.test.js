import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateRawSync, deflateSync, gzipSync } from "node:zlib";

import { AbortController, AbortSignal } from "cofferdam/component/http/abort.js";
import { requestError } from "cofferdam/component/http/errors.js";
import { fetcher } from "cofferdam/component/http/fetch.js";
import { Headers } from "cofferdam/component/http/headers.js";
import { gunzip, unzlib } from "cofferdam/component/http/inflate.js";
import { Request } from "cofferdam/component/http/request.js";
import { Response } from "cofferdam/component/http/response.js";
import { ReadableStream } from "cofferdam/component/http/streams.js";
import { EventLoop } from "cofferdam/component/loop.js";
import { JobPromise, enter, leave, settled } from "cofferdam/component/promise.js";
import { URLSearchParams as Parameters } from "cofferdam/component/url/search.js";
import { URL as Parsed } from "cofferdam/component/url/url.js";

// Functions that the engine has and Node 20 lacks.
Promise.withResolvers ??= function withResolvers() {
  let resolve, reject;
  const promise = new this((...both) => ([resolve, reject] = both));
  return { promise, resolve, reject };
};

const PARTS = ["href", "origin", "protocol", "username", "password", "host", "port", "pathname", "search", "hash"];

/** Returns the parts of a URL, or the name of the error. */
function parts(Class, ...args) {
  try {
    const url = new Class(...args);
    return PARTS.map((part) => url[part]).join(" | ");
  } catch (error) {
    return error.name;
  }
}

test("URLs are parsed as in Node", () => {
  const bases = [undefined, "http://example.org/foo/bar?q#f", "https://u:p@h:81/a/../c", "file:///C:/x/y", "foo://host/a/b", "mailto:a@b"];
  const urls = [
    "http://a", "HTTP://ExAmple.com:80/%7Efoo/../a/./b?x y'#z \"`", "//x/y", "/abs", "rel/x", "../up", "?q", "#f", "", "http:",
    "http:foo", "http:\\\\x\\y", "https://münchen.de/ä?ö#ü", "http://日本語。jp", "https://faß.ExAmple/", "http://GO\u00ad.com",
    "http://[::1]:80/", "http://[1:2::3:4]/", "http://[::ffff:1.2.3.4]", "http://[1::2::3]", "http://[0:0:1::]", "http://[::1",
    "http://1.2.3", "http://0x7f.1", "http://0300.168.0.1", "http://256.256.256.256", "http://4294967296", "http://a.1", "http://09.1",
    "http://u:pa ss@h:1/", "http://u@x@y/", "http://:@h/", "http://h:", "http://h:65536", "http://h:8a", "http://h:00080",
    "http://h%41/", "http://h%2f/", "http://a b/", "http://a<b", " http://ho\tst/pa\nth ", "http://x/%zz%20", "http://x/.%2e/%2E/a",
    "http://x/a//../b", "http://x?{}|'\"<>", "http://x/\ud800", "file:c:\\foo\\bar", "file:///C|/../..", "file://localhost/x", "C|/y",
    "mailto:x y@z?a b#c", "data:text/plain,hi there ", "foo:/a/../b", "foo:/.//p", "foo://", "foo://h h/", "blob:https://h:1/x", "1http:x",
  ];
  for (const base of bases) {
    for (const url of urls) assert.equal(parts(Parsed, url, base), parts(URL, url, base), JSON.stringify([url, base]));
  }
  assert.deepEqual([Parsed.canParse("x"), Parsed.canParse("x", "http://y"), Parsed.parse("x")], [false, true, null]);
});

test("the parts of a URL can be set as in Node", () => {
  const values = ["", "x", "x:1", "https", "https:", "foo", "file", "8080", "80", "12x", "a b?c#d", "?q r", "#h `", "[::1]:7", "ä", "/p/../q", "\\x", "x y"];
  for (const start of ["http://u:p@h:81/a/b?q#f", "https://h/", "mailto:a@b", "foo://h/p"]) {
    for (const part of ["href", "protocol", "username", "host", "hostname", "pathname", "search", "hash"]) {
      for (const value of values) {
        const set = (Class) => {
          const url = new Class(start);
          try {
            url[part] = value;
          } catch (error) {
            return error.name;
          }
          return url.href;
        };
        assert.equal(set(Parsed), set(URL), JSON.stringify([start, part, value]));
      }
    }
  }
});

test("parameters of a URL change it", () => {
  const url = new Parsed("http://x/?a=1");
  url.searchParams.append("b", "c d~é");
  assert.equal(url.href, "http://x/?a=1&b=c+d%7E%C3%A9");
  url.search = "?z=%41+x&&y";
  assert.deepEqual([...url.searchParams], [["z", "A x"], ["y", ""]]);
  url.searchParams.delete("z");
  url.searchParams.delete("y");
  assert.equal(url.href, "http://x/");
  assert.equal(new Parameters({ b: "1", a: "é&=" }).toString(), new URLSearchParams({ b: "1", a: "é&=" }).toString());
  assert.throws(() => new Parameters([["a"]]), { name: "TypeError" });
});

test("headers are sorted, joined and checked", () => {
  const headers = new Headers([["X-B", "1"], ["x-a", " 2 "], ["X-B", "3"], ["Set-Cookie", "a=1"], ["set-cookie", "b=2"]]);
  assert.deepEqual([...headers], [["set-cookie", "a=1"], ["set-cookie", "b=2"], ["x-a", "2"], ["x-b", "1, 3"]]);
  assert.deepEqual(headers.getSetCookie(), ["a=1", "b=2"]);
  assert.equal(headers.get("X-b"), "1, 3");
  assert.equal(headers.get("x-c"), null);
  assert.throws(() => headers.set("a b", "1"), { name: "TypeError" });
  assert.throws(() => headers.set("a", "1\r\nb: 2"), { name: "TypeError" });
});

test("streams are read, canceled and split", async () => {
  const collect = async (stream) => {
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    return chunks;
  };
  const canceled = [];
  const made = () => new ReadableStream({
    start: (controller) => controller.enqueue(1),
    pull(controller) {
      controller.enqueue(2);
      controller.close();
    },
    cancel: (reason) => void canceled.push(reason),
  });
  assert.deepEqual(await collect(made()), [1, 2]);
  assert.deepEqual(await collect(ReadableStream.from([Promise.resolve(3), 4])), [3, 4]);
  assert.deepEqual(await Promise.all(made().tee().map(collect)), [[1, 2], [1, 2]]);
  const reader = made().getReader();
  await reader.cancel("enough");
  assert.deepEqual(canceled, ["enough"]);
  assert.deepEqual(await reader.read(), { done: true, value: undefined });
  const broken = new ReadableStream({ pull: () => Promise.reject(new RangeError("broken")) });
  await assert.rejects(collect(broken), { name: "RangeError" });
  const locked = made();
  locked.getReader();
  assert.throws(() => locked.getReader(), { name: "TypeError" });
  for await (const _ of made()) break;
  assert.equal(canceled.length, 2);
});

test("bodies are read once, and copied before", async () => {
  const response = Response.json({ a: [1] });
  const copy = response.clone();
  assert.deepEqual(await response.json(), { a: [1] });
  assert.equal(response.bodyUsed, true);
  await assert.rejects(response.text(), { name: "TypeError" });
  assert.throws(() => response.clone(), { name: "TypeError" });
  assert.equal(await copy.text(), '{"a":[1]}');
  const streamed = new Response(ReadableStream.from([new Uint8Array([97]), new Uint8Array([98])]));
  const [first, second] = [streamed.clone(), streamed];
  assert.deepEqual([await first.text(), await second.text()], ["ab", "ab"]);
  assert.equal(new Response("x").headers.get("content-type"), "text/plain;charset=UTF-8");
  assert.equal(await new Response(new Parameters({ a: "b" })).text(), "a=b");
  assert.throws(() => new Response("x", { status: 204 }), { name: "TypeError" });
  assert.throws(() => new Request("http://x", { body: "x" }), /GET cannot have a body/);
  assert.throws(() => new Request("http://u:p@x/"), /credentials/);
  assert.throws(() => new Request("/x"), { name: "TypeError" });
  assert.equal(new Request("http://x", { method: "post", body: "a" }).method, "POST");
});

test("signals are aborted once", async () => {
  const controller = new AbortController();
  const seen = [];
  controller.signal.addEventListener("abort", ({ type }) => seen.push(type));
  const joint = AbortSignal.any([controller.signal, AbortSignal.timeout(60_000)]);
  controller.abort();
  controller.abort("again");
  assert.deepEqual(seen, ["abort"]);
  assert.equal(joint.aborted && joint.reason.name, "AbortError");
  assert.throws(() => joint.throwIfAborted(), { name: "AbortError" });
  const timeout = AbortSignal.timeout(1);
  // A timer of the signal does not keep Node alive.
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(timeout.reason.name, "TimeoutError");
});

/** Makes `fetch` over responses by URL, and a list of the requests that it sends. */
function served(responses) {
  const sent = [];
  const fetch = fetcher(async ({ method, url, headers, content }) => {
    const note = Object.fromEntries(headers.filter(([name]) => !["accept", "user-agent"].includes(name)));
    sent.push([method, url.href, note, content === null ? null : new TextDecoder().decode(content)]);
    const { status = 200, location, body = "fine" } = responses[url.href] ?? {};
    return {
      status,
      headers: location === undefined ? [] : [["Location", location]],
      body: () => ReadableStream.from([new TextEncoder().encode(body)]),
      close: () => {},
    };
  });
  return { fetch, sent };
}

test("redirects are followed as the standard says", async () => {
  const { fetch, sent } = served({
    "http://a/301": { status: 301, location: "/end#new" },
    "http://a/303": { status: 303, location: "http://b/end" },
    "http://a/307": { status: 307, location: "http://b/end" },
    "http://a/loop": { status: 302, location: "loop" },
    "http://a/odd": { status: 302, location: "ftp://a/" },
  });
  const post = { method: "POST", body: "x", headers: { Authorization: "secret", "X-Note": "n" } };
  const response = await fetch("http://a/301", post);
  assert.deepEqual([response.url, response.redirected, await response.text()], ["http://a/end", true, "fine"]);
  await fetch("http://a/303", { ...post, method: "PUT" });
  await fetch("http://a/307", post);
  assert.deepEqual(sent.filter(([, url]) => url.includes("end")), [
    ["GET", "http://a/end#new", { authorization: "secret", "x-note": "n" }, null],
    ["GET", "http://b/end", { "x-note": "n" }, null],
    ["POST", "http://b/end", { "content-length": "1", "content-type": "text/plain;charset=UTF-8", "x-note": "n" }, "x"],
  ]);
  assert.equal((await fetch("http://a/301", { redirect: "manual" })).headers.get("location"), "/end#new");
  await assert.rejects(fetch("http://a/301", { redirect: "error" }), { name: "TypeError" });
  await assert.rejects(fetch("http://a/loop"), /more than 20 times/);
  await assert.rejects(fetch("http://a/odd"), /a URL of http or https, not of ftp/);
  const stream = { method: "POST", body: ReadableStream.from([new Uint8Array(1)]), duplex: "half" };
  const streamed = fetcher(async () => ({ status: 307, headers: [["location", "/"]], close() {} }));
  await assert.rejects(streamed("http://a/", stream), /cannot be sent again/);
  await assert.rejects(fetch("http://a/", { signal: AbortSignal.abort(new RangeError("stop")) }), { name: "RangeError" });
});

test("the address of a redirect is UTF-8 if it can be", async () => {
  const bytes = (text) => String.fromCharCode(...new TextEncoder().encode(text));
  const { fetch, sent } = served({
    "http://a/utf-8": { status: 302, location: bytes("/zürich?q=漢") },
    "http://a/latin-1": { status: 302, location: "/zürich" },
    "http://a/escaped": { status: 302, location: "/z%C3%BCrich%2F%u0041" },
  });
  for (const url of ["http://a/utf-8", "http://a/latin-1", "http://a/escaped"]) await fetch(url);
  assert.deepEqual(
    sent.map(([, url]) => url).filter((url) => url.includes("rich")),
    ["http://a/z%C3%BCrich?q=%E6%BC%A2", "http://a/z%C3%BCrich", "http://a/z%C3%BCrich%2F%u0041"],
  );
});

test("compressed bodies are decoded", async () => {
  const texts = ["", "a", "abc".repeat(50_000), Array.from({ length: 9000 }, (_, n) => `${n * n} `).join(""), "é🦀".repeat(300)];
  for (const text of texts) {
    const bytes = new TextEncoder().encode(text);
    for (const level of [0, 1, 9]) {
      assert.deepEqual(gunzip(gzipSync(bytes, { level })), bytes);
      assert.deepEqual(unzlib(deflateSync(bytes, { level })), bytes);
      assert.deepEqual(unzlib(deflateRawSync(bytes, { level })), bytes);
    }
  }
  assert.deepEqual(gunzip(Buffer.concat([gzipSync("one"), gzipSync("two")])), new TextEncoder().encode("onetwo"));
  assert.throws(() => gunzip(gzipSync("incomplete").subarray(0, 15)), /invalid or incomplete/);
  assert.throws(() => gunzip(new Uint8Array(20)), /invalid or incomplete/);
  const fetch = fetcher(async () => ({
    status: 200,
    headers: [["Content-Encoding", "gzip"]],
    body: () => ReadableStream.from([new Uint8Array(gzipSync("hello"))]),
    close() {},
  }));
  assert.equal(await (await fetch("http://a/")).text(), "hello");
});

test("errors of requests say what to do", () => {
  const url = new Parsed("https://example.com:8443/a");
  const denied = requestError(url, { tag: "HTTP-request-denied" });
  assert.equal(
    denied.message,
    "example.com:8443: no grant for this request; the operator can allow it with --allow-http https://example.com:8443/",
  );
  assert.deepEqual([denied.name, denied.cause.name], ["TypeError", "RequestDenied"]);
  const limit = requestError(url, { tag: "HTTP-response-body-size", val: 5 });
  assert.equal(limit.message, "example.com:8443: the call has reached its limit of received data of 5 bytes");
  assert.equal(requestError(url, { tag: "connection-refused" }).cause.code, "ECONNREFUSED");
  assert.match(requestError(url, { tag: "new" }).message, /failed: new/);
});

/** Makes an event loop whose clock moves only while it waits. */
function simulated() {
  let now = 0;
  const clock = {
    now: () => now,
    subscribeDuration: (length) => ({ until: now + length, [Symbol.dispose ?? "dispose"]() {} }),
  };
  const poll = {
    poll(pollables) {
      const first = Math.min(...pollables.map(({ until }) => until));
      now = Math.max(now, first);
      return pollables.flatMap(({ until }, index) => (until <= now ? [index] : []));
    },
  };
  return { loop: new EventLoop(poll, clock), now: () => now / 1_000_000 };
}

test("timers run in the order of their times", { skip: Symbol.dispose === undefined }, () => {
  const { loop, now } = simulated();
  const order = [];
  const ran = (name) => () => order.push(`${name} ${now()}`);
  enter();
  loop.start(ran("late"), 30);
  loop.start(ran("first"), 10);
  loop.start(ran("second"), 10);
  loop.start(ran("huge"), 2 ** 31);
  loop.stop(loop.start(ran("never"), 5));
  const repeated = loop.start(() => {
    ran("again")();
    if (order.length > 5) loop.stop(repeated);
  }, 15, true);
  settled(new JobPromise((resolve) => loop.start(resolve, 50)));
  assert.deepEqual(order, ["huge 0", "first 10", "second 10", "again 15", "late 30", "again 30"]);
  loop.start(ran("left"), 1);
  leave();
  assert.equal(loop.turn(), false);
  assert.throws(() => loop.start(ran("outside"), 1), /only within a call/);
});
