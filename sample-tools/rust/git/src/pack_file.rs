//! Reads files in windows, so that neighboring objects of a pack take one read.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;

use crate::error::Error;

/// Number of bytes of a window.
const WINDOW_BYTES: u64 = 32 << 10;

/// Maximum number of windows in memory.
const WINDOWS_MAX: usize = 128;

/// A file that is read at any offset.
pub(crate) struct PackFile {
    file: File,
    pub(crate) length: u64,
    windows: RefCell<HashMap<u64, Rc<[u8]>>>,
}

impl PackFile {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { file, length, windows: RefCell::default() })
    }

    /// Reads exactly `length` bytes at `offset`.
    pub(crate) fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, Error> {
        let end = offset.checked_add(length as u64);
        if end.is_none_or(|end| end > self.length) {
            return Err(Error::Damaged("a pack is shorter than its index says"));
        }
        let mut bytes = vec![0; length];
        (&self.file).seek(SeekFrom::Start(offset))?;
        (&self.file).read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn window(&self, number: u64) -> Result<Rc<[u8]>, Error> {
        if let Some(window) = self.windows.borrow().get(&number) {
            return Ok(Rc::clone(window));
        }
        let start = number.saturating_mul(WINDOW_BYTES);
        let length = WINDOW_BYTES.min(self.length.saturating_sub(start));
        let window: Rc<[u8]> = self.read(start, usize::try_from(length).unwrap_or(0))?.into();
        let mut windows = self.windows.borrow_mut();
        if windows.len() >= WINDOWS_MAX {
            windows.clear();
        }
        windows.insert(number, Rc::clone(&window));
        Ok(window)
    }

    /// Returns a reader of the bytes from `offset` on.
    pub(crate) fn reader(&self, offset: u64) -> PackReader<'_> {
        PackReader { file: self, offset, window: None }
    }
}

/// Reads a file from an offset on.
pub(crate) struct PackReader<'f> {
    file: &'f PackFile,
    pub(crate) offset: u64,
    window: Option<(u64, Rc<[u8]>)>,
}

impl PackReader<'_> {
    /// Returns the next bytes, or none at the end of the file.
    pub(crate) fn chunk(&mut self) -> Result<&[u8], Error> {
        let number = self.offset / WINDOW_BYTES;
        if self.window.as_ref().is_none_or(|(it, _)| *it != number) {
            let window =
                if self.offset < self.file.length { self.file.window(number)? } else { [].into() };
            self.window = Some((number, window));
        }
        let start = usize::try_from(self.offset % WINDOW_BYTES).unwrap_or(0);
        Ok(self.window.as_ref().and_then(|(_, window)| window.get(start..)).unwrap_or_default())
    }

    /// Skips bytes of the last chunk.
    pub(crate) fn consume(&mut self, bytes: u64) {
        self.offset = self.offset.saturating_add(bytes);
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Error> {
        let byte = self.chunk()?.first().copied();
        self.consume(1);
        byte.ok_or(Error::Damaged("a pack ends in the middle of an object"))
    }
}
