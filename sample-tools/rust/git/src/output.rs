//! Bounds of results.

/// Maximum number of bytes of text that a call returns, whatever it asks for.
pub(crate) const TEXT_BYTES_MAX: usize = 512 << 10;

/// Cuts a text after the last line that fits. Returns true if something was cut.
pub(crate) fn cut(text: &mut String, bytes_max: usize) -> bool {
    let bytes_max = bytes_max.min(TEXT_BYTES_MAX);
    if text.len() <= bytes_max {
        return false;
    }
    let fits = text.floor_char_boundary(bytes_max);
    let end = text.get(..fits).and_then(|text| text.rfind('\n')).map_or(fits, |end| end + 1);
    text.truncate(end);
    true
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn whole_lines_remain() {
        for (max, expected) in [(7, "ab\ncä\n"), (6, "ab\n"), (3, "ab\n"), (2, "ab"), (0, "")] {
            let mut text = "ab\ncä\n".to_owned();
            assert_eq!(cut(&mut text, max), max < 7, "{max}");
            assert_eq!(text, expected);
        }
    }
}
