//! Blocks of a compressed segment: gzip members with whole lines, which readers can skip.
//!
//! Together the members are one gzip file, so that readers that know of no blocks get all lines.
//! The index beside the segment has the position of each block, and the names and times of its
//! calls. Names are hashed: a reader may read a block in vain, and never misses one.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Seek as _, SeekFrom, Write};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use crate::item::is_event;
use crate::search::line_kind;
use crate::segments::{LINE_BYTES_MAX, SegmentFile, SegmentLines};
use crate::zone::ZoneMap;
use crate::{RecordError, UtcTime};

/// Bytes of lines in a block. Smaller ones compress worse.
const BLOCK_BYTES: usize = 256 * 1024;
/// Maximum number of different names in a block. With more, the names are not known.
const NAMES_MAX: usize = 64;
/// Maximum bytes of lines that are read of a block.
const READ_BYTES_MAX: u64 = (BLOCK_BYTES + LINE_BYTES_MAX) as u64;

/// Summary of a block.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BlockZone {
    /// Position in the compressed file.
    pub(crate) at: u64,
    /// Compressed bytes.
    pub(crate) bytes: u64,
    /// Earliest start of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<UtcTime>,
    /// Latest start of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<UtcTime>,
    /// Lowest and highest number of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    numbers: Option<(u64, u64)>,
    /// Number of events besides calls.
    #[serde(default)]
    pub(crate) events: u64,
    /// Hashes of names; too many names if there are more than [`NAMES_MAX`].
    #[serde(default)]
    names: Vec<u64>,
    /// True if a line about a call could not be read.
    #[serde(default, skip_serializing_if = "crate::entry::is_false")]
    pub(crate) is_unknown: bool,
}

/// Kind of a name that blocks are searched by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameKind {
    Tool,
    Plugin,
    Session,
}

/// Part of a line about a call that the summary needs.
#[derive(Deserialize)]
struct NamedLine<'l> {
    #[serde(borrow)]
    tool: Cow<'l, str>,
    #[serde(borrow, default)]
    plugin: Option<Cow<'l, str>>,
    #[serde(borrow, default)]
    session: Option<Cow<'l, str>>,
    at: UtcTime,
    #[serde(borrow)]
    id: Cow<'l, str>,
}

/// Reader of single blocks.
pub(crate) struct SegmentBlocks {
    name: String,
    file: File,
    blocks: Vec<BlockZone>,
    lines: Vec<u8>,
}

impl BlockZone {
    fn of(lines: &[u8], at: u64) -> Self {
        let mut zone = Self { at, ..Self::default() };
        for line in lines.split(|byte| *byte == b'\n') {
            if line_kind(line).is_some() {
                zone.add(line);
            } else if is_event(line) {
                zone.events += 1;
            }
        }
        zone
    }

    fn add(&mut self, line: &[u8]) {
        let Ok(line) = serde_json::from_slice::<NamedLine<'_>>(line) else {
            self.is_unknown = true;
            return;
        };
        let Some(number) = line.id.rsplit_once('-').and_then(|(_, number)| number.parse().ok())
        else {
            self.is_unknown = true;
            return;
        };
        self.from = Some(self.from.map_or(line.at, |from| from.min(line.at)));
        self.to = Some(self.to.map_or(line.at, |to| to.max(line.at)));
        let (low, high) = self.numbers.unwrap_or((number, number));
        self.numbers = Some((low.min(number), high.max(number)));
        let names = [
            (NameKind::Tool, Some(line.tool)),
            (NameKind::Plugin, line.plugin),
            (NameKind::Session, line.session),
        ];
        for (kind, name) in names {
            let Some(name) = name else { continue };
            let hash = name_hash(kind, &name);
            if self.names.len() <= NAMES_MAX && !self.names.contains(&hash) {
                self.names.push(hash);
            }
        }
    }

    /// Returns false if no call of the block has the name.
    pub(crate) fn may_have(&self, kind: NameKind, name: &str) -> bool {
        self.names.len() > NAMES_MAX || self.names.contains(&name_hash(kind, name))
    }

    /// Returns false if no call of the block has the number.
    pub(crate) fn may_have_number(&self, number: u64) -> bool {
        self.numbers.is_some_and(|(low, high)| (low..=high).contains(&number))
    }
}

impl SegmentBlocks {
    /// Opens a compressed segment. Returns `None` if its index has no blocks, or not those of the
    /// file.
    pub(crate) fn open(segment: &SegmentFile, zone: ZoneMap) -> Option<Self> {
        let blocks = zone.blocks;
        let mut at = 0_u64;
        for block in &blocks {
            if block.at != at {
                return None;
            }
            at = at.checked_add(block.bytes)?;
        }
        let name = segment.name();
        let file = segment.directory().open_file(&name).ok()?;
        let is_whole = !blocks.is_empty() && file.metadata().ok()?.len() == at;
        is_whole.then(|| Self { name, file, blocks, lines: Vec::new() })
    }

    /// Returns the lines of the blocks whose summary passes.
    pub(crate) fn lines(self, passes: impl Fn(&BlockZone) -> bool) -> SegmentLines {
        let blocks = self.blocks.iter().filter(|block| passes(block));
        let left = blocks.map(|block| (block.at, block.bytes)).collect();
        let reader = BlockReader { file: self.file, left, block: None };
        SegmentLines::new(self.name, Box::new(BufReader::with_capacity(BLOCK_BYTES, reader)))
    }

