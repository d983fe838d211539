//! Tasks that wait for a worker with a permit.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cofferdam_cluster::{Worker, WorkerOptions};
use cofferdam_tool::CallContext;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::cluster::{Cluster, TASK, resume, simulate, type_name};

/// Starts a worker with one permit and a call that has it for ten minutes. Canceling the token ends
/// the call.
async fn busy_worker(cluster: &Cluster) -> (Worker, CancellationToken) {
    let worker =
        cluster.worker_with(100, WorkerOptions { calls_max: 1, ..WorkerOptions::default() }).await;
    let gateway = cluster.gateway(1).await;
    let context = CallContext::new("first");
    let ending = context.cancellation.clone();
    drop(cluster.call(&gateway, ("write", 600_000), context).await);
    assert_eq!(cluster.runs.started(), [100]);
    (worker, ending)
}

#[test]
fn a_task_waits_longer_than_other_calls() {
    simulate(async |cluster: Cluster| {
        let (_worker, _) = busy_worker(&cluster).await;
        let gateway = cluster.gateway(2).await;
        let call = cluster.call(&gateway, ("write", 10), CallContext::new("call")).await;
        let (task, _) = cluster.task(&gateway, ("write", 10), CallContext::new("task")).await;
        assert_eq!(type_name(&call.await.unwrap()), "WorkersBusy");
        assert_eq!(type_name(&task.await.unwrap()), "ok");
        assert_eq!(cluster.runs.started(), [100, 100]);
    });
}

#[test]
fn tasks_start_in_the_order_in_which_they_began_to_wait() {
    simulate(async |cluster: Cluster| {
        let (_worker, ending) = busy_worker(&cluster).await;
        let gateway = cluster.gateway(2).await;
        let ended = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        for number in 0..8 {
            let (task, handover) =
                cluster.callable_task(&gateway, ("write", 2_000), CallContext::new("task")).await;
            assert!(handover.request(format!("task-{number}")).await);
            let ended = Arc::clone(&ended);
            tasks.spawn(async move {
                assert_eq!(type_name(&task.await.unwrap()), "ok");
                ended.lock().unwrap().push(number);
            });
            // Any time of the pause in which the first ones ask again.
            sleep(Duration::from_millis(170 * number)).await;
        }
        ending.cancel();
        tasks.join_all().await;
        assert_eq!(*ended.lock().unwrap(), Vec::from_iter(0..8));
    });
}

#[test]
fn new_calls_wait_behind_tasks() {
    simulate(async |cluster: Cluster| {
        let (_worker, ending) = busy_worker(&cluster).await;
        let gateway = cluster.gateway(2).await;
        let (task, handover) =
            cluster.callable_task(&gateway, ("write", 10), CallContext::new("task")).await;
        assert!(handover.request("task".to_owned()).await);
        sleep(Duration::from_secs(5)).await;
        ending.cancel();
        let freed = Instant::now();
        let mut calls = Vec::new();
        while !task.is_finished() {
            let (call, _) =
                cluster.callable_task(&gateway, ("write", 1_000), CallContext::new("call")).await;
            calls.push(call);
        }
        assert_eq!(type_name(&task.await.unwrap()), "ok");
        assert!(freed.elapsed() < Duration::from_secs(2), "{:?}", freed.elapsed());
    });
}

#[test]
fn a_caller_at_its_limit_delays_no_other() {
    simulate(async |cluster: Cluster| {
        let options =
            WorkerOptions { calls_max: 2, caller_calls_max: 1, ..WorkerOptions::default() };
        let _worker = cluster.worker_with(100, options).await;
        let gateway = cluster.gateway(2).await;
        let task = async |caller: &str, ms: u64| {
            let session = Some(caller.to_owned());
            let context = CallContext { session, ..CallContext::new(caller) };
            let (task, handover) = cluster.callable_task(&gateway, ("write", ms), context).await;
            assert!(handover.request(format!("{caller}-{ms}")).await);
            (task, handover)
        };
        let started = Instant::now();
        let ((long, _), (waiting, _)) = (task("a", 600_000).await, task("a", 10).await);
        for (other, _) in [task("b", 20_000).await, task("c", 10).await] {
            assert_eq!(type_name(&other.await.unwrap()), "ok");
        }
        assert!(started.elapsed() < Duration::from_secs(25), "{:?}", started.elapsed());
        assert!(!long.is_finished() && !waiting.is_finished());
    });
}

#[test]
fn tasks_find_the_free_ones_of_many_workers() {
    simulate(async |cluster: Cluster| {
        let mut workers = Vec::new();
        for node in 100..120 {
            let options = WorkerOptions { calls_max: 1, ..WorkerOptions::default() };
            workers.push(cluster.worker_with(node, options).await);
        }
        let gateway = cluster.gateway(2).await;
        let mut tasks = Vec::new();
        let started = Instant::now();
        for number in 0..80 {
            let (task, handover) =
                cluster.callable_task(&gateway, ("write", 60_000), CallContext::new("task")).await;
            assert!(handover.request(format!("task-{number}")).await);
            tasks.push(task);
        }
        for task in tasks {
            assert_eq!(type_name(&task.await.unwrap()), "ok");
        }
        // Four times a minute, if no worker is ever free.
        assert!(started.elapsed() < Duration::from_secs(260), "{:?}", started.elapsed());
    });
}

