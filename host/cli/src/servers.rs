//! Remote MCP servers of the configuration: who they are, how they are reached, and what becomes of one that is not there.

mod authorization;
mod connect;
mod kept;
mod pins;
mod settings;

pub(crate) use self::authorization::Login;
pub(crate) use self::connect::{Connected, Unreachable, connect, connect_all};
pub(crate) use self::kept::{Kept, News, start_all, wait_for_all};
pub(crate) use self::pins::{Change, ServerPins};
pub(crate) use self::settings::{ServerSpec, deciding_files, of_config, of_name, unknown};
