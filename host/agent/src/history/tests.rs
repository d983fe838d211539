//! Tests of history files, valid and invalid.

mod files;
mod odd_files;
mod processes;
mod providers;

use std::path::Path;
use std::sync::Arc;

use super::{FileHistory, FileHistoryOptions};
use crate::Message;

fn open(directory: &Path) -> FileHistory {
    open_with(directory, FileHistoryOptions::default())
}

fn open_with(directory: &Path, options: FileHistoryOptions) -> FileHistory {
    FileHistory::open_ambient(directory, options).unwrap()
}

fn texts(texts: &[&str]) -> Vec<Arc<Message>> {
    texts.iter().map(|text| Arc::new(Message::user(*text))).collect()
}

/// Returns the messages of a session as strings, or the error about its file.
async fn shown(files: &FileHistory, session: &str) -> Result<Vec<String>, String> {
    let messages = files.read(session).await.map_err(|error| error.to_string())?;
    Ok(messages.iter().map(Message::text).collect())
}
