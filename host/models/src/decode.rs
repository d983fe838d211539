//! Interface of the decoders of replies.

use super::fault::ReplyError;
use super::fields::Fields;
use super::pieces::Pieces;
use cofferdam_sse::Event;

/// Data of the event that ends a stream of Chat Completions. Gateways append it to streams of the
/// other APIs too, where it means nothing.
pub(super) const DONE: &str = "[DONE]";

/// Decodes one reply, whole or event by event. Both ways fill [`Pieces`], so they give the same
/// result.
pub(super) trait Decode: Send {
    /// Decodes a whole reply, which the caller has checked not to be an error.
    fn whole(&mut self, body: &Fields<'_>, pieces: &mut Pieces) -> Result<(), ReplyError>;

    /// Decodes the next event of a stream.
    fn event(&mut self, event: &Event, pieces: &mut Pieces) -> Result<(), ReplyError>;

    /// Returns whether the reply is complete, so that the stream may end in any way.
    fn is_complete(&self) -> bool;

    /// Returns whether nothing relevant can follow.
    fn is_over(&self) -> bool;
}
