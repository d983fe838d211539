//! Notifications to clients about changed lists, for both generations of the protocol.

use std::sync::{Arc, Weak};

use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, ServiceError, SubscriptionContext};
use tokio_util::sync::CancellationToken;

use super::ServerShared;
use super::changes::{Changes, ListChanges};
use super::handler::ConnectionSettings;

/// Notifies a client of a session-based revision until it disconnects.
pub(super) fn notify_connection(
    changes: Changes,
    connection: &Arc<ConnectionSettings>,
    peer: Peer<RoleServer>,
) {
    let ended = CancellationToken::new();
    // The client may repeat the message that it is ready.
    if connection.notifying.set(ended.clone().drop_guard()).is_ok() {
        let telling = tell_connection(changes, Arc::downgrade(connection), peer);
        tokio::spawn(ended.run_until_cancelled_owned(telling));
    }
}

async fn tell_connection(
    mut changes: Changes,
    connection: Weak<ConnectionSettings>,
    peer: Peer<RoleServer>,
) {
    while let Some(change) = changes.next().await {
        let Some(connection) = connection.upgrade() else { break };
        if tell(&peer, change, &connection).await.is_err() {
            break;
        }
    }
}

async fn tell(
    peer: &Peer<RoleServer>,
    change: ListChanges,
    connection: &ConnectionSettings,
) -> Result<(), ServiceError> {
    if change.tools {
        peer.notify_tool_list_changed().await?;
    }
    if change.prompts {
        peer.notify_prompt_list_changed().await?;
    }
    if change.resources {
        peer.notify_resource_list_changed().await?;
        let subscribed = connection.subscriptions.lock().clone();
        for uri in subscribed {
            peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await?;
        }
    }
    Ok(())
}

/// Notifies a client of the stateless revision on the stream of its subscription, until it closes
/// the stream, its input ends (`last`), or the server stops.
pub(super) async fn tell_subscription(
    shared: &ServerShared,
    context: &SubscriptionContext,
    last: &CancellationToken,
) {
    let mut changes = shared.changes();
    let accepted = context.accepted().clone();
    let sink = context.sink();
    loop {
        let change = tokio::select! {
            () = context.cancelled() => return,
            () = shared.stopped.cancelled() => return,
            () = last.cancelled() => return,
            change = changes.next() => match change {
                Some(change) => change,
                None => return,
            },
        };
        // A closed stream is detected by its cancellation.
        if change.tools && accepted.tools_list_changed == Some(true) {
            let _ = sink.notify_tool_list_changed().await;
        }
        if change.prompts && accepted.prompts_list_changed == Some(true) {
            let _ = sink.notify_prompt_list_changed().await;
        }
        if change.resources {
            if accepted.resources_list_changed == Some(true) {
                let _ = sink.notify_resource_list_changed().await;
            }
            for uri in accepted.resource_subscriptions.iter().flatten() {
                let _ = sink.notify_resource_updated(uri.clone()).await;
            }
        }
    }
}
