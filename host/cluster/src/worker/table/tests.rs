use std::sync::Arc;

use cofferdam_tool::{CallContext, ToolName};
use tokio::sync::Semaphore;

use super::super::callers::Callers;
use super::*;

fn offer(calls_free: &Arc<Semaphore>) -> OpenOffer {
    OpenOffer {
        call: CallHeader::new(ToolName::new("t").unwrap(), &CallContext::default()),
        arguments: Bytes::new(),
        permits: (
            Arc::clone(calls_free).try_acquire_owned().unwrap(),
            Callers::new(1).take("").unwrap(),
        ),
        is_sent: true,
    }
}

const INBOX: &str = "cofferdam.v1.default.in.g1.7.2";
/// Inbox of the same call for another message.
const SAME: &str = "cofferdam.v1.default.in.g1.7.3";
const OTHER: &str = "cofferdam.v1.default.in.g2.7.2";

/// Opens an offer of a table that is not closed.
fn open(table: &CallTable, calls_free: &Arc<Semaphore>) -> u64 {
    table.open(offer(calls_free)).unwrap()
}

fn table() -> CallTable {
    let worker = NodeName::new("w").unwrap();
    CallTable::new(&worker, Duration::from_secs(60), Duration::from_secs(600))
}

fn result() -> Bytes {
    Bytes::from_static(b"result")
}

