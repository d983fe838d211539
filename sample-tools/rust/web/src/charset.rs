//! Decodes bodies to text.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Number of bytes at the beginning of a page in which it may name its encoding.
const META_BYTES: usize = 1024;

/// Body of a response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Body<'b> {
    pub(crate) bytes: &'b [u8],
    pub(crate) media_type: Option<&'b str>,
    /// True if there were more bytes.
    pub(crate) is_cut: bool,
}

/// Decodes a body: by its byte order mark, the media type, the page itself, or else as UTF-8 or, if
/// it is not UTF-8, as Windows-1252. Invalid sequences become U+FFFD.
pub(crate) fn decode(body: Body<'_>, is_html: bool) -> String {
    let bytes = body.bytes;
    let of_page = || is_html.then(|| label(bytes.get(..META_BYTES).unwrap_or(bytes)))?;
    let named =
        body.media_type.and_then(|media_type| label(media_type.as_bytes())).or_else(of_page);
    let encoding = named.and_then(|label| Encoding::for_label(&label));
    let encoding = encoding.unwrap_or_else(|| match std::str::from_utf8(bytes) {
        Ok(_) => UTF_8,
        // The body may be cut in the middle of a character.
        Err(error) if body.is_cut && error.error_len().is_none() => UTF_8,
        Err(_) => WINDOWS_1252,
    });
    // A byte order mark overrides the encoding.
    let (text, _, _) = encoding.decode(bytes);
    text.into_owned()
}

/// Returns the value after `charset=`.
fn label(text: &[u8]) -> Option<Vec<u8>> {
    const KEY: &[u8] = b"charset=";
    let lower = text.to_ascii_lowercase();
    let at = lower.windows(KEY.len()).position(|part| part == KEY)?;
    let value: Vec<u8> = lower
        .get(at + KEY.len()..)?
        .iter()
        .copied()
        .skip_while(|byte| matches!(byte, b'"' | b'\'' | b' '))
        .take_while(|byte| byte.is_ascii_alphanumeric() || b"-_:.".contains(byte))
        .collect();
    Some(value).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{Body, decode};

    #[test]
    fn encodings_are_found() {
        let check = |bytes: &[u8], media_type, expected| {
            let body = Body { bytes, media_type, is_cut: false };
            assert_eq!(decode(body, true), expected);
        };
        let cut = |bytes| decode(Body { bytes, media_type: None, is_cut: true }, true);
        check("ä".as_bytes(), None, "ä");
        check(b"\xe4", None, "ä");
        check(b"caf\xe9", None, "café");
        assert_eq!(cut(b"a\xc3"), "a\u{fffd}");
        assert_eq!(cut(b"\xe4 \xc3"), "ä Ã");
        check(b"\xe4 ", None, "ä ");
        check(b"\xe4", Some("text/html; charset=\"ISO-8859-1\""), "ä");
        check(b"\x82\xa0", Some("text/plain;charset=Shift_JIS"), "あ");
        check(b"<meta charset=koi8-r>\xc1", None, "<meta charset=koi8-r>а");
        check(b"\xff\xfeA\0", Some("text/html; charset=utf-8"), "A");
        check(b"\xef\xbb\xbfA", None, "A");
        check(b"a\xc3", None, "aÃ");
        check(b"a", Some("text/html; charset=nonesuch"), "a");
    }
}
