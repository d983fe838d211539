/**
 * `ReadableStream` of the streams standard, without byte streams, pipes, and strategies other than
 * a high-water mark in chunks.
 */

/** Names whether chunks have been read, or the stream was canceled. */
export const disturbed = Symbol("disturbed");

/** Names the function that reads all chunks, with fewer promises than an iteration. */
export const drain = Symbol("drain");

export class ReadableStream {
  #source;
  #controller;
  #mark;
  #queue = [];
  #state = "readable";
  #error;
  /** Reads that wait for a chunk. */
  #reads = [];
  #reader;
  #isDisturbed = false;
  #isStarted = false;
  #isPulling = false;
  #mustPull = false;
  #isCloseRequested = false;
  /** Made when a reader is asked for it. */
  #ended;

  constructor(source = {}, { highWaterMark = 1 } = {}) {
    if (source?.type !== undefined) throw new TypeError("a ReadableStream of bytes is not supported: leave out `type`");
    this.#source = source ?? {};
    this.#mark = highWaterMark;
    this.#controller = this.#makeController();
    const started = this.#source.start?.(this.#controller);
    Promise.resolve(started).then(
      () => {
        this.#isStarted = true;
        this.#pull();
      },
      (error) => this.#fail(error),
    );
  }

  /** Makes a stream of the chunks of an iterable. */
  static from(iterable) {
    const iterator = iterable[Symbol.asyncIterator]?.() ?? iterable[Symbol.iterator]();
    return new ReadableStream(
      {
        async pull(controller) {
          const { done, value } = await iterator.next();
          if (done) controller.close();
          else controller.enqueue(await value);
        },
        async cancel(reason) {
          await iterator.return?.(reason);
        },
      },
      { highWaterMark: 0 },
    );
  }

