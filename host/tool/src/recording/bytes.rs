//! Bytes in a recording.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// Bytes in a recording: inline, or stored separately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordedBytes {
    /// UTF-8.
    Text(String),
    /// Other bytes, in Base64.
    Base64(String),
    /// Bytes that are stored under their digest.
    Stored {
        /// Digest under which they are stored.
        hash: String,
        /// Number of bytes.
        bytes: u64,
    },
}

impl RecordedBytes {
    /// Records `bytes` inline.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Base64(STANDARD.encode(error.as_bytes())),
        }
    }

    /// Returns the bytes, or `None` if they are stored separately or are not valid Base64.
    #[must_use]
    pub fn bytes(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::Text(text) => Some(Cow::Borrowed(text.as_bytes())),
            Self::Base64(text) => STANDARD.decode(text).ok().map(Cow::Owned),
            Self::Stored { .. } => None,
        }
    }

    /// Returns the number of characters that the bytes take in a recording.
    #[must_use]
    pub fn stored_length(&self) -> usize {
        match self {
            Self::Text(text) | Self::Base64(text) => text.len(),
            Self::Stored { hash, .. } => hash.len(),
        }
    }
}

impl Default for RecordedBytes {
    fn default() -> Self {
        Self::Text(String::new())
    }
}
