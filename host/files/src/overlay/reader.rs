//! Reads a file of an overlay in parts, by its path.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::OnceCell;

use super::{Overlay, OverlayFile, Readable};
use crate::{FileError, FileReader, StorePath};

/// Reader of a file, which is looked up at the first read.
pub(super) struct OverlayReader {
    overlay: Overlay,
    path: StorePath,
    source: OnceCell<ReaderSource>,
}

enum ReaderSource {
    Open(OverlayFile),
    Base { natural: StorePath, reader: Option<Arc<dyn FileReader>> },
}

impl OverlayReader {
    pub(super) fn new(overlay: Overlay, path: StorePath) -> Self {
        Self { overlay, path, source: OnceCell::new() }
    }

    async fn look_up(&self) -> Result<ReaderSource, FileError> {
        Ok(match self.overlay.readable(&self.path).await? {
            Readable::Node(node) => {
                ReaderSource::Open(OverlayFile::new(self.overlay.clone(), node))
            }
            Readable::Base(natural) => {
                let reader = self.overlay.base.reader(&natural);
                ReaderSource::Base { natural, reader }
            }
        })
    }
}

#[async_trait]
impl FileReader for OverlayReader {
    async fn read_at(&self, offset: u64, length: u64) -> Result<Vec<u8>, FileError> {
        match self.source.get_or_try_init(|| self.look_up()).await? {
            ReaderSource::Open(file) => file.read_at(offset, length).await,
            ReaderSource::Base { reader: Some(reader), .. } => reader.read_at(offset, length).await,
            ReaderSource::Base { natural, reader: None } => {
                self.overlay.base.read_range(natural, offset, length).await
            }
        }
    }
}
