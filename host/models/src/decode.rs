//! What reads a reply of one interface.

use super::fault::Broken;
use super::fields::Fields;
use super::pieces::Pieces;
use cofferdam_sse::Event;

/// The event after which OpenAI Chat sends nothing. Gateways put it behind the streams of the other
/// interfaces too, where it means nothing.
pub(super) const DONE: &str = "[DONE]";

/// Reads one reply, whole or event by event. What it reads goes into [`Pieces`], so both ways give
/// the same.
pub(super) trait Decode: Send {
    /// A whole reply. That it does not report an error was checked.
    fn whole(&mut self, body: &Fields<'_>, pieces: &mut Pieces) -> Result<(), Broken>;

    /// The next event of a stream.
    fn event(&mut self, event: &Event, pieces: &mut Pieces) -> Result<(), Broken>;

    /// Whether the reply is all there, so that the stream may end however it likes.
    fn is_complete(&self) -> bool;

    /// Whether nothing can follow that matters.
    fn is_over(&self) -> bool;
}
