//! Outgoing HTTP for untrusted requesters.
//!
//! # Policy
//!
//! * **What is checked is what is sent.** Only an [`AdmittedRequest`] request can be sent, and only
//!   [`admit`] creates one, from the request itself and the grants.
//! * **The address that is checked is the address that is connected to.** A name is looked up once
//!   per request; addresses that are neither public nor granted are skipped, and the connection
//!   goes to one of the others by number.
//! * **Nothing is ambient.** No proxies, environment variables, cookies, credentials, caches or
//!   reused connections. A redirect is an ordinary response: a caller that follows it sends a new
//!   request.
//! * **Everything has a limit**: connecting, waiting, header bytes, bytes in both directions,
//!   concurrent requests.
//! * **Dropping closes.** Dropping a future or a body closes its connection.
//! * **A secret is added last**, by the host, to requests that its grant names, and appears in no
//!   error and no log.
//!
//! This crate does not depend on Wasm.

mod address;
mod allowance;
mod body;
mod client;
mod connect;
mod error;
mod meter;
mod policy;
mod resolve;
mod target;
mod tls;

pub use address::{AddressClass, admitted};
pub use allowance::Allowance;
pub use body::ResponseBody;
pub use client::{Client, ClientConfig, Timeouts};
pub use error::{BoxError, ClientError, InvalidTarget, NetworkError, NetworkStage};
pub use policy::{AdmittedRequest, admit, is_reserved_header};
pub use resolve::{Resolver, SystemResolver};
