//! Permissions: what a plugin requests, what the operator offers, and what a call is granted.
//!
//! * A plugin *requests* [`Permissions`] in its manifest.
//! * The operator *offers* a [`Policy`] in the configuration, on the command line or at a prompt.
//! * [`GrantedPermissions`] is what a call gets: the intersection, computed only by
//!   [`RequestedPermissions::granted_of`].
//!
//! Everything is a pure function of the two sides. Nothing that a tool, a plugin or a model says at
//! run time enters into it, so a grant cannot be widened from inside.

mod access;
mod address;
mod clock;
mod granted;
mod host;
mod http;
mod limits;
mod mount_name;
mod policy;
mod secret;
mod serialized;
mod socket;

pub use access::FileAccess;
pub use address::{AddressRange, InvalidAddressRange, is_public_address};
pub use clock::ClockPrecision;
pub use granted::{
    GrantedPermissions, InvalidPermission, MissingPermission, Permission, RequestedPermissions,
};
pub use host::{Host, HostPattern, InvalidHost};
pub use http::{HttpMethods, HttpRule, HttpScheme, HttpTarget, InvalidHttpRule, PortRule};
pub use limits::RequestedLimits;
pub use mount_name::{InvalidMountName, MountName};
pub use policy::{
    BoundHeader, HttpGrant, InvalidBoundHeader, Permissions, Policy, is_connection_header,
};
pub use secret::{InvalidSecretTemplate, SecretTemplate, SecretText};
pub use serialized::SerializedPermissions;
pub use socket::{InvalidSocketRule, SocketProtocol, SocketRule};
