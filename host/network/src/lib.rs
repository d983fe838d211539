//! Outgoing HTTP for requesters that are not trusted.
//!
//! # Policy
//!
//! * **What was checked is what is sent.** A request goes out as an [`Admitted`] one, and only
//!   [`admit`] makes those, out of the request itself and the grants.
//! * **The address that was checked is the address that is connected.** A name is looked up once
//!   per request; answers that are neither public nor granted are skipped, and the connection goes
//!   to one of the others, by its number.
//! * **Nothing is ambient.** No proxies, no environment, no cookies, no credentials, no cache, no
//!   connection that another request has used. A redirect is an answer like any other: whoever
//!   follows it sends a new request.
//! * **Everything has a limit**: connecting, waiting, header bytes, bytes in both directions,
//!   requests at one time.
//! * **Dropping is closing.** A future or a body that is dropped takes its connection with it.
//! * **A secret is added last**, by the host, to requests that its grant names, and is in no error
//!   and no log.
//!
//! This crate knows nothing of Wasm.

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
pub use error::{BoxError, ClientError, InvalidTarget, NetworkError, Stage};
pub use policy::{Admitted, admit, is_reserved_header};
pub use resolve::{Resolver, SystemResolver};
