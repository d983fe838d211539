// Signals of calls. Node warns of more than ten listeners of a signal, so that calls share one.

/** @typedef {{ ids: Set<number>, listener: () => void }} Group */

export class Cancellation {
  #cancel;
  /** @type {Map<AbortSignal, Group>} */
  #groups = new Map();

  /** @param {(id: number) => void} cancel */
  constructor(cancel) {
    this.#cancel = cancel;
  }

  /**
   * Cancels a call when a signal is aborted.
   *
   * @param {AbortSignal} signal
   * @param {number} id
   */
  add(signal, id) {
    const group = this.#groups.get(signal) ?? this.#listen(signal);
    group.ids.add(id);
  }

  /** @param {AbortSignal} signal @param {number} id */
  remove(signal, id) {
    const group = this.#groups.get(signal);
    group?.ids.delete(id);
    if (group?.ids.size !== 0) return;
    signal.removeEventListener("abort", group.listener);
    this.#groups.delete(signal);
  }

  /** @param {AbortSignal} signal */
  #listen(signal) {
    /** @type {Set<number>} */
    const ids = new Set();
    const listener = () => {
      for (const id of ids) this.#cancel(id);
    };
    const group = { ids, listener };
    signal.addEventListener("abort", listener);
    this.#groups.set(signal, group);
    return group;
  }
}
