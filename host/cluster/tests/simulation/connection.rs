//! Nodes that lose their connection for a while, and nodes that say what is not true.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cofferdam_cluster::Bus;
use cofferdam_tool::{CallContext, ToolSource as _, Toolset};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::cluster::{Cluster, resume, simulate, type_name};

#[test]
fn a_task_is_taken_over_while_its_worker_connects_again() {
    simulate(async |cluster: Cluster| {
        let _worker = cluster.worker(100).await;
        let (first, second) = (cluster.gateway(1).await, cluster.gateway(2).await);
        let (_lost, _) = cluster.task(&first, ("write", 6000), CallContext::new("c1")).await;
        cluster.network.kill(1);
        cluster.network.cut(100);
        let resumed = resume(&second, CallContext::new("c1"));
        sleep(Duration::from_secs(1)).await;
        cluster.network.reconnect(100);
        assert_eq!(type_name(&resumed.await.unwrap()), "ok");
        assert_eq!(cluster.runs.started(), [100]);
    });
}

#[test]
fn a_task_of_another_gateway_is_not_started_again() {
    simulate(async |cluster: Cluster| {
        let _worker = cluster.worker(100).await;
        let (first, second) = (cluster.gateway(1).await, cluster.gateway(2).await);
        let (call, handover) = cluster.task(&first, ("read", 60_000), CallContext::new("c1")).await;
        let other = cluster.worker(101).await;
        cluster.network.cut(100);
        let _resumed = resume(&second, CallContext::new("c1"));
        // The first gateway loses the worker and cannot learn from it that the task has moved.
        assert_eq!(type_name(&call.await.unwrap()), "CallMoved");
        assert!(handover.has_moved());
        sleep(Duration::from_millis(100)).await;
        assert_eq!((cluster.runs.started(), other.calls()), (vec![100], 0));
    });
}

#[test]
fn a_worker_that_is_back_cancels_the_call_that_its_gateway_has_given_up() {
    simulate(async |cluster: Cluster| {
        let worker = cluster.worker(100).await;
        let gateway = cluster.gateway(1).await;
        let call = cluster.call(&gateway, ("write", 600_000), CallContext::new("c1")).await;
        cluster.network.cut(100);
        assert_eq!(type_name(&call.await.unwrap()), "OutcomeUnknown");
        sleep(Duration::from_millis(500)).await;
        assert_eq!((worker.calls(), cluster.runs.canceled()), (1, vec![]));
        cluster.network.reconnect(100);
        sleep(Duration::from_secs(2)).await;
        assert_eq!((worker.calls(), cluster.runs.canceled()), (0, vec![100]));
    });
}

#[test]
fn a_call_without_a_connection_is_sent_once() {
    simulate(async |cluster: Cluster| {
        let _worker = cluster.worker(100).await;
        let gateway = cluster.gateway(1).await;
        let context = || CallContext::new("c1");
        let first = cluster.call(&gateway, ("write", 0), context()).await;
        assert_eq!(type_name(&first.await.unwrap()), "ok");
        let toolset = Arc::clone(&gateway.0);
        let mut remote = Toolset::new();
        for source in toolset.discover().await.unwrap() {
            remote.add(source).unwrap();
        }
        let sent = cluster.network.sent();
        cluster.network.cut(1);
        let arguments = json!({"ms": 0}).to_string();
        let context = context();
        let calling = remote.call("write", Some(arguments.as_bytes()), &context);
        let connecting = async {
            sleep(Duration::from_secs(5)).await;
            cluster.network.reconnect(1);
        };
        let (ended, ()) = tokio::join!(calling, connecting);
        assert_eq!(type_name(&ended.unwrap().outcome), "ok");
        // A call, an offer, its confirmation, the result and its acknowledgement.
        assert_eq!(cluster.network.sent() - sent, 5);

        // An outage that lasts ends the call.
        cluster.network.cut(1);
        let started = Instant::now();
        let ended = remote.call("write", Some(arguments.as_bytes()), &context).await;
        assert_eq!(type_name(&ended.unwrap().outcome), "WorkerUnavailable");
        assert!((10..11).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
    });
}

#[test]
fn a_worker_that_ends_keeps_a_result_until_its_gateway_has_it() {
    simulate(async |cluster: Cluster| {
        let worker = cluster.worker(100).await;
        let gateway = cluster.gateway(1).await;
        let call = cluster.call(&gateway, ("write", 5000), CallContext::new("c1")).await;
        let draining = tokio::spawn(worker.drain(Duration::from_secs(30)));
        sleep(Duration::from_secs(4)).await;
        cluster.network.cut(1);
        sleep(Duration::from_secs(2)).await;
        cluster.network.reconnect(1);
        assert_eq!(type_name(&call.await.unwrap()), "ok");
        let received = Instant::now();
        draining.await.unwrap();
        assert!(received.elapsed() < Duration::from_secs(1), "{:?}", received.elapsed());
    });
}

#[test]
fn a_worker_without_a_connection_ends() {
    simulate(async |cluster: Cluster| {
        let worker = cluster.worker(100).await;
        cluster.network.cut(100);
        let ending = worker.drain(Duration::from_secs(1));
        assert!(timeout(Duration::from_secs(5), ending).await.is_ok());
    });
}

#[test]
fn a_successor_whose_start_was_interrupted_offers_nothing() {
    simulate(async |cluster: Cluster| {
        let worker = cluster.worker(100).await;
        let (dispatcher, _) = cluster.gateway(1).await;
        cluster.network.cut(100);
        let starting = worker.start_successor(cluster.toolset(100));
        assert!(timeout(Duration::from_millis(100), starting).await.is_err());
        sleep(Duration::from_millis(100)).await;
        cluster.network.reconnect(100);
        let versions = dispatcher.versions().await.unwrap();
        assert_eq!(versions.iter().map(|version| version.workers).collect::<Vec<_>>(), [1]);
    });
}

#[test]
fn false_routes_do_not_keep_a_gateway_from_the_true_ones() {
    simulate(async |cluster: Cluster| {
        let _workers = (cluster.worker(100).await, cluster.worker(101).await);
        let bus = cluster.network.connect(200);
        let mut catalog = bus.subscribe("cofferdam.v1.default.catalog", None).await.unwrap();
        // It does not answer questions about them.
        let _calls = bus.subscribe("cofferdam.v1.default.call.>", None).await.unwrap();
        let answering = Arc::clone(&bus);
        bus.spawn(Box::pin(async move {
            let routes: Vec<_> = (0..10_000).map(|number| format!("{number:032x}")).collect();
            let answer = Bytes::from(format!("{{\"type\":\"routes\"}}\n{}", json!(routes)));
            while let Some(message) = catalog.next().await {
                let reply = message.reply.unwrap();
                answering.publish(&reply, None, answer.clone()).await.unwrap();
            }
        }));
        let (dispatcher, _) = cluster.gateway(1).await;
        let started = Instant::now();
        let sources = dispatcher.discover().await.unwrap();
        assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
        assert_eq!(sources.iter().map(|source| source.name()).collect::<Vec<_>>(), ["simulated"]);
    });
}
