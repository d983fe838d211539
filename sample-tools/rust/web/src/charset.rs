//! Decodes bodies to text.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Number of bytes at the beginning of a page in which it may name its encoding.
const META_BYTES: usize = 1024;

/// Decodes a body: by its byte order mark, the media type, the page itself, or else as UTF-8 or, if
/// it is not UTF-8, as Windows-1252. Invalid sequences become U+FFFD.
pub(crate) fn decode(body: &[u8], media_type: Option<&str>, is_html: bool) -> String {
    let of_page = || is_html.then(|| label(body.get(..META_BYTES).unwrap_or(body)))?;
    let named = media_type.and_then(|media_type| label(media_type.as_bytes())).or_else(of_page);
    let encoding = named.and_then(|label| Encoding::for_label(&label));
    let encoding = encoding.unwrap_or_else(|| match std::str::from_utf8(body) {
        Ok(_) => UTF_8,
        // The end of the body may be cut in the middle of a character.
        Err(error) if error.error_len().is_none() => UTF_8,
        Err(_) => WINDOWS_1252,
    });
    // A byte order mark overrides the encoding.
    let (text, _, _) = encoding.decode(body);
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
    use super::decode;

    #[test]
    fn encodings_are_found() {
        let check = |body: &[u8], media_type, expected| {
            assert_eq!(decode(body, media_type, true), expected);
        };
        check("ä".as_bytes(), None, "ä");
        check(b"\xe4", None, "\u{fffd}");
        check(b"\xe4 ", None, "ä ");
        check(b"\xe4", Some("text/html; charset=\"ISO-8859-1\""), "ä");
        check(b"\x82\xa0", Some("text/plain;charset=Shift_JIS"), "あ");
        check(b"<meta charset=koi8-r>\xc1", None, "<meta charset=koi8-r>а");
        check(b"\xff\xfeA\0", Some("text/html; charset=utf-8"), "A");
        check(b"\xef\xbb\xbfA", None, "A");
        check(b"a\xc3", None, "a\u{fffd}");
        check(b"a", Some("text/html; charset=nonesuch"), "a");
    }
}
