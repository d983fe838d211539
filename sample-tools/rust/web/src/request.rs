//! Requests.

use std::io::Read;

use cofferdam_sdk::{ToolFailure, http};

use crate::address::Address;

/// Headers of every request. Compression is not among them.
const HEADERS: [(&str, &str); 2] = [
    ("accept", "text/html, application/json;q=0.9, text/*;q=0.8, */*;q=0.5"),
    ("user-agent", concat!("cofferdam-web/", env!("CARGO_PKG_VERSION"))),
];

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
    pub(crate) body: Box<dyn Read>,
}

impl Reply {
    /// Reads at most `bytes_max` bytes of the body. Returns true if there are more.
    pub(crate) fn read(self, bytes_max: usize) -> Result<(Vec<u8>, bool), ToolFailure> {
        let mut bytes = Vec::new();
        let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
        self.body
            .take(limit)
            .read_to_end(&mut bytes)
            .map_err(|error| ToolFailure::new(error.to_string()).transient())?;
        let is_cut = bytes.len() > bytes_max;
        bytes.truncate(bytes_max);
        Ok((bytes, is_cut))
    }
}

/// Sends a request with GET. Does not follow redirects.
pub(crate) fn get(address: &Address<'_>) -> Result<Reply, ToolFailure> {
    let scheme = if address.is_secure { "https" } else { "http" };
    let url = format!("{scheme}://{}{}", address.authority, address.path);
    let request = http::get(url).redirects_max(0);
    let request =
        HEADERS.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let response = request.send().map_err(|error| failed(address.authority, error))?;
    let header = |name: &str| response.header(name).map(str::to_owned);
    Ok(Reply {
        status: response.status(),
        media_type: header("content-type"),
        encoding: header("content-encoding").map(|it| it.to_ascii_lowercase()),
        length: header("content-length").and_then(|length| length.parse().ok()),
        location: header("location"),
        body: Box::new(response),
    })
}

/// Failure of a request. The operator reads in the record which grant is missing; the model only
/// has to know that another attempt is of no use.
fn failed(host: &str, error: http::Error) -> ToolFailure {
    match error {
        http::Error::Refused(_) => {
            ToolFailure::new(format!("requests to {host} are not permitted")).permanent()
        }
        http::Error::Timeout => {
            ToolFailure::new(format!("{host} does not answer in time")).transient()
        }
        other => other.into(),
    }
}
