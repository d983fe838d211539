//! Requests of the host to the program, and their replies.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::message::{ClientReply, HostMessage};
use super::session::MessageSender;

/// Requests that the program has not answered.
pub(super) struct Requests {
    sender: Arc<dyn MessageSender>,
    open: Mutex<RequestTable>,
}

/// Open requests by id; `None` once the program is gone.
struct RequestTable {
    last_id: u64,
    replies: Option<HashMap<u64, oneshot::Sender<ClientReply>>>,
}

/// Request without a reply. Dropping it tells the program that nothing waits for one.
struct RequestGuard<'r> {
    requests: &'r Requests,
    id: u64,
}

impl Requests {
    pub(super) fn new(sender: Arc<dyn MessageSender>) -> Self {
        let open = RequestTable { last_id: 0, replies: Some(HashMap::new()) };
        Self { sender, open: Mutex::new(open) }
    }

    /// Sends the message that `message` returns for the id of the request, and waits for the
    /// reply. Returns `None` if the program ends before.
    pub(super) async fn send<'m>(
        &self,
        message: impl FnOnce(u64) -> HostMessage<'m>,
    ) -> Option<ClientReply> {
        let (id, reply) = self.begin()?;
        let _open = RequestGuard { requests: self, id };
        self.sender.send(&message(id)).await;
        // `settle` has removed the request, so that nothing is revoked.
        reply.await.ok()
    }

    fn begin(&self) -> Option<(u64, oneshot::Receiver<ClientReply>)> {
        let (sender, receiver) = oneshot::channel();
        let mut open = self.open.lock();
        let id = open.last_id.wrapping_add(1);
        open.replies.as_mut()?.insert(id, sender);
        open.last_id = id;
        Some((id, receiver))
    }

    /// Passes a reply on. A reply that nothing waits for is ignored: its request may have been
    /// revoked while the program answered.
    pub(super) fn settle(&self, id: u64, reply: ClientReply) {
        if let Some(sender) = self.remove(id) {
            let _ = sender.send(reply);
        }
    }

    /// Ends all requests, and any later one.
    pub(super) fn close(&self) {
        self.open.lock().replies = None;
    }

    fn remove(&self, id: u64) -> Option<oneshot::Sender<ClientReply>> {
        let mut open = self.open.lock();
        open.replies.as_mut()?.remove(&id)
    }
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        if self.requests.remove(self.id).is_none() {
            return;
        }
        let (sender, id) = (Arc::clone(&self.requests.sender), self.id);
        // A message that is only offered is lost while the program reads slowly, and the program
        // would keep the question to its user.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { sender.send(&HostMessage::Revoke { id }).await });
        }
    }
}
