/**
 * Write tools for Cofferdam in JavaScript: objects with a function in, one WebAssembly component
 * out.
 *
 * `index.d.ts` contains the types and the documentation of all public items.
 */

export { Content, blob, json, link, resource, text } from "./content.js";
export { RequestDenied, ToolFailure } from "./failure.js";
export { Plugin, plugin } from "./plugin.js";
export { Schema, s } from "./schema.js";
export { Tool, tool } from "./tool.js";
