//! Handling of Ctrl-C.

use tokio::sync::mpsc;

/// Queue of Ctrl-C presses.
pub(super) struct Interrupts(mpsc::UnboundedReceiver<()>);

impl Interrupts {
    /// Starts listening. From now on, Ctrl-C does not end the process.
    pub(super) fn listen() -> Self {
        let (send, receive) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() && send.send(()).is_ok() {}
        });
        Self(receive)
    }

    /// Waits for the next Ctrl-C.
    pub(super) async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            // Listening for the signal failed, so Ctrl-C ends the process as usual.
            std::future::pending().await
        }
    }

    /// Discards queued presses, which were meant for an earlier turn.
    pub(super) fn forget(&mut self) {
        while self.0.try_recv().is_ok() {}
    }
}
