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
    }
}

fn result() -> Bytes {
    Bytes::from_static(b"result")
}

#[tokio::test(start_paused = true)]
async fn an_offer_starts_once() {
    let calls_free = Arc::new(Semaphore::new(1));
    let table = CallTable::new(Duration::from_secs(60));
    let number = table.open(offer(&calls_free));
    let started = table.start(number).map_err(drop).unwrap();
    assert_eq!(table.start(number).err(), Some(OfferStatus::Running));
    drop(started);
    assert!(table.end(number, &result()));
    assert_eq!(table.start(number).err(), Some(OfferStatus::Ended(result())));
    table.forget(number);
    assert_eq!(table.start(number).err(), Some(OfferStatus::Unknown));
    assert_eq!((table.active(), calls_free.available_permits()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_question_withdraws_an_open_offer() {
    let calls_free = Arc::new(Semaphore::new(1));
    let table = CallTable::new(Duration::from_secs(60));
    let number = table.open(offer(&calls_free));
    assert_eq!(table.ask(number), OfferStatus::NotStarted);
    assert_eq!(table.start(number).err(), Some(OfferStatus::NotStarted));
    assert_eq!(calls_free.available_permits(), 1);
    assert_eq!(table.ask(number + 1), OfferStatus::Unknown);
}

#[tokio::test(start_paused = true)]
async fn an_offer_that_is_not_confirmed_expires() {
    let calls_free = Arc::new(Semaphore::new(2));
    let table = CallTable::new(Duration::from_secs(60));
    let life = Duration::from_secs(1);
    let old = table.open(offer(&calls_free));
    tokio::time::advance(Duration::from_millis(999)).await;
    let new = table.open(offer(&calls_free));
    table.withdraw_old(life);
    assert_eq!(table.active(), 2);
    tokio::time::advance(Duration::from_millis(1)).await;
    table.withdraw_old(life);
    assert_eq!(table.start(old).err(), Some(OfferStatus::NotStarted));
    assert!(table.start(new).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_canceled_call_leaves_no_result() {
    let calls_free = Arc::new(Semaphore::new(2));
    let table = CallTable::new(Duration::from_secs(60));
    let (open, running) = (table.open(offer(&calls_free)), table.open(offer(&calls_free)));
    let cancellation = table.start(running).map_err(drop).unwrap().cancellation;
    table.cancel(open);
    table.cancel(running);
    assert!(cancellation.is_cancelled());
    assert!(!table.end(running, &result()));
    assert_eq!(table.ask(open), OfferStatus::NotStarted);
    assert_eq!(table.ask(running), OfferStatus::Unknown);
}

#[tokio::test(start_paused = true)]
async fn results_are_forgotten_after_a_while_and_when_there_are_too_many() {
    let calls_free = Arc::new(Semaphore::new(1));
    let table = CallTable::new(Duration::from_secs(60));
    let ended = |result: &Bytes| {
        let number = table.open(offer(&calls_free));
        table.start(number).map_err(drop).unwrap();
        table.end(number, result);
        number
    };
    let first = ended(&result());
    tokio::time::advance(Duration::from_secs(59)).await;
    assert_eq!(table.ask(first), OfferStatus::Ended(result()));
    tokio::time::advance(Duration::from_secs(2)).await;
    let large = Bytes::from(vec![0; 40 * 1024 * 1024]);
    let second = ended(&large);
    assert_eq!(table.ask(first), OfferStatus::Unknown);
    let third = ended(&large);
    assert_eq!(table.ask(second), OfferStatus::Unknown);
    assert_eq!(table.ask(third), OfferStatus::Ended(large));
    for _ in 0..ENDED_MAX {
        ended(&result());
    }
    assert_eq!(table.ask(third), OfferStatus::Unknown);
    assert!(table.lock().offers.len() <= ENDED_MAX);
}
