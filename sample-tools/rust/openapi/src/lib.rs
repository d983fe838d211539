//! Tools that call an HTTP API. The build makes one tool of each operation in the OpenAPI document
//! beside `Cargo.toml`.

mod answer;
mod http;
mod operation;
mod request;

#[cfg(test)]
#[path = "../generate/mod.rs"]
mod generate;

use crate::operation::{Body, Call, Encoding, Location, Method, Operation, Parameter, Style};

include!(concat!(env!("OUT_DIR"), "/operations.rs"));
