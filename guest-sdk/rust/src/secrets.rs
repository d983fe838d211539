//! Secrets that are granted to the plugin by name.
//!
//! A tool that only sends a secret in a request does not need this module: the user can bind the
//! secret to the request, and the tool never sees it. In a unit test the secrets are those of a
//! [`testing::Host`](crate::testing::Host).

/// Returns the value of a secret, or `None` if it is not granted, whether it exists or not. The
/// manifest of the plugin must request it: `secrets = ["github"]`.
///
/// ```
/// # use cofferdam_sdk::ToolFailure;
/// # fn tool() -> Result<(), ToolFailure> {
/// let token = cofferdam_sdk::secrets::get("github").ok_or_else(|| {
///     ToolFailure::new("the secret `github` is not granted").suggestion("ask the user to grant it")
/// })?;
/// # drop(token);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn get(name: &str) -> Option<String> {
    host::get(name)
}

#[cfg(target_arch = "wasm32")]
mod host {
    pub(super) fn get(name: &str) -> Option<String> {
        crate::guest::bindings::cofferdam::plugin::secrets::get(name).ok()
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod host {
    pub(super) use crate::testing::host::secret as get;
}
