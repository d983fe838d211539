//! Remote MCP servers of the configuration: who they are, how they are reached, and what becomes of one that is not there.

mod authorization;
pub mod connect;
mod kept;
mod pins;
mod settings;

pub use self::connect::{Connected, Unreachable, connect, connect_all};
pub use self::kept::{Kept, News, start_all, wait_for_all};
pub use self::pins::{Change, ServerPins};
pub use self::settings::{ServerSpec, deciding_files, of_config, of_name, unknown};