#[test]
fn tasks_that_wait_fail_together_when_their_tool_is_gone() {
    simulate(async |cluster: Cluster| {
        let (_worker, _) = busy_worker(&cluster).await;
        let gateway = cluster.gateway(2).await;
        let mut tasks = Vec::new();
        for number in 0..20 {
            let (task, handover) =
                cluster.callable_task(&gateway, ("write", 10), CallContext::new("task")).await;
            assert!(handover.request(format!("task-{number}")).await);
            tasks.push(task);
        }
        cluster.network.kill(100);
        let killed = Instant::now();
        for task in tasks {
            assert_eq!(type_name(&task.await.unwrap()), "WorkerUnavailable");
        }
        assert!(killed.elapsed() < Duration::from_secs(25), "{:?}", killed.elapsed());
    });
}

#[test]
fn one_gateway_starts_a_task_that_several_have_had() {
    simulate(async |cluster: Cluster| {
        let (_worker, ending) = busy_worker(&cluster).await;
        let gateways =
            [cluster.gateway(2).await, cluster.gateway(3).await, cluster.gateway(4).await];
        let (task, handover) =
            cluster.task(&gateways[0], ("write", 10), CallContext::new("task")).await;
        let second = resume(&gateways[1], CallContext::new("task"));
        sleep(Duration::from_millis(100)).await;
        let third = resume(&gateways[2], CallContext::new("task"));
        // Those that no longer have it find out while all workers are busy.
        assert_eq!(type_name(&task.await.unwrap()), "CallMoved");
        assert!(handover.has_moved());
        assert_eq!(type_name(&second.await.unwrap()), "CallMoved");
        ending.cancel();
        assert_eq!(type_name(&third.await.unwrap()), "ok");
        assert_eq!(cluster.runs.started(), [100, 100]);
    });
}

#[test]
fn a_task_whose_entry_is_not_confirmed_is_started_once() {
    // The store answers again at once, or after another gateway has taken the task over.
    for lost in [1, u32::MAX] {
        simulate(async |cluster: Cluster| {
            let (_worker, ending) = busy_worker(&cluster).await;
            let (one, other) = (cluster.gateway(2).await, cluster.gateway(3).await);
            cluster.results.lose_answers(lost);
            let (task, handover) =
                cluster.callable_task(&one, ("write", 10), CallContext::new("task")).await;
            let sharing = tokio::spawn(async move { handover.request(TASK.to_owned()).await });
            sleep(Duration::from_secs(1)).await;
            cluster.results.lose_answers(0);
            let resumed = resume(&other, CallContext::new("task"));
            sleep(Duration::from_secs(1)).await;
            ending.cancel();
            let (first, second) = (task.await.unwrap(), resumed.await.unwrap());
            assert_eq!([type_name(&first), type_name(&second)], ["CallMoved", "ok"], "{lost}");
            assert_eq!(cluster.runs.started(), [100, 100], "{lost}");
            assert!(sharing.await.unwrap());
        });
    }
}

#[test]
fn a_task_that_waits_is_canceled_through_another_gateway() {
    simulate(async |cluster: Cluster| {
        let (_worker, ending) = busy_worker(&cluster).await;
        let (one, other) = (cluster.gateway(2).await, cluster.gateway(3).await);
        let (_task, _) = cluster.task(&one, ("write", 10), CallContext::new("task")).await;
        let context = CallContext::new("task");
        let cancellation = context.cancellation.clone();
        let resumed = resume(&other, context);
        sleep(Duration::from_millis(100)).await;
        cancellation.cancel();
        assert_eq!(type_name(&resumed.await.unwrap()), "cancelled");
        ending.cancel();
        sleep(Duration::from_secs(5)).await;
        // All gateways know its end.
        let again = resume(&one, CallContext::new("task"));
        assert_eq!(type_name(&again.await.unwrap()), "cancelled");
        assert_eq!(cluster.runs.started(), [100]);
    });
}

#[test]
fn a_task_whose_tool_is_gone_does_not_wait() {
    simulate(async |cluster: Cluster| {
        let (_worker, _) = busy_worker(&cluster).await;
        let gateway = cluster.gateway(2).await;
        let (task, _) = cluster.task(&gateway, ("write", 10), CallContext::new("task")).await;
        cluster.network.kill(100);
        let killed = Instant::now();
        assert_eq!(type_name(&task.await.unwrap()), "WorkerUnavailable");
        assert!(killed.elapsed() < Duration::from_secs(15), "{:?}", killed.elapsed());
        assert_eq!(cluster.runs.started(), [100]);
    });
}
