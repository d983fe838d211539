//! Interface to the engine that carries messages between gateways and workers.
//!
//! A bus may lose a message, deliver it late and deliver it twice. It makes one promise: it decides
//! once to which subscriptions a message goes, and if there are none, it says so to the sender.

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;

/// Connection of one node to the bus.
#[async_trait]
pub trait Bus: Send + Sync + 'static {
    /// Sends a message to all subscriptions of `subject` that are in no group, and to one of each
    /// group. If there is no subscription, `reply` gets a message that
    /// [says so](BusMessage::is_undeliverable).
    ///
    /// # Errors
    /// If the connection does not take the message. It may have been sent nevertheless.
    async fn publish(
        &self,
        subject: &str,
        reply: Option<&str>,
        payload: Bytes,
    ) -> Result<(), BusError>;

    /// Receives messages to `subject`, whose last token may be `>` for any tokens. The bus knows
    /// the subscription before anything that this node publishes later.
    ///
    /// # Errors
    /// If the subscription cannot be sent to the bus.
    async fn subscribe(
        &self,
        subject: &str,
        group: Option<&str>,
    ) -> Result<Box<dyn Subscription>, BusError>;

    /// Waits until everything that was published is on its way to the bus.
    ///
    /// # Errors
    /// If the connection is lost.
    async fn flush(&self) -> Result<(), BusError>;

    /// Returns the maximum size of a message in bytes.
    fn message_bytes_max(&self) -> usize;

    /// Returns the current state of the connection.
    fn state(&self) -> BusState;

    /// Runs a task of this node. A simulated bus pauses and ends the tasks of a node with it.
    fn spawn(&self, task: BoxFuture<'static, ()>);
}

/// State of a connection to the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BusState {
    /// The bus takes and delivers messages.
    Connected,
    /// The connection is lost, and is being restored.
    Disconnected,
    /// The bus is connected and has refused a subscription, whose messages never arrive.
    SubscriptionRefused,
}

/// Messages to one subject. Dropping it unsubscribes.
#[async_trait]
pub trait Subscription: Send {
    /// Waits for the next message. Returns `None` after [`close`](Self::close), or if the bus has
    /// ended. No message is lost if the future is dropped.
    async fn next(&mut self) -> Option<BusMessage>;

    /// Unsubscribes. [`next`](Self::next) still returns the messages that were already delivered.
    async fn close(&mut self);
}

/// A received message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusMessage {
    /// Subject that the message was sent to.
    pub subject: String,
    /// Subject for replies.
    pub reply: Option<String>,
    /// Content of the message.
    pub payload: Bytes,
    /// True if this is not a message but the answer to one that had no subscription.
    pub is_undeliverable: bool,
}

/// Error of a bus.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BusError {
    /// The connection is lost or closed.
    #[error("the message bus is not connected: {0}")]
    Disconnected(String),
    /// The message is larger than the bus allows.
    #[error("the message has {bytes} bytes, and the message bus allows {bytes_max}")]
    TooLarge {
        /// Size of the message in bytes.
        bytes: usize,
        /// Maximum size in bytes.
        bytes_max: usize,
    },
}
