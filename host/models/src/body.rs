//! Body of a response, with limits on its size and on the time between its pieces.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use tokio::time::Instant;

/// Reason why reading a body stopped.
#[derive(Debug)]
pub(super) enum Interruption {
    /// No bytes arrived for this long.
    Silent(Duration),
    /// The body is larger than the limit.
    TooLarge,
    /// The connection broke.
    Broken(reqwest::Error),
}

/// Body of a response.
pub(super) struct Body {
    response: Response,
    /// Deadline of the first piece, and the time that this allowed.
    first: Option<(Instant, Duration)>,
    /// First piece, if it was read ahead.
    begun: Option<Bytes>,
    bytes: usize,
}

impl Body {
    pub(super) fn new(response: Response) -> Self {
        Self { response, first: None, begun: None, bytes: 0 }
    }

    /// Sets a separate deadline for the first piece.
    pub(super) fn until_first(self, until: Instant, time: Duration) -> Self {
        Self { first: Some((until, time)), ..self }
    }

    /// Waits for the first piece and keeps it for [`next`](Self::next).
    pub(super) async fn begin(
        &mut self,
        bytes_max: usize,
        pause: Duration,
    ) -> Result<(), Interruption> {
        self.begun = self.next(bytes_max, pause).await?;
        Ok(())
    }

    /// Returns the next piece, if there is one. `bytes_max` limits the total of all pieces.
    pub(super) async fn next(
        &mut self,
        bytes_max: usize,
        pause: Duration,
    ) -> Result<Option<Bytes>, Interruption> {
        if let Some(begun) = self.begun.take() {
            return Ok(Some(begun));
        }
        let (until, time) = self.first.take().unwrap_or((Instant::now() + pause, pause));
        let piece = match tokio::time::timeout_at(until, self.response.chunk()).await {
            Ok(piece) => piece.map_err(Interruption::Broken)?,
            Err(_) => return Err(Interruption::Silent(time)),
        };
        let length = piece.as_ref().map_or(0, Bytes::len);
        self.bytes = self.bytes.saturating_add(length);
        if self.bytes > bytes_max { Err(Interruption::TooLarge) } else { Ok(piece) }
    }

    /// Reads the whole body.
    pub(super) async fn read(
        mut self,
        bytes_max: usize,
        pause: Duration,
    ) -> Result<Vec<u8>, Interruption> {
        let announced =
            self.response.content_length().and_then(|length| usize::try_from(length).ok());
        if announced.is_some_and(|length| length > bytes_max) {
            return Err(Interruption::TooLarge);
        }
        let mut read = Vec::new();
        while let Some(piece) = self.next(bytes_max, pause).await? {
            read.extend_from_slice(&piece);
        }
        Ok(read)
    }

    /// Reads the first `bytes_max` bytes, or as many as arrive.
    pub(super) async fn read_part(mut self, bytes_max: usize, pause: Duration) -> Vec<u8> {
        let mut read = Vec::new();
        while read.len() < bytes_max {
            let Ok(Some(piece)) = self.next(usize::MAX, pause).await else { break };
            read.extend(piece.iter().take(bytes_max.saturating_sub(read.len())));
        }
        read
    }
}
