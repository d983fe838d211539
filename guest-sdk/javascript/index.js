/**
 * Write tools for Cofferdam in JavaScript: objects with a function in, one WebAssembly component out.
 *
 * The types and the documentation of everything public are in `index.d.ts`.
 */

export { Content, blob, json, link, resource, text } from "./content.js";
export { ToolFailure } from "./failure.js";
export { Plugin, plugin } from "./plugin.js";
export { Schema, s } from "./schema.js";
export { Tool, tool } from "./tool.js";
