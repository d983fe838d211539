//! Handover of a running call: another process can continue it.
//!
//! A server of a client requests it when the call becomes a task; a source whose calls run
//! elsewhere answers. Sources that run calls themselves ignore it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};

/// Connection between the server that answers a client and the source that runs its call.
#[derive(Debug)]
pub struct Handover {
    sender: mpsc::Sender<HandoverRequest>,
    /// Taken by the source.
    requests: Mutex<Option<mpsc::Receiver<HandoverRequest>>>,
    has_moved: AtomicBool,
    is_attached: watch::Sender<bool>,
}

/// Request to let other processes continue a call.
#[derive(Debug)]
pub struct HandoverRequest {
    /// Name under which they find it. The caller's session is a part of the name as well.
    pub id: String,
    /// Receives whether they can.
    pub done: oneshot::Sender<bool>,
}

impl Handover {
    /// Returns a handover for one call.
    #[must_use]
    pub fn new() -> Arc<Self> {
        let (sender, requests) = mpsc::channel(1);
        Arc::new(Self {
            sender,
            requests: Mutex::new(Some(requests)),
            has_moved: AtomicBool::new(false),
            is_attached: watch::Sender::new(false),
        })
    }

    /// Asks the source to let other processes continue the running call under `id`. Returns false
    /// if it cannot, or if the call has ended.
    pub async fn request(&self, id: String) -> bool {
        if self.requests.lock().is_some() {
            return false;
        }
        let (done, answer) = oneshot::channel();
        self.sender.send(HandoverRequest { id, done }).await.is_ok() && answer.await == Ok(true)
    }

    /// Returns the requests, for the source that runs the call. Only the first source gets them.
    #[must_use]
    pub fn requests(&self) -> Option<mpsc::Receiver<HandoverRequest>> {
        self.requests.lock().take()
    }

    /// Notes that this process has taken the call over, and has asked the questions that were open.
    pub fn set_attached(&self) {
        self.is_attached.send_replace(true);
    }

    /// Waits until this process has taken the call over.
    pub async fn attached(&self) {
        // The sender lives as long as this.
        let _ = self.is_attached.subscribe().wait_for(|is_attached| *is_attached).await;
    }

    /// Notes that another process continues the call.
    pub fn set_moved(&self) {
        self.has_moved.store(true, Ordering::Relaxed);
    }

    /// Returns whether another process continues the call. The end that this process sees is then
    /// not that of the call.
    #[must_use]
    pub fn has_moved(&self) -> bool {
        self.has_moved.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_source_that_runs_the_call_answers() {
        let handover = Handover::new();
        assert!(!handover.request("a".to_owned()).await);
        let mut requests = handover.requests().unwrap();
        assert!(handover.requests().is_none());
        let answering = async {
            for answer in [true, false] {
                let request = requests.recv().await.unwrap();
                assert_eq!(request.id, "b");
                request.done.send(answer).unwrap();
            }
            drop(requests);
        };
        let asking = async {
            assert!(handover.request("b".to_owned()).await);
            assert!(!handover.request("b".to_owned()).await);
        };
        tokio::join!(asking, answering);
        assert!(!handover.request("b".to_owned()).await);
    }
}
