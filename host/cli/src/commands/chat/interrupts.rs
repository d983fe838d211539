//! Ctrl-C, as often as it is pressed.

use tokio::sync::mpsc;

/// Each Ctrl-C since the last look.
pub(super) struct Interrupts(mpsc::UnboundedReceiver<()>);

impl Interrupts {
    /// From here on Ctrl-C does not end the process.
    pub(super) fn listen() -> Self {
        let (send, receive) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() && send.send(()).is_ok() {}
        });
        Self(receive)
    }

    /// The next one.
    pub(super) async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            // The signal cannot be listened to: it ends the process as usual.
            std::future::pending().await
        }
    }

    /// Forgets those that were meant for something that is over.
    pub(super) fn forget(&mut self) {
        while self.0.try_recv().is_ok() {}
    }
}
