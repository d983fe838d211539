//! Messages that no gateway and no worker sends.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cofferdam_cluster::bus::BusMessage;
use serde_json::json;

use super::calls::{call, worker};
use super::server::Server;
use super::tools::Starts;

#[tokio::test]
async fn replayed_and_malformed_messages_start_nothing() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("starts");
    let worker = worker(&server, &path, 64).await;
    let gateway = server.gateway().await;

    // Records everything that gateways and workers say.
    let bus = server.bus().await;
    let mut all = bus.subscribe("cofferdam.>", None).await.unwrap();
    let recorded: Arc<Mutex<Vec<BusMessage>>> = Arc::default();
    let recorder = Arc::clone(&recorded);
    let recording = tokio::spawn(async move {
        while let Some(message) = all.next().await {
            recorder.lock().unwrap().push(message);
        }
    });
    for number in 0..8 {
        let ended = call(&gateway.toolset, "write", json!({}), &format!("w{number}")).await;
        assert_eq!(ended.word(), "ok");
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    recording.abort();
    let messages = std::mem::take(&mut *recorded.lock().unwrap());
    assert!(messages.len() > 8 * 4, "{} messages", messages.len());

    // All of it again, in the same and in reverse order, to the same subjects.
    let backwards: Vec<_> = messages.iter().rev().cloned().collect();
    for message in messages.iter().chain(&backwards) {
        let (subject, reply) = (&message.subject, message.reply.as_deref());
        bus.publish(subject, reply, message.payload.clone()).await.unwrap();
    }
    // The same with parts missing and changed, and with replies to other subjects.
    for (number, message) in messages.iter().enumerate() {
        let payload = &message.payload;
        let cut = payload.slice(..payload.len() / 2);
        bus.publish(&message.subject, message.reply.as_deref(), cut).await.unwrap();
        let mut changed = payload.to_vec();
        if let Some(byte) = changed.get_mut(number * 7 % payload.len().max(1)) {
            *byte ^= 0x15;
        }
        bus.publish(&message.subject, Some("$SYS.REQ"), changed.into()).await.unwrap();
        bus.publish(&message.subject, None, Bytes::from_static(b"{}\n")).await.unwrap();
    }
    bus.flush().await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    for number in 0..8 {
        assert_eq!(Starts::at(&path).of(&format!("w{number}")), 1);
    }
    // The replayed requests occupy permits only until their offers expire.
    tokio::time::sleep(Duration::from_millis(1300)).await;
    assert_eq!(worker.calls(), 0);
    let ended = call(&gateway.toolset, "write", json!({}), "after").await;
    assert_eq!(ended.word(), "ok");
}
