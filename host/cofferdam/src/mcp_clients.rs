//! Registration with MCP clients, the programs that start `cofferdam serve` and talk to it.
//!
//! A client reads the command line of a server from its own configuration file.
//! [`McpClient::write`] adds a [`ServerEntry`] to that file and preserves the rest. [`Bundle`]
//! packs a program and its plugins into one file that clients install.

mod bundle;
mod client;
mod json_file;
mod serve_command;
mod toml_file;

pub use self::bundle::{Bundle, BundleOptions};
pub use self::client::{FileChange, McpClient, ServerEntry};
pub use self::serve_command::{ServeCommand, environment_variables};
