import type { Server } from "@modelcontextprotocol/sdk/server/index.js";

import type { Cofferdam } from "../index.js";

/**
 * Adds the tools of a host to a server that has no other tools and is not connected yet. For an
 * `McpServer`, it is `server.server`.
 *
 * A call that does not succeed is a result with `isError` and the text for the model. A client that
 * can be asked decides about calls that need approval; for other clients, `approve` of the host
 * decides.
 */
export function addTools(server: Server, host: Cofferdam): void;
