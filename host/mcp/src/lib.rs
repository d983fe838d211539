//! MCP: tools of remote servers as a source of tools.
//!
//! The behaviour is fixed by numbered rules, cited as `MCP-1`. [`client`] connects to servers that are not trusted.

pub mod client;