  /** Passes each chunk to `take` until the stream ends. */
  async [drain](take) {
    const reader = this.getReader();
    try {
      for (let read = await this.#read(); !read.done; read = await this.#read()) take(read.value);
    } catch (error) {
      // As after an iteration that throws: an error of the source does not hide it.
      await this.#cancel().catch(() => {});
      throw error;
    } finally {
      reader.releaseLock();
    }
  }

  get [disturbed]() {
    return this.#isDisturbed;
  }

  get locked() {
    return this.#reader !== undefined;
  }

  getReader({ mode } = {}) {
    if (mode !== undefined) throw new TypeError(`a reader of the mode ${mode} is not supported`);
    if (this.locked) throw new TypeError("the stream has a reader already");
    this.#reader = new Reader({
      cancel: (reason) => this.#cancel(reason),
      closed: () => this.#closed(),
      read: () => this.#read(),
      release: () => this.#release(),
    });
    return this.#reader;
  }

  async cancel(reason) {
    if (this.locked) throw new TypeError("a stream with a reader is canceled by the reader");
    await this.#cancel(reason);
  }

  /** Splits the stream into two with the same chunks. */
  tee() {
    const reader = this.getReader();
    const branches = [];
    let canceled = 0;
    const pull = async () => {
      try {
        const { done, value } = await reader.read();
        for (const branch of branches) {
          if (branch.isCanceled) continue;
          if (done) branch.controller.close();
          else branch.controller.enqueue(value);
        }
      } catch (error) {
        for (const branch of branches) branch.controller.error(error);
      }
    };
    const make = () => {
      const branch = { isCanceled: false };
      branches.push(branch);
      return new ReadableStream(
        {
          start: (controller) => void (branch.controller = controller),
          pull,
          cancel(reason) {
            branch.isCanceled = true;
            if (++canceled === 2) return reader.cancel(reason);
          },
        },
        { highWaterMark: 0 },
      );
    };
    return [make(), make()];
  }

  values({ preventCancel = false } = {}) {
    const reader = this.getReader();
    let isDone = false;
    const finish = () => {
      isDone = true;
      reader.releaseLock();
    };
    return {
      async next() {
        if (isDone) return { done: true, value: undefined };
        try {
          const result = await reader.read();
          if (result.done) finish();
          return result;
        } catch (error) {
          finish();
          throw error;
        }
      },
      async return(value) {
        if (!isDone) {
          if (!preventCancel) await reader.cancel(value);
          finish();
        }
        return { done: true, value };
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  [Symbol.asyncIterator](options) {
    return this.values(options);
  }

  get [Symbol.toStringTag]() {
    return "ReadableStream";
  }

  #makeController() {
    const stream = this;
    return {
      get desiredSize() {
        if (stream.#state === "errored") return null;
        return stream.#state === "closed" ? 0 : stream.#mark - stream.#queue.length;
      },
      close() {
        if (stream.#isCloseRequested || stream.#state !== "readable") throw new TypeError("the stream is closed already");
        stream.#isCloseRequested = true;
        if (stream.#queue.length === 0) stream.#close();
      },
      enqueue(chunk) {
        if (stream.#isCloseRequested || stream.#state !== "readable") throw new TypeError("the stream is closed");
        if (stream.#reads.length > 0) stream.#reads.shift().resolve({ done: false, value: chunk });
        else stream.#queue.push(chunk);
        stream.#pull();
      },
      error: (error) => stream.#fail(error),
    };
  }

  #read() {
    this.#isDisturbed = true;
    if (this.#state === "errored") return Promise.reject(this.#error);
    if (this.#queue.length > 0) {
      const value = this.#queue.shift();
      if (this.#isCloseRequested && this.#queue.length === 0) this.#close();
      else this.#pull();
      return Promise.resolve({ done: false, value });
    }
    if (this.#state === "closed") return Promise.resolve({ done: true, value: undefined });
    const read = Promise.withResolvers();
    this.#reads.push(read);
    this.#pull();
    return read.promise;
  }

  #pull() {
    const isWanted = this.#reads.length > 0 || this.#queue.length < this.#mark;
    if (this.#state !== "readable" || !this.#isStarted || this.#isCloseRequested || !isWanted) return;
    if (this.#isPulling) {
      this.#mustPull = true;
      return;
    }
    this.#isPulling = true;
    let pulled;
    try {
      pulled = this.#source.pull?.(this.#controller);
    } catch (error) {
      pulled = Promise.reject(error);
    }
    Promise.resolve(pulled).then(
      () => this.#pulled(),
      (error) => {
        this.#fail(error);
        this.#pulled();
      },
    );
  }

  #pulled() {
    this.#isPulling = false;
    if (!this.#mustPull) return;
    this.#mustPull = false;
    this.#pull();
  }

  /** Returns a promise that resolves when the stream is closed, and rejects when it fails. */
  #closed() {
    if (this.#ended === undefined) {
      this.#ended = Promise.withResolvers();
      this.#ended.promise.catch(() => {});
      if (this.#state === "closed") this.#ended.resolve();
      if (this.#state === "errored") this.#ended.reject(this.#error);
    }
    return this.#ended.promise;
  }

  #close() {
    this.#state = "closed";
    for (const read of this.#reads.splice(0)) read.resolve({ done: true, value: undefined });
    this.#ended?.resolve();
  }

  #fail(error) {
    if (this.#state !== "readable") return;
    this.#state = "errored";
    this.#error = error;
    this.#queue = [];
    for (const read of this.#reads.splice(0)) read.reject(error);
    this.#ended?.reject(error);
  }

  async #cancel(reason) {
    this.#isDisturbed = true;
    if (this.#state === "errored") throw this.#error;
    if (this.#state === "closed") return;
    this.#queue = [];
    this.#close();
    await this.#source.cancel?.(reason);
  }

  #release() {
    this.#reader = undefined;
    for (const read of this.#reads.splice(0)) read.reject(new TypeError("the reader was released"));
  }
}

class Reader {
  #stream;
  #closed;

  constructor(stream) {
    this.#stream = stream;
    this.#closed = stream.closed;
  }

  get closed() {
    return this.#closed();
  }

  async read() {
    return this.#held().read();
  }

  async cancel(reason) {
    await this.#held().cancel(reason);
  }

  releaseLock() {
    this.#stream?.release();
    this.#stream = undefined;
  }

  #held() {
    if (this.#stream === undefined) throw new TypeError("the reader was released");
    return this.#stream;
  }
}
