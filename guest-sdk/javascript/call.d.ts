/**
 * The current call. In a test, the test defines it: see `cofferdam/testing`.
 *
 * @module cofferdam/call
 */

/** Returns the id of the call, unique within its session. Empty outside a call. */
export function id(): string;

/** Returns the session of the call, if there is one. */
export function session(): string | undefined;

/** Returns the milliseconds until the host stops the call with a timeout. */
export function timeLeftMs(): number;

/**
 * Returns whether the caller has canceled the call. The host soon stops a canceled call by itself;
 * a tool that checks can stop sooner.
 */
export function cancelled(): boolean;

/**
 * Reports progress in a unit that the tool chooses. `done` should not decrease. The host may drop
 * reports that come too fast.
 */
export function progress(done: number, total?: number, message?: string): void;