    /// Returns the number of blocks.
    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the lines of a block, if its summary passes.
    pub(crate) fn read_if(
        &mut self,
        index: usize,
        passes: impl FnOnce(&BlockZone) -> bool,
    ) -> Result<Option<&[u8]>, RecordError> {
        let Some(block) = self.blocks.get(index).filter(|block| passes(block)) else {
            return Ok(None);
        };
        self.lines.clear();
        let failure = |error| RecordError::file(&self.name, error);
        self.file.seek(SeekFrom::Start(block.at)).map_err(failure)?;
        let compressed = BufReader::new((&self.file).take(block.bytes));
        let mut lines = MultiGzDecoder::new(compressed).take(READ_BYTES_MAX);
        lines.read_to_end(&mut self.lines).map_err(failure)?;
        Ok(Some(&self.lines))
    }
}

/// Content of some blocks, one after the other.
struct BlockReader {
    file: File,
    /// Positions and lengths of the blocks that are left.
    left: VecDeque<(u64, u64)>,
    /// The block that is read.
    block: Option<MultiGzDecoder<BufReader<io::Take<File>>>>,
}

impl Read for BlockReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(block) = &mut self.block {
                let read = block.read(buffer)?;
                if read > 0 || buffer.is_empty() {
                    return Ok(read);
                }
                self.block = None;
            }
            let Some((at, bytes)) = self.left.pop_front() else { return Ok(0) };
            self.file.seek(SeekFrom::Start(at))?;
            // The copy has the position of the original.
            let block = BufReader::new(self.file.try_clone()?.take(bytes));
            self.block = Some(MultiGzDecoder::new(block));
        }
    }
}

/// Compresses a segment block by block, and returns the summaries of the blocks.
pub(crate) fn compress_blocks(
    source: impl Read,
    target: &mut impl Write,
) -> io::Result<Vec<BlockZone>> {
    let mut source = BufReader::with_capacity(BLOCK_BYTES, source);
    let (mut blocks, mut at) = (Vec::new(), 0);
    let mut lines = Vec::new();
    loop {
        lines.clear();
        (&mut source).take(BLOCK_BYTES as u64).read_to_end(&mut lines)?;
        if lines.is_empty() {
            return Ok(blocks);
        }
        // A line that is longer than any that is read is cut, as readers cut it.
        (&mut source).take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut lines)?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(2));
        encoder.write_all(&lines)?;
        let compressed = encoder.finish()?;
        target.write_all(&compressed)?;
        let bytes = u64::try_from(compressed.len()).unwrap_or(u64::MAX);
        blocks.push(BlockZone { bytes, ..BlockZone::of(&lines, at) });
        at += bytes;
    }
}

/// Returns the hash of a name (FNV-1a), which stays the same in all versions.
fn name_hash(kind: NameKind, name: &str) -> u64 {
    let kind = match kind {
        NameKind::Tool => b't',
        NameKind::Plugin => b'p',
        NameKind::Session => b's',
    };
    let bytes = std::iter::once(kind).chain(name.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(n: u64) -> String {
        let tool = if n == 5000 { "rare" } else { "echo" };
        format!(
            r#"{{"v":1,"kind":"call","tool":"{tool}","outcome":"ok","session":"s{}","n":{n},"at":"2026-11-20T08:{:02}:{:02}.000000Z","id":"aaaaaaaa-{n}"}}"#,
            n / 1000,
            n / 60 % 60,
            n % 60,
        )
    }

    #[test]
    fn blocks_are_one_gzip_file_and_know_their_names() {
        let text: String = (0..10_000).map(|n| line(n) + "\n").collect();
        let mut compressed = Vec::new();
        let blocks = compress_blocks(text.as_bytes(), &mut compressed).unwrap();
        assert!(blocks.len() > 4, "{}", blocks.len());
        let mut all = String::new();
        MultiGzDecoder::new(compressed.as_slice()).read_to_string(&mut all).unwrap();
        assert!(all == text);
        let with = |name| blocks.iter().filter(|b| b.may_have(NameKind::Tool, name)).count();
        assert_eq!((with("echo"), with("rare"), with("none")), (blocks.len(), 1, 0));
        let with_number = blocks.iter().filter(|block| block.may_have_number(5000)).count();
        assert_eq!(with_number, 1);
        assert!(!blocks[0].may_have(NameKind::Plugin, "echo"), "another kind of name");
        for block in &blocks {
            let (start, end) = (block.at as usize, (block.at + block.bytes) as usize);
            let mut lines = String::new();
            MultiGzDecoder::new(&compressed[start..end]).read_to_string(&mut lines).unwrap();
            assert!(lines.starts_with('{') && lines.ends_with("}\n"), "lines are not cut");
        }
    }

    #[test]
    fn what_cannot_be_read_is_never_skipped() {
        let text = "{\"v\":1,\"kind\":\"call\",\"tool\":7}\n";
        let blocks = compress_blocks(text.as_bytes(), &mut Vec::new()).unwrap();
        assert!(blocks[0].is_unknown);
        let many: String = (0..200).map(|n| line(n * 1000) + "\n").collect();
        let blocks = compress_blocks(many.as_bytes(), &mut Vec::new()).unwrap();
        assert!(blocks[0].may_have(NameKind::Session, "any"), "too many names");
        assert!(compress_blocks(&b""[..], &mut Vec::new()).unwrap().is_empty());
    }

    #[test]
    fn hashes_stay_the_same() {
        assert_eq!(name_hash(NameKind::Tool, "echo"), 0xa8ae_6248_9b45_b1ba);
    }
}
