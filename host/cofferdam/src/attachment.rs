//! Files that a user adds to a prompt.

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cofferdam_agent::{Data, MessageContent};
use serde_json::Map;

use crate::media_type::media_type;
use crate::{Error, Result};

/// Maximum bytes of a file. Providers accept requests of about 32 MB, and base64 adds a third.
const FILE_BYTES_MAX: u64 = 20 * 1024 * 1024;

/// Reads a file as a part of a message: an image, a PDF or audio by its extension, anything else as
/// text, with its name in front.
///
/// # Errors
/// Returns an error if the file cannot be read, exceeds 20 MiB, or is neither one of these nor
/// UTF-8.
pub fn attachment(path: &Path) -> Result<MessageContent> {
    let unreadable = |error| Error::invalid(format!("{}: {error}", path.display()));
    let bytes = cofferdam_files::read_named_ambient(path, FILE_BYTES_MAX).map_err(unreadable)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let shown = |media_type: &&str| {
        media_type.starts_with("audio/")
            || matches!(
                *media_type,
                "image/png" | "image/jpeg" | "image/gif" | "image/webp" | "application/pdf"
            )
    };
    if let Some(media_type) = media_type(&name).filter(shown) {
        let (media_type, data) = (media_type.to_owned(), BASE64_STANDARD.encode(bytes));
        return Ok(MessageContent::Data(Data { media_type, data, extra: Map::new() }));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(MessageContent::text(format!("File `{name}`:\n{text}"))),
        Err(_) => Err(Error::invalid(format!(
            "{} cannot be attached: expected an image (png, jpeg, gif, webp), a PDF, audio (wav, \
             mp3) or a text in UTF-8",
            path.display()
        ))),
    }
}
