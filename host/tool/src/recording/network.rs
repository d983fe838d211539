//! HTTP requests of a call.

use serde::{Deserialize, Serialize};

use super::RecordedBytes;

/// HTTP request of a call and its response, without the headers that the host adds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedRequest {
    /// Method in upper case.
    pub method: String,
    /// URL without a fragment.
    pub url: String,
    /// Headers in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// Part of the body that was sent.
    #[serde(default)]
    pub body: RecordedBytes,
    /// True if the body was sent to its end.
    #[serde(default)]
    pub is_complete: bool,
    /// Response; `None` if the guest waited for it in vain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<RecordedResponse>,
}

/// Response to a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedResponse {
    /// Status; 0 if the request failed.
    pub status: u16,
    /// Headers in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// Part of the body that the guest read.
    #[serde(default)]
    pub body: RecordedBytes,
    /// Trailers in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trailers: Vec<(String, String)>,
    /// Error code of `wasi:http` that ended the request or the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// True if the body was read to its end.
    #[serde(default)]
    pub is_complete: bool,
    /// True if the guest waited for more of the body in vain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_stalled: bool,
}

impl RecordedRequest {
    pub(super) fn contents(&self) -> impl Iterator<Item = &RecordedBytes> {
        let response = self.response.as_ref().map(|response| &response.body);
        std::iter::once(&self.body).chain(response)
    }

    pub(super) fn contents_mut(&mut self) -> impl Iterator<Item = &mut RecordedBytes> {
        let response = self.response.as_mut().map(|response| &mut response.body);
        std::iter::once(&mut self.body).chain(response)
    }
}
