//! Bytes of an answer, with limits on their number and on the time between them.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use tokio::time::Instant;

/// Why no more bytes come.
#[derive(Debug)]
pub(super) enum Interrupted {
    /// None came for this long.
    Silent(Duration),
    /// There are more than there may be.
    TooLarge,
    /// The connection broke.
    Broken(reqwest::Error),
}

/// The body of an answer.
pub(super) struct Body {
    response: Response,
    /// Until when the first piece has to be there, and how long that was.
    first: Option<(Instant, Duration)>,
    /// A piece that was read to see whether there is one.
    begun: Option<Bytes>,
    bytes: usize,
}

impl Body {
    pub(super) fn new(response: Response) -> Self {
        Self { response, first: None, begun: None, bytes: 0 }
    }

    /// With another time for the first piece than for those after it.
    pub(super) fn until_first(self, until: Instant, time: Duration) -> Self {
        Self { first: Some((until, time)), ..self }
    }

    /// Waits for the first piece, and keeps it.
    pub(super) async fn begin(
        &mut self,
        bytes_max: usize,
        pause: Duration,
    ) -> Result<(), Interrupted> {
        self.begun = self.next(bytes_max, pause).await?;
        Ok(())
    }

    /// The next piece, if there is one; `bytes_max` is for all pieces together.
    pub(super) async fn next(
        &mut self,
        bytes_max: usize,
        pause: Duration,
    ) -> Result<Option<Bytes>, Interrupted> {
        if let Some(begun) = self.begun.take() {
            return Ok(Some(begun));
        }
        let (until, time) = self.first.take().unwrap_or((Instant::now() + pause, pause));
        let piece = match tokio::time::timeout_at(until, self.response.chunk()).await {
            Ok(piece) => piece.map_err(Interrupted::Broken)?,
            Err(_) => return Err(Interrupted::Silent(time)),
        };
        let length = piece.as_ref().map_or(0, Bytes::len);
        self.bytes = self.bytes.saturating_add(length);
        if self.bytes > bytes_max { Err(Interrupted::TooLarge) } else { Ok(piece) }
    }

    /// All of it.
    pub(super) async fn read(
        mut self,
        bytes_max: usize,
        pause: Duration,
    ) -> Result<Vec<u8>, Interrupted> {
        let announced =
            self.response.content_length().and_then(|length| usize::try_from(length).ok());
        if announced.is_some_and(|length| length > bytes_max) {
            return Err(Interrupted::TooLarge);
        }
        let mut read = Vec::new();
        while let Some(piece) = self.next(bytes_max, pause).await? {
            read.extend_from_slice(&piece);
        }
        Ok(read)
    }

    /// The first `bytes_max` bytes of it, or as many as come.
    pub(super) async fn read_part(mut self, bytes_max: usize, pause: Duration) -> Vec<u8> {
        let mut read = Vec::new();
        while read.len() < bytes_max {
            let Ok(Some(piece)) = self.next(usize::MAX, pause).await else { break };
            read.extend(piece.iter().take(bytes_max.saturating_sub(read.len())));
        }
        read
    }
}