#[tokio::test(start_paused = true)]
async fn an_offer_starts_once() {
    let calls_free = Arc::new(Semaphore::new(1));
    let table = table();
    let number = open(&table, &calls_free);
    let started = table.start(number, INBOX).map_err(drop).unwrap();
    assert_eq!(table.start(number, INBOX).err(), Some(OfferStatus::Running));
    drop(started);
    assert!(table.end(number, &result()));
    assert_eq!(table.start(number, INBOX).err(), Some(OfferStatus::Ended(result())));
    table.forget(number);
    assert_eq!(table.start(number, INBOX).err(), Some(OfferStatus::Unknown));
    assert_eq!((table.active(), calls_free.available_permits()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_question_withdraws_an_open_offer() {
    let calls_free = Arc::new(Semaphore::new(1));
    let table = table();
    let number = open(&table, &calls_free);
    assert_eq!(table.ask(number, INBOX), OfferStatus::NotStarted);
    assert_eq!(table.start(number, INBOX).err(), Some(OfferStatus::NotStarted));
    assert_eq!(calls_free.available_permits(), 1);
    assert_eq!(table.ask(number + 1, INBOX), OfferStatus::Unknown);
}

#[tokio::test(start_paused = true)]
async fn an_offer_that_is_not_confirmed_expires() {
    let calls_free = Arc::new(Semaphore::new(2));
    let table = table();
    let life = Duration::from_secs(1);
    let old = open(&table, &calls_free);
    tokio::time::advance(Duration::from_millis(999)).await;
    let new = open(&table, &calls_free);
    table.withdraw_old(life);
    assert_eq!(table.active(), 2);
    tokio::time::advance(Duration::from_millis(1)).await;
    table.withdraw_old(life);
    assert_eq!(table.start(old, INBOX).err(), Some(OfferStatus::NotStarted));
    assert!(table.start(new, INBOX).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_canceled_call_leaves_no_result() {
    let calls_free = Arc::new(Semaphore::new(2));
    let table = table();
    let (open, running) = (open(&table, &calls_free), open(&table, &calls_free));
    let (_, call) = table.start(running, INBOX).map_err(drop).unwrap();
    table.cancel(open);
    table.cancel(running);
    assert!(call.cancellation.is_cancelled());
    assert!(!table.end(running, &result()));
    assert_eq!(table.ask(open, INBOX), OfferStatus::NotStarted);
    assert_eq!(table.ask(running, INBOX), OfferStatus::Unknown);
}

#[tokio::test(start_paused = true)]
async fn results_are_forgotten_after_a_while_and_when_there_are_too_many() {
    let calls_free = Arc::new(Semaphore::new(1));
    let table = table();
    let ended = |result: &Bytes| {
        let number = open(&table, &calls_free);
        table.start(number, INBOX).map_err(drop).unwrap();
        table.end(number, result);
        number
    };
    let first = ended(&result());
    tokio::time::advance(Duration::from_secs(59)).await;
    assert_eq!(table.ask(first, INBOX), OfferStatus::Ended(result()));
    tokio::time::advance(Duration::from_secs(2)).await;
    let large = Bytes::from(vec![0; 40 * 1024 * 1024]);
    let second = ended(&large);
    assert_eq!(table.ask(first, INBOX), OfferStatus::Unknown);
    let third = ended(&large);
    assert_eq!(table.ask(second, INBOX), OfferStatus::Unknown);
    assert_eq!(table.ask(third, INBOX), OfferStatus::Ended(large));
    for _ in 0..ENDED_MAX {
        ended(&result());
    }
    assert_eq!(table.ask(third, INBOX), OfferStatus::Unknown);
    assert!(table.state.lock().offers.len() <= ENDED_MAX);
}

#[tokio::test(start_paused = true)]
async fn results_that_were_received_take_no_room() {
    let calls_free = Arc::new(Semaphore::new(1));
    let table = table();
    let ended = || {
        let number = open(&table, &calls_free);
        table.start(number, INBOX).map_err(drop).unwrap();
        table.end(number, &result());
        number
    };
    let lost = ended();
    for _ in 0..2 * ENDED_MAX {
        table.forget(ended());
    }
    assert_eq!(table.ask(lost, INBOX), OfferStatus::Ended(result()));
    let state = table.state.lock();
    assert_eq!((state.offers.len(), state.ended.len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_call_belongs_to_the_gateway_with_the_highest_revision() {
    let calls_free = Arc::new(Semaphore::new(4));
    let table = table();
    let number = open(&table, &calls_free);
    let (_open, call) = table.start(number, INBOX).map_err(drop).unwrap();
    let attach = |number, revision, inbox| {
        let Attachment { status, previous, .. } = table.attach(number, revision, inbox);
        (status, previous)
    };
    assert!(!call.is_shared());
    assert_eq!(table.ask(number, OTHER), OfferStatus::Moved);
    assert_eq!(attach(number, 3, SAME), (OfferStatus::Running, None));
    assert!(call.is_shared() && call.inbox() == SAME);
    let previous = Some(SAME.to_owned());
    assert_eq!(attach(number, 5, OTHER), (OfferStatus::Running, previous));
    assert_eq!(attach(number, 4, INBOX), (OfferStatus::Moved, None));
    assert_eq!(table.ask(number, INBOX), OfferStatus::Moved);
    assert_eq!((table.ask(number, OTHER), call.inbox().as_str()), (OfferStatus::Running, OTHER));
    assert_eq!(attach(number + 1, 1, OTHER), (OfferStatus::Unknown, None));
    let early = open(&table, &calls_free);
    assert_eq!(attach(early, 1, OTHER), (OfferStatus::NotStarted, None));
    assert_eq!(table.start(early, INBOX).err(), Some(OfferStatus::NotStarted));
    // Its result is remembered for longer than others.
    assert!(table.end(number, &result()));
    tokio::time::advance(Duration::from_secs(599)).await;
    assert_eq!(attach(number, 6, INBOX).0, OfferStatus::Ended(result()));
    tokio::time::advance(Duration::from_secs(2)).await;
    open(&table, &calls_free);
    assert_eq!(table.ask(number, INBOX), OfferStatus::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_closed_table_takes_no_offers() {
    let calls_free = Arc::new(Semaphore::new(2));
    let table = table();
    let number = open(&table, &calls_free);
    table.close();
    assert_eq!(table.open(offer(&calls_free)), None);
    assert_eq!((table.active(), calls_free.available_permits()), (1, 1));
    assert!(table.start(number, INBOX).is_ok());
}

#[tokio::test(start_paused = true)]
async fn only_its_gateway_abandons_a_call() {
    let calls_free = Arc::new(Semaphore::new(2));
    let table = table();
    let number = open(&table, &calls_free);
    let (_open, call) = table.start(number, INBOX).map_err(drop).unwrap();
    table.abandoned(number, OTHER);
    assert!(!call.cancellation.is_cancelled() && !call.unheard.load(Ordering::Relaxed));
    table.abandoned(number, SAME);
    assert!(call.cancellation.is_cancelled());
    assert!(!table.end(number, &result()));

    // Other gateways can still take this one over.
    let number = open(&table, &calls_free);
    let (_open, call) = table.start(number, INBOX).map_err(drop).unwrap();
    table.attach(number, 1, SAME);
    table.abandoned(number, SAME);
    assert!(!call.cancellation.is_cancelled() && call.unheard.load(Ordering::Relaxed));
    assert!(table.end(number, &result()));
}
