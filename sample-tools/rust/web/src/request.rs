//! Requests.

#[cfg(target_arch = "wasm32")]
mod wasi;

use cofferdam_sdk::ToolFailure;

#[cfg(target_arch = "wasm32")]
pub(crate) use self::wasi::{Body, get};

/// Head of a response, with its body still to be read.
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Header `content-type`.
    pub(crate) media_type: Option<String>,
    /// Header `content-encoding`, in lower case.
    pub(crate) encoding: Option<String>,
    /// Header `content-length`.
    pub(crate) length: Option<u64>,
    pub(crate) location: Option<String>,
    pub(crate) body: Body,
}

impl Reply {
    /// Reads at most `bytes_max` bytes of the body. Returns true if there are more.
    pub(crate) fn read(self, bytes_max: usize) -> Result<(Vec<u8>, bool), ToolFailure> {
        let mut bytes = self.body.read(bytes_max)?;
        let is_cut = bytes.len() > bytes_max;
        bytes.truncate(bytes_max);
        Ok((bytes, is_cut))
    }
}

/// Body of a response in a test.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) struct Body(pub(crate) Vec<u8>);

#[cfg(not(target_arch = "wasm32"))]
impl Body {
    fn read(self, bytes_max: usize) -> Result<Vec<u8>, ToolFailure> {
        Ok(self.0.into_iter().take(bytes_max.saturating_add(1)).collect())
    }
}

/// Returns a failure, because there is no network interface outside a component.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn get(address: &crate::address::Address<'_>) -> Result<Reply, ToolFailure> {
    Err(ToolFailure::new(format!(
        "cannot reach {}: requests are sent in the sandbox only",
        address.authority
    )))
}
