//! Applies deltas: instructions that make an object from another one.

use crate::error::Error;

/// Returns the sizes that a delta states for its base and for its result.
pub(crate) fn sizes(delta: &[u8]) -> Option<(usize, usize)> {
    let mut instructions = Instructions { rest: delta };
    Some((instructions.size()?, instructions.size()?))
}

/// Applies a delta whose result has at most `bytes_max` bytes.
pub(crate) fn apply(base: &[u8], delta: &[u8], bytes_max: usize) -> Result<Vec<u8>, Error> {
    let (_, size) = sizes(delta).ok_or(DAMAGED)?;
    if size > bytes_max {
        return Err(Error::TooLarge { bytes: size as u64 });
    }
    try_apply(base, delta).ok_or(DAMAGED)
}

const DAMAGED: Error = Error::Damaged("a delta is invalid");

fn try_apply(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let mut instructions = Instructions { rest: delta };
    let base_size = instructions.size()?;
    let size = instructions.size()?;
    if base_size != base.len() {
        return None;
    }
    let mut result = Vec::with_capacity(size);
    while !instructions.rest.is_empty() {
        let bytes = instructions.next(base)?;
        if bytes.len() > size - result.len() {
            return None;
        }
        result.extend_from_slice(bytes);
    }
    (result.len() == size).then_some(result)
}

struct Instructions<'a> {
    rest: &'a [u8],
}

impl<'a> Instructions<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    /// Reads a size: 7 bits per byte, the lowest first.
    fn size(&mut self) -> Option<usize> {
        let mut size = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            size |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return usize::try_from(size).ok();
            }
        }
        None
    }

    /// Returns the bytes that the next instruction adds.
    fn next(&mut self, base: &'a [u8]) -> Option<&'a [u8]> {
        let instruction = self.byte()?;
        if instruction & 0x80 == 0 {
            // Instruction 0 is reserved.
            let (bytes, rest) =
                self.rest.split_at_checked(usize::from(instruction)).filter(|_| instruction > 0)?;
            self.rest = rest;
            return Some(bytes);
        }
        let mut number = |first_bit: u8, bytes: u8| {
            let mut value = 0usize;
            for index in 0..bytes {
                if instruction & (1 << (first_bit + index)) != 0 {
                    value |= usize::from(self.byte()?) << (8 * index);
                }
            }
            Some(value)
        };
        let offset = number(0, 4)?;
        let length = match number(4, 3)? {
            0 => 0x10000,
            length => length,
        };
        base.get(offset..offset.checked_add(length)?)
    }
}

#[cfg(test)]
mod tests {
    use super::apply;

    #[test]
    fn copies_and_inserts() {
        let delta = [5, 7, 0x91, 1, 3, 4, b'-', b'-', b'-', b'!'];
        assert_eq!(apply(b"abcde", &delta, 7).unwrap(), b"bcd---!");
        assert!(apply(b"abcde", &delta, 6).is_err());
    }

    #[test]
    fn invalid_deltas_are_refused() {
        for delta in [
            &[][..],
            &[5],
            &[4, 1, 1, b'x'],
            &[5, 2, 1, b'x'],
            &[5, 1, 2, b'x', b'y'],
            &[5, 1, 0],
            &[5, 1, 3, b'x'],
            &[5, 3, 0x91, 4, 3],
            &[5, 3, 0xff, 255, 255, 255, 255, 255, 255, 255],
            &[0xff; 12],
        ] {
            assert!(apply(b"abcde", delta, 100).is_err(), "{delta:?}");
        }
    }
}
