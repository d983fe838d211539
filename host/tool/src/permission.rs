//! Who may use what: what a plugin asks for, what a person offers, and what is granted.
//!
//! * [`Permissions`] are *asked* by a plugin, in its manifest.
//! * [`Policy`] is *offered* by a person, in the configuration, on the command line or at a prompt.
//! * [`Granted`] is what a call gets: the intersection, made by [`Asked::granted_of`] and nowhere
//!   else.
//!
//! Everything is a pure function of the two sides: nothing that a tool, a plugin or a model says
//! while it runs is a part of it. A grant can therefore not be widened from inside.

mod access;
mod address;
mod clock;
mod granted;
mod host;
mod http;
mod kept;
mod limits;
mod mount_name;
mod policy;
mod secret;
mod socket;

pub use access::FileAccess;
pub use address::{AddressRange, InvalidAddressRange, is_public_address};
pub use clock::ClockPrecision;
pub use granted::{Asked, Granted, InvalidPermission, Missing, Permission};
pub use host::{Host, HostPattern, InvalidHost};
pub use http::{HttpMethods, HttpRule, HttpScheme, HttpTarget, InvalidHttpRule, PortRule};
pub use kept::KeptAsked;
pub use limits::LimitsAsked;
pub use mount_name::{InvalidMountName, MountName};
pub use policy::{BoundHeader, HttpGrant, InvalidBoundHeader, Permissions, Policy};
pub use secret::{InvalidSecretTemplate, SecretTemplate, SecretText};
pub use socket::{InvalidSocketRule, SocketProtocol, SocketRule};
