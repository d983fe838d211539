//! Finds a quote that is not closed, which the reader of CSV takes for a cell up to the end.

/// Position in a CSV file, in the terms of the `csv` crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// In the mark at the beginning of a file.
    Start,
    CellStart,
    Cell,
    Quoted,
    /// Behind a quote in a quoted cell, which ends the cell or is doubled.
    Quote,
}

/// Follows the quotes of a file.
pub(super) struct Quotes {
    delimiter: u8,
    position: Position,
}

impl Quotes {
    pub(super) fn new(delimiter: u8) -> Self {
        Self { delimiter, position: Position::Start }
    }

    /// Follows the next bytes of the file.
    pub(super) fn follow(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.position = match (self.position, *byte) {
                (Position::Start | Position::CellStart | Position::Quote, b'"') => Position::Quoted,
                (Position::Quoted, b'"') => Position::Quote,
                (Position::Quoted, _) => Position::Quoted,
                (Position::Start, 0xef | 0xbb | 0xbf) => Position::Start,
                (_, b'\r' | b'\n') => Position::CellStart,
                (_, byte) if byte == self.delimiter => Position::CellStart,
                _ => Position::Cell,
            };
        }
    }

    /// Returns whether a quote is open.
    pub(super) fn is_open(&self) -> bool {
        self.position == Position::Quoted
    }
}

#[cfg(test)]
mod tests {
    use super::Quotes;

    #[test]
    fn open_quotes_are_found() {
        let is_open = |text: &str| {
            let mut quotes = Quotes::new(b',');
            text.as_bytes().chunks(3).for_each(|bytes| quotes.follow(bytes));
            quotes.is_open()
        };
        for text in ["a\n\"", "a\n\"b,\n", "\"a\"\"\n", "\u{feff}\"a\n", "a,\"\"\"", "a\r\"b"] {
            assert!(is_open(text), "{text}");
        }
        for text in ["", "a", "a\"b\n", "\"a\"\n", "\"a\"\"\"\n", "\"\"", "5\",6\"\n", "\"a\"b\"\n"]
        {
            assert!(!is_open(text), "{text}");
        }
    }
}
