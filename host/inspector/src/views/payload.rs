//! Downloads: payloads of a call, its entry in the log, and its recording.

use cofferdam_record::{CallEntry, Log, PayloadKind};
use http::Response;

use crate::answer::{self, PageBody};
use crate::error::PageError;

/// A payload of a call, with its name in addresses and as a heading.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedPayload {
    pub(super) kind: PayloadKind,
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// `Content-Disposition` of the download.
    disposition: &'static str,
}

macro_rules! payload {
    ($kind:ident, $name:literal, $title:literal) => {
        NamedPayload {
            kind: PayloadKind::$kind,
            name: $name,
            title: $title,
            disposition: concat!("attachment; filename=\"", $name, "\""),
        }
    };
}

/// Payloads in the order of the page.
pub(super) const PAYLOADS: [NamedPayload; 7] = [
    payload!(Arguments, "arguments", "Arguments"),
    payload!(Result, "result", "Result"),
    payload!(Detail, "detail", "Detail"),
    payload!(Backtrace, "backtrace", "Call stack"),
    payload!(Diff, "diff", "Changes of files"),
    payload!(Stdout, "stdout", "Standard output"),
    payload!(Stderr, "stderr", "Standard error"),
];

/// Answers a request for a payload, or for `entry`, the call as it stands in the log.
pub(super) fn download(
    log: &Log,
    call: &CallEntry,
    name: &str,
) -> Result<Response<PageBody>, PageError> {
    if name == "entry" {
        let json = serde_json::to_vec_pretty(call).unwrap_or_default();
        return Ok(answer::download(json, "attachment; filename=\"call.json\""));
    }
    let payload = PAYLOADS.iter().find(|payload| payload.name == name);
    let payload = payload.ok_or(PageError::NotFound)?;
    let bytes = log.payload(call, payload.kind)?.ok_or(PageError::NotFound)?;
    Ok(answer::download(bytes, payload.disposition))
}
