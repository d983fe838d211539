//! The memory with which a component begins: the active data segments of its first core module.

use std::ops::Range;

use anyhow::{Context, bail, ensure};

/// Length of the magic number and version of a module or component.
const HEADER_BYTES: usize = 8;
/// Section of a component that contains a core module.
const CORE_MODULE: u8 = 1;
/// Section of a core module that contains data segments.
const DATA: u8 = 11;
const I32_CONST: u8 = 0x41;
const END: u8 = 0x0b;

/// A component and the addresses of the data in its first core module.
pub(crate) struct MemoryImage {
    bytes: Vec<u8>,
    /// In the order of their addresses.
    segments: Vec<Segment>,
}

struct Segment {
    address: u32,
    /// Range of bytes in the component.
    data: Range<usize>,
}

impl MemoryImage {
    /// Parses a component.
    pub(crate) fn parse(bytes: Vec<u8>) -> anyhow::Result<Self> {
        let module = section(&bytes, HEADER_BYTES..bytes.len(), CORE_MODULE)
            .context("the component has no core module")?;
        let data = section(&bytes, module.start + HEADER_BYTES..module.end, DATA)
            .context("the core module has no data")?;
        let mut segments = Vec::new();
        let mut reader = Reader { bytes: &bytes, at: data.start };
        for _ in 0..reader.number()? {
            ensure!(reader.number()? == 0, "a data segment is not active");
            ensure!(reader.byte()? == I32_CONST, "a data segment has no constant address");
            let address = reader.address()?;
            ensure!(reader.byte()? == END, "a data segment has no constant address");
            let length = reader.number()?;
            let end = reader.at + length;
            segments.push(Segment { address, data: reader.at..end });
            reader.at = end;
        }
        ensure!(reader.at <= data.end, "the data section is too short");
        segments.sort_by_key(|segment| segment.address);
        Ok(Self { bytes, segments })
    }

    /// Returns the address of the only occurrence of some bytes.
    pub(crate) fn find_only(&self, pattern: &[u8]) -> anyhow::Result<u32> {
        let mut found = self.segments.iter().flat_map(|segment| {
            let data = self.bytes.get(segment.data.clone()).unwrap_or_default();
            let windows = data.windows(pattern.len()).enumerate();
            windows.filter(|(_, bytes)| *bytes == pattern).map(|(at, _)| (segment.address, at))
        });
        let (address, at) = found.next().context("not found in the component's memory")?;
        if found.next().is_some() {
            bail!("found more than once in the component's memory");
        }
        Ok(address + u32::try_from(at)?)
    }

    /// Reads four bytes. Returns `None` if they are not in one data segment.
    pub(crate) fn word(&self, address: u32) -> Option<u32> {
        let bytes = self.bytes.get(self.range(address)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    /// Writes four bytes. Returns false if they are not in one data segment.
    pub(crate) fn set_word(&mut self, address: u32, value: u32) -> bool {
        let range = self.range(address);
        let Some(bytes) = range.and_then(|range| self.bytes.get_mut(range)) else { return false };
        bytes.copy_from_slice(&value.to_le_bytes());
        true
    }

    /// Returns the component.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the range of four bytes in the component.
    fn range(&self, address: u32) -> Option<Range<usize>> {
        let after = self.segments.partition_point(|segment| segment.address <= address);
        let segment = self.segments.get(after.checked_sub(1)?)?;
        let start = segment.data.start + usize::try_from(address - segment.address).ok()?;
        (start + 4 <= segment.data.end).then_some(start..start + 4)
    }
}

/// Returns the content of the first section of a kind.
fn section(bytes: &[u8], within: Range<usize>, kind: u8) -> anyhow::Result<Range<usize>> {
    let mut reader = Reader { bytes, at: within.start };
    while reader.at < within.end {
        let found = reader.byte()?;
        let length = reader.number()?;
        let content = reader.at..reader.at + length;
        ensure!(content.end <= within.end, "a section is too long");
        if found == kind {
            return Ok(content);
        }
        reader.at = content.end;
    }
    bail!("there is no section {kind}")
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> anyhow::Result<u8> {
        let byte = *self.bytes.get(self.at).context("the component ends early")?;
        self.at += 1;
        Ok(byte)
    }

    /// Reads an unsigned number in LEB128.
    fn number(&mut self) -> anyhow::Result<usize> {
        Ok(usize::try_from(self.leb128()?.0)?)
    }

    /// Reads the operand of `i32.const` as an address.
    fn address(&mut self) -> anyhow::Result<u32> {
        let (value, bits) = self.leb128()?;
        // The operand is signed: an address in the upper half of the memory is negative.
        let is_negative = bits < 32 && value >> (bits - 1) & 1 == 1;
        let value = if is_negative { value | u64::MAX << bits } else { value };
        Ok(u32::try_from(value & u64::from(u32::MAX))?)
    }

    /// Reads a number in LEB128, and the number of its bits.
    fn leb128(&mut self) -> anyhow::Result<(u64, u32)> {
        let (mut value, mut bits) = (0, 0);
        loop {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << bits;
            bits += 7;
            if byte & 0x80 == 0 {
                return Ok((value, bits));
            }
            ensure!(bits < 35, "a number is too long");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A component whose core module has the bytes 1 to 8 at 100, and 9 to 12 at 2^31.
    fn component() -> Vec<u8> {
        let mut data = vec![2, 0, I32_CONST, 0xe4, 0x00, END, 8, 1, 2, 3, 4, 5, 6, 7, 8];
        data.extend([0, I32_CONST, 0x80, 0x80, 0x80, 0x80, 0x78, END, 4, 9, 10, 11, 12]);
        let mut module = b"\0asm\x01\0\0\0".to_vec();
        module.extend([1, 1, 0, DATA, u8::try_from(data.len()).unwrap()]);
        module.extend(data);
        let mut component = b"\0asm\x0d\0\x01\0".to_vec();
        component.extend([0, 2, 0, 0, CORE_MODULE, u8::try_from(module.len()).unwrap()]);
        component.extend(module);
        component
    }

    #[test]
    fn words_are_read_and_written() {
        let mut image = MemoryImage::parse(component()).unwrap();
        assert_eq!(image.word(100), Some(0x0403_0201));
        assert_eq!(image.word(104), Some(0x0807_0605));
        assert_eq!(image.word(0x8000_0000), Some(0x0c0b_0a09));
        assert_eq!((image.word(99), image.word(105), image.word(0)), (None, None, None));
        assert!(image.set_word(101, 0) && !image.set_word(105, 0));
        assert_eq!(image.word(101), Some(0));
        assert_eq!(image.find_only(&[6, 7]).unwrap(), 105);
        assert!(image.find_only(&[0]).is_err() && image.find_only(&[99]).is_err());
        assert_eq!(image.into_bytes().len(), component().len());
    }

    #[test]
    fn other_files_are_errors() {
        assert!(MemoryImage::parse(b"\0asm\x0d\0\x01\0".to_vec()).is_err());
        let mut short = component();
        short.truncate(50);
        assert!(MemoryImage::parse(short).is_err());
    }
}
