//! Opens files.

use std::fs::File;
use std::io::Read;

use cofferdam_sdk::ToolFailure;
use lopdf::{Dictionary, Document, Error, LoadOptions, Object, ObjectId, decode_text_string};

use crate::paths;

/// Maximum length of a file. It is in memory with its objects.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Maximum number of bytes that a stream decompresses to.
pub(crate) const STREAM_BYTES_MAX: usize = 8 << 20;

/// Document with its pages in order.
pub(crate) struct Pdf {
    pub(crate) document: Document,
    pub(crate) pages: Vec<ObjectId>,
}

impl Pdf {
    /// Opens a file.
    pub(crate) fn open(path: &str) -> Result<Self, ToolFailure> {
        let (file, length) = paths::open(path)?;
        if length > FILE_BYTES_MAX {
            return Err(ToolFailure::new(format!(
                "`{path}` has {length} bytes, more than the maximum of {FILE_BYTES_MAX}"
            ))
            .suggestion("ask for a file that is split or has smaller images")
            .permanent());
        }
        let mut bytes = Vec::new();
        let read = File::take(file, FILE_BYTES_MAX).read_to_end(&mut bytes);
        read.map_err(|error| ToolFailure::new(format!("`{path}` cannot be read: {error}")))?;
        Self::parse(path, &bytes)
    }

    pub(crate) fn parse(path: &str, bytes: &[u8]) -> Result<Self, ToolFailure> {
        let options =
            LoadOptions { max_decompressed_size: Some(STREAM_BYTES_MAX), ..LoadOptions::default() };
        let document = match Document::load_mem_with_options(bytes, options) {
            Ok(document) => document,
            Err(Error::InvalidPassword | Error::Decryption(_)) => return Err(locked(path)),
            Err(error) => return Err(not_a_pdf(path, bytes, &error)),
        };
        if document.is_encrypted() {
            return Err(locked(path));
        }
        let pages = document.page_iter().collect();
        Ok(Self { document, pages })
    }

    /// Returns a page by its number from 1.
    pub(crate) fn page(&self, number: usize) -> Option<ObjectId> {
        self.pages.get(number.checked_sub(1)?).copied()
    }

    /// Follows references to an object.
    pub(crate) fn object<'a>(&'a self, object: &'a Object) -> Option<&'a Object> {
        self.document.dereference(object).ok().map(|(_, object)| object)
    }

    /// Returns the value of a key, after references.
    pub(crate) fn get<'a>(&'a self, dictionary: &'a Dictionary, key: &[u8]) -> Option<&'a Object> {
        self.object(dictionary.get(key).ok()?)
    }

    pub(crate) fn dictionary<'a>(
        &'a self,
        dictionary: &'a Dictionary,
        key: &[u8],
    ) -> Option<&'a Dictionary> {
        match self.get(dictionary, key)? {
            Object::Dictionary(found) => Some(found),
            Object::Stream(stream) => Some(&stream.dict),
            _ => None,
        }
    }

    /// Returns a string for people, without control characters.
    pub(crate) fn text(&self, dictionary: &Dictionary, key: &[u8]) -> Option<String> {
        let text = decode_text_string(self.get(dictionary, key)?).ok()?;
        let text: String = text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }
}

fn locked(path: &str) -> ToolFailure {
    ToolFailure::new(format!("`{path}` is encrypted and needs a password"))
        .suggestion("ask for a copy without a password")
        .permanent()
}

fn not_a_pdf(path: &str, bytes: &[u8], error: &Error) -> ToolFailure {
    // The header may be preceded by up to 1024 bytes.
    let has_header = bytes.windows(5).take(1024).any(|start| start == b"%PDF-");
    if has_header {
        ToolFailure::new(format!("`{path}` is damaged: {error}"))
            .suggestion("ask for the original file, or for one that a PDF tool has repaired")
            .permanent()
    } else {
        ToolFailure::new(format!("`{path}` is not a PDF file"))
            .suggestion("pass a file that begins with `%PDF-`")
            .permanent()
    }
}
