//! Streamed replies.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_agent::{ChatError, ReplyStream, Update};
use cofferdam_sse::{Event, EventReader, TooLarge};
use futures_util::stream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::body::{Body, Interruption};
use super::decode::{DONE, Decode};
use super::endpoint::ModelEndpoint;
use super::fault::{Fault, ReplyError};
use super::fields::Fields;
use super::pieces::Pieces;

/// Maximum pause between pieces of a stream once the reply is complete: only the usage or an end
/// marker follows.
const REST_MAX: Duration = Duration::from_secs(5);

/// A reply that is being streamed.
pub(super) struct StreamedReply {
    pub(super) endpoint: Arc<ModelEndpoint>,
    pub(super) cancellation: CancellationToken,
    pub(super) deadline: Instant,
    pub(super) body: Body,
    pub(super) decoder: Box<dyn Decode>,
    pub(super) pieces: Pieces,
    pub(super) events: EventReader,
    pub(super) has_ended: bool,
}

impl StreamedReply {
    /// Returns the stream of updates. An error ends it.
    pub(super) fn into_updates(self) -> ReplyStream {
        ReplyStream::new(stream::unfold(Some(self), |streaming| async {
            let mut streaming = streaming?;
            match streaming.next().await {
                Ok(Some(update)) => Some((Ok(update), Some(streaming))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        }))
    }

    async fn next(&mut self) -> Result<Option<Update>, ChatError> {
        loop {
            if self.has_ended {
                return Ok(None);
            }
            if self.cancellation.is_cancelled() {
                return Err(ChatError::cancelled());
            }
            if let Some(event) = self.events.next_event() {
                self.take(&event).map_err(|broken| self.endpoint.fault(&broken).error)?;
            } else {
                self.read().await.map_err(|fault| fault.error)?;
            }
            if self.decoder.is_over() {
                self.has_ended = true;
            }
            if self.has_ended {
                return Ok(Some(self.pieces.end()));
            }
            if let Some(update) = self.pieces.take() {
                return Ok(Some(update));
            }
        }
    }

    fn take(&mut self, event: &Event) -> Result<(), ReplyError> {
        self.decoder.event(event, &mut self.pieces)
    }

    /// Reads more bytes, or handles the end of the body.
    async fn read(&mut self) -> Result<(), Fault> {
        let settings = self.endpoint.settings();
        let pause = settings.timeouts.bounded().pause;
        let is_complete = self.decoder.is_complete();
        let pause = if is_complete { pause.min(REST_MAX) } else { pause };
        let bytes_max = settings.limits.stream_bytes_max;
        let next = self.body.next(bytes_max, pause);
        match self.endpoint.bounded(&self.cancellation, self.deadline, next).await? {
            Ok(Some(bytes)) => {
                let too_large = |TooLarge| {
                    self.endpoint.fault(&ReplyError::TooLarge("an event of the stream is"))
                };
                self.events.push(&bytes).map_err(too_large)
            }
            Ok(None) => self.end(),
            Err(Interruption::Silent(_) | Interruption::Broken(_)) if is_complete => {
                self.has_ended = true;
                Ok(())
            }
            Err(interrupted) => Err(self.endpoint.interrupted(&interrupted, false)),
        }
    }

    /// Handles the end of the body. An unterminated last event counts if its data is complete.
    fn end(&mut self) -> Result<(), Fault> {
        let rest = self
            .events
            .take_incomplete()
            .filter(|event| event.data.trim() == DONE || Fields::read(&event.data).is_some());
        let taken = rest.map_or(Ok(()), |event| self.take(&event));
        taken.map_err(|broken| self.endpoint.fault(&broken))?;
        if !self.decoder.is_complete() {
            return Err(self.endpoint.fault(&ReplyError::CutOff));
        }
        self.has_ended = true;
        Ok(())
    }
}
