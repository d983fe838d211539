//! Frame of a message: a header, which is one line of JSON, and a body of any bytes.

use bytes::{BufMut as _, Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum size of a header in bytes. Headers hold names and numbers; the longest have the message
/// of a progress report.
pub(crate) const HEADER_BYTES_MAX: usize = 16 * 1024;

/// Error returned for bytes that are not a frame with a header of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidFrame {
    #[error("expected a header of at most {HEADER_BYTES_MAX} bytes, found no end of it")]
    NoHeader,
    #[error("expected a header of the protocol: {0}")]
    Header(String),
}

/// Returns a frame. A header cannot fail to be written: it consists of strings and numbers.
pub(crate) fn encode(header: &impl Serialize, body: &[u8]) -> Bytes {
    let header = serde_json::to_vec(header).unwrap_or_default();
    let mut frame = BytesMut::with_capacity(header.len() + 1 + body.len());
    frame.put_slice(&header);
    frame.put_u8(b'\n');
    frame.put_slice(body);
    frame.freeze()
}

/// Reads a frame. The body is a part of `frame` and is not copied.
pub(crate) fn decode<H: DeserializeOwned>(frame: &Bytes) -> Result<(H, Bytes), InvalidFrame> {
    let searched = frame.get(..frame.len().min(HEADER_BYTES_MAX + 1)).unwrap_or_default();
    let end = searched.iter().position(|byte| *byte == b'\n').ok_or(InvalidFrame::NoHeader)?;
    let header = frame.slice(..end);
    let header =
        serde_json::from_slice(&header).map_err(|error| InvalidFrame::Header(error.to_string()))?;
    Ok((header, frame.slice(end + 1..)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::{GatewayMessage, WorkerMessage};

    #[test]
    fn a_body_may_have_any_bytes() {
        let body = b"\n{}\n\0";
        let frame = encode(&WorkerMessage::Busy {}, body);
        let (header, read) = decode::<WorkerMessage>(&frame).unwrap();
        assert_eq!((header, &read[..]), (WorkerMessage::Busy {}, &body[..]));
    }

    #[test]
    fn unknown_headers_and_fields_are_rejected() {
        for header in [
            "",
            "{}",
            "[]",
            r#"{"type":"busy","more":1}"#,
            r#"{"type":"grant"}"#,
            r#"{"type":"start"}"#,
            r#"{"type":"start","offer":1,"remaining_ms":-1}"#,
            r#"{"type":"start","offer":1,"remaining_ms":1,"limits":{}}"#,
        ] {
            let frame = Bytes::from(format!("{header}\n"));
            assert!(decode::<WorkerMessage>(&frame).is_err(), "{header}");
            assert!(decode::<GatewayMessage>(&frame).is_err(), "{header}");
        }
        let long = Bytes::from(vec![b' '; 2 * HEADER_BYTES_MAX]);
        assert_eq!(decode::<WorkerMessage>(&long), Err(InvalidFrame::NoHeader));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn no_bytes_cause_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let bytes = Bytes::from(bytes);
            let _ = decode::<GatewayMessage>(&bytes);
            let _ = decode::<WorkerMessage>(&bytes);
        }

        #[test]
        fn no_changed_header_causes_a_panic(at in 0_usize..200, byte in any::<u8>()) {
            let message = WorkerMessage::Result { offer: 7, part: 0, parts: 2, bytes: 900 };
            let mut frame = encode(&message, b"{}").to_vec();
            let at = at % frame.len();
            frame[at] = byte;
            let _ = decode::<WorkerMessage>(&Bytes::from(frame));
        }
    }
}
