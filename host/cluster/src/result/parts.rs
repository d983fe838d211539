//! Results in parts, for those that do not fit into one message.

use bytes::Bytes;

use crate::frame::{self, HEADER_BYTES_MAX};
use crate::message::WorkerMessage;

/// Maximum size of a result in bytes: sixteen times the default limit of a plugin's output, because
/// JSON strings and Base64 are longer than what they encode.
pub(super) const RESULT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum number of parts of a result. The smallest messages that the bus may allow need 342.
const PARTS_MAX: usize = 1024;
/// Maximum size of a part in bytes, so that results do not delay other messages of a connection.
const PART_BYTES_MAX: usize = 512 * 1024;

/// Returns the frames of a result.
pub(crate) fn split(offer: u64, result: &Bytes, message_bytes_max: usize) -> Vec<Bytes> {
    let part_bytes = message_bytes_max.saturating_sub(HEADER_BYTES_MAX).clamp(1, PART_BYTES_MAX);
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let bytes = u64::try_from(result.len()).unwrap_or(u64::MAX);
    let parts = number(result.len().div_ceil(part_bytes));
    let frame = |(part, body): (usize, &[u8])| {
        let header = WorkerMessage::Result { offer, part: number(part), parts, bytes };
        frame::encode(&header, body)
    };
    result.chunks(part_bytes).enumerate().map(frame).collect()
}

/// Parts of a result that have arrived.
#[derive(Debug, Default)]
pub(crate) struct ResultParts {
    parts: Vec<Option<Bytes>>,
    bytes: usize,
}

impl ResultParts {
    /// Adds a part. Returns the result if it is complete.
    ///
    /// # Errors
    /// If the part contradicts the others or the limits.
    pub(crate) fn add(
        &mut self,
        (part, parts): (u32, u32),
        bytes: u64,
        body: Bytes,
    ) -> Result<Option<Bytes>, String> {
        let (part, parts) = (part as usize, parts as usize);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let has_valid_size = bytes <= RESULT_BYTES_MAX && parts <= PARTS_MAX.min(bytes);
        if !has_valid_size || part >= parts || body.is_empty() {
            return Err(format!(
                "expected at most {PARTS_MAX} parts with {RESULT_BYTES_MAX} bytes, found part \
                 {part} of {parts} with {bytes} bytes"
            ));
        }
        if parts == 1 {
            return if body.len() == bytes { Ok(Some(body)) } else { Err(incomplete(bytes)) };
        }
        if self.parts.is_empty() {
            self.parts = vec![None; parts];
            self.bytes = bytes;
        }
        if self.parts.len() != parts || self.bytes != bytes {
            return Err("the parts belong to different results".to_owned());
        }
        if let Some(slot) = self.parts.get_mut(part) {
            *slot = Some(body);
        }
        if self.received_bytes() > bytes {
            return Err(incomplete(bytes));
        }
        if self.parts.iter().any(Option::is_none) {
            return Ok(None);
        }
        if self.received_bytes() != bytes {
            return Err(incomplete(bytes));
        }
        let all: Vec<u8> =
            self.parts.iter().flatten().flat_map(|part| part.iter().copied()).collect();
        Ok(Some(all.into()))
    }

    fn received_bytes(&self) -> usize {
        self.parts.iter().flatten().map(Bytes::len).sum()
    }
}

fn incomplete(bytes: usize) -> String {
    format!("the parts do not have the {bytes} bytes of the result")
}
