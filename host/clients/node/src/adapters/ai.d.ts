import type { ToolSet } from "ai";

import type { Cofferdam } from "../index.js";

/**
 * Returns the tools of a host for the AI SDK.
 *
 * A call that does not succeed is a `tool-error`, whose message is the text for the model and whose
 * `cause` is the error of the host. Tools that need approval lead to approval requests. A call that
 * the user has approved there is approved; for other calls that need approval, `approve` of the
 * host decides.
 */
export function tools(host: Cofferdam): ToolSet;
