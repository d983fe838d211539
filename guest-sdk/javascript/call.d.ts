/**
 * The call that is being served. In a test it is what the test says: see `cofferdam/testing`.
 *
 * @module cofferdam/call
 */

/** The id of the call, unique within its session; empty if there is none. */
export function id(): string;

/** The session that the call belongs to, if it belongs to one. */
export function session(): string | undefined;

/** Milliseconds until the host ends the call as timed out. */
export function timeLeftMs(): number;

/** Whether the caller has given up. The host stops a cancelled call by itself, soon; a tool that asks can stop sooner. */
export function cancelled(): boolean;

/**
 * Says how far the call has come, in a unit of the tool's own. `done` should not fall. The host may leave reports out when they
 * come too fast.
 */
export function progress(done: number, total?: number, message?: string): void;
