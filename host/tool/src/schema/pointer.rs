//! JSON Pointers (RFC 6901) into a declaration.

use crate::json::{Json, JsonShape};

/// A pointer as a string, the form that `ARG-39` shows.
pub(super) type Pointer = String;

/// Returns the pointer to a member or element of the value at `at`.
pub(super) fn join(at: &str, token: &str) -> Pointer {
    format!("{at}/{}", token.replace('~', "~0").replace('/', "~1"))
}

/// Returns the value that a pointer points to, with the pointer in normalized form.
pub(super) fn find<'j>(root: &'j Json<'j>, pointer: &str) -> Option<(Pointer, &'j Json<'j>)> {
    let mut found = (Pointer::new(), root);
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        let next = match found.1.shape() {
            JsonShape::Object(object) => object.get(&token)?,
            JsonShape::Array(items) => items.get(index(&token)?)?,
            _ => return None,
        };
        found = (join(&found.0, &token), next);
    }
    Some(found)
}

/// Parses an array index: digits without leading zeros.
fn index(token: &str) -> Option<usize> {
    let is_canonical = token == "0" || token.starts_with(|first| matches!(first, '1'..='9'));
    token.parse().ok().filter(|_| is_canonical)
}

/// Decodes the `%XX` of a URI fragment. Invalid escapes stay unchanged; a result that is not UTF-8
/// does not match any pointer.
pub(super) fn percent_decoded(fragment: &str) -> String {
    if !fragment.contains('%') {
        return fragment.to_owned();
    }
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = (byte == b'%').then(|| after.split_at_checked(2)).flatten();
        match escaped.and_then(|(digits, after)| Some((hex_byte(digits)?, after))) {
            Some((decoded, after)) => {
                bytes.push(decoded);
                rest = after;
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(digits)
        .ok()
        .filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u8::from_str_radix(digits, 16).ok()
}
