//! Form of a text file that an edit keeps: its byte order mark and its line ends.

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Byte order mark and line ends of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TextForm {
    has_mark: bool,
    has_crlf: bool,
}

impl TextForm {
    /// Returns the form of a text, whose first line shows its line ends, and the text without it.
    pub(super) fn split(text: &str) -> (Self, String) {
        let plain = text.strip_prefix(BYTE_ORDER_MARK);
        let has_mark = plain.is_some();
        let plain = plain.unwrap_or(text);
        let has_crlf =
            plain.split_inclusive('\n').next().is_some_and(|line| line.ends_with("\r\n"));
        let plain = if has_crlf { plain.replace("\r\n", "\n") } else { plain.to_owned() };
        (Self { has_mark, has_crlf }, plain)
    }

    /// Returns a text in this form.
    pub(super) fn apply(self, plain: String) -> String {
        let text = if self.has_crlf { plain.replace('\n', "\r\n") } else { plain };
        if self.has_mark { format!("{BYTE_ORDER_MARK}{text}") } else { text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_and_line_ends_are_kept() {
        for text in ["", "a\nb\n", "a\r\nb\r\n", "\u{feff}a\r\nb", "\u{feff}a"] {
            let (form, plain) = TextForm::split(text);
            assert!(!plain.contains(['\r', BYTE_ORDER_MARK]), "{text:?}");
            assert_eq!(form.apply(plain), text);
        }
    }
}
