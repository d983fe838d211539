//! Decodes keys from the bytes that a terminal sends.

use std::collections::VecDeque;

/// One key, or a mark around pasted text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Tab,
    Enter,
    /// A line feed: Enter, or part of a line ending in pasted text.
    LineFeed,
    Backspace,
    Delete,
    Left,
    Right,
    WordLeft,
    WordRight,
    Home,
    End,
    Up,
    Down,
    /// Deletes to the end of the line.
    KillEnd,
    /// Deletes to the beginning of the line.
    KillStart,
    /// Deletes the word before the cursor.
    KillWord,
    /// Draws the line again.
    Redraw,
    /// Ctrl-D.
    EndOfInput,
    Interrupt,
    Suspend,
    Quit,
    PasteStart,
    PasteEnd,
    /// A key without a function.
    Unknown,
}

/// Maximum length of an escape sequence in bytes.
const SEQUENCE_BYTES_MAX: usize = 16;

/// Takes one key from the front of `bytes`. Returns `None` if it is incomplete.
pub(super) fn next(bytes: &mut VecDeque<u8>) -> Option<Key> {
    let first = *bytes.front()?;
    if first == 0x1b {
        return escape(bytes);
    }
    if first >= 0x80 {
        return character(bytes, first);
    }
    bytes.pop_front();
    Some(match first {
        0x01 => Key::Home,
        0x02 => Key::Left,
        0x03 => Key::Interrupt,
        0x04 => Key::EndOfInput,
        0x05 => Key::End,
        0x06 => Key::Right,
        0x08 | 0x7f => Key::Backspace,
        b'\t' => Key::Tab,
        b'\r' => Key::Enter,
        b'\n' => Key::LineFeed,
        0x0b => Key::KillEnd,
        0x0c => Key::Redraw,
        0x0e => Key::Down,
        0x10 => Key::Up,
        0x15 => Key::KillStart,
        0x17 => Key::KillWord,
        0x1a => Key::Suspend,
        0x1c => Key::Quit,
        0x20..=0x7e => Key::Char(char::from(first)),
        _ => Key::Unknown,
    })
}

fn escape(bytes: &mut VecDeque<u8>) -> Option<Key> {
    let second = *bytes.get(1)?;
    if !matches!(second, b'[' | b'O') {
        // The second of two escapes may begin a sequence.
        bytes.drain(..if second == 0x1b { 1 } else { 2 });
        return Some(match second {
            b'b' => Key::WordLeft,
            b'f' => Key::WordRight,
            0x7f => Key::KillWord,
            _ => Key::Unknown,
        });
    }
    let Some(end) = bytes.iter().skip(2).position(|byte| (0x40..=0x7e).contains(byte)) else {
        if bytes.len() < SEQUENCE_BYTES_MAX {
            return None;
        }
        bytes.drain(..SEQUENCE_BYTES_MAX);
        return Some(Key::Unknown);
    };
    let sequence: Vec<u8> = bytes.drain(..end + 3).skip(2).collect();
    Some(match sequence.as_slice() {
        b"A" => Key::Up,
        b"B" => Key::Down,
        b"C" => Key::Right,
        b"D" => Key::Left,
        b"H" | b"1~" | b"7~" => Key::Home,
        b"F" | b"4~" | b"8~" => Key::End,
        b"3~" => Key::Delete,
        b"1;3C" | b"1;5C" => Key::WordRight,
        b"1;3D" | b"1;5D" => Key::WordLeft,
        b"200~" => Key::PasteStart,
        b"201~" => Key::PasteEnd,
        _ => Key::Unknown,
    })
}

fn character(bytes: &mut VecDeque<u8>, first: u8) -> Option<Key> {
    let length = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    let is_whole = bytes.len() >= length;
    let encoded: Vec<u8> = bytes.iter().take(length).copied().collect();
    match std::str::from_utf8(&encoded) {
        Ok(text) => {
            bytes.drain(..length);
            Some(text.chars().next().map_or(Key::Unknown, Key::Char))
        }
        Err(error) if error.error_len().is_none() && !is_whole => None,
        Err(_) => {
            bytes.pop_front();
            Some(Key::Char(char::REPLACEMENT_CHARACTER))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> (Vec<Key>, usize) {
        let mut bytes: VecDeque<u8> = bytes.iter().copied().collect();
        let keys = std::iter::from_fn(|| next(&mut bytes)).collect();
        (keys, bytes.len())
    }

    #[test]
    fn keys_are_distinguished() {
        let (found, left) =
            keys("aé\u{1b}[A\u{1b}[200~\r\u{1b}[201~\u{1b}b\u{3}\u{1b}[99;9x".as_bytes());
        let expected = [
            Key::Char('a'),
            Key::Char('é'),
            Key::Up,
            Key::PasteStart,
            Key::Enter,
            Key::PasteEnd,
            Key::WordLeft,
            Key::Interrupt,
            Key::Unknown,
        ];
        assert_eq!((found.as_slice(), left), (expected.as_slice(), 0));
    }

    #[test]
    fn half_a_key_waits_for_its_rest_and_no_bytes_are_buffered_for_ever() {
        for half in [b"\x1b".as_slice(), b"\x1b[", b"\x1b[200", b"\xe2\x82"] {
            assert_eq!(keys(half), (vec![], half.len()), "{half:?}");
        }
        assert_eq!(keys(b"\xe2a").0, [Key::Char('\u{fffd}'), Key::Char('a')]);
        assert_eq!(keys(b"\xff").0, [Key::Char('\u{fffd}')]);
        assert_eq!(keys(&[b"\x1b[".as_slice(), &[b'1'; 20]].concat()).0[0], Key::Unknown);
    }
}
