use cofferdam_tool::{CallContext, Outcome, Output};
use serde_json::json;

use super::record::LEDGER_BYTES_MAX;
use super::*;

fn key(code: &str) -> LedgerKey {
    LedgerKey {
        owner: Owner::default(),
        code: code.to_owned(),
        interpreter: String::new(),
        tools: "{}".into(),
    }
}

/// Returns a ledger with a call whose result has a number of bytes.
fn ledger(bytes: usize) -> Ledger {
    let outcome = Outcome::Ok(Output::Value("x".repeat(bytes).into()));
    let completion = Completion::ended(outcome, &CallContext::default());
    let tool = ToolName::new("a").unwrap();
    let call = CompletedCall { tool, arguments: Map::new(), completion };
    let calls = HashMap::from([(1, call)]);
    Ledger { calls, ..Ledger::new((1, 2), SessionValues::default(), None) }
}

/// Keeps the ledger of a run, which ends at once.
fn keep(
    programs: &Arc<SuspendedPrograms>,
    code: &str,
    ledger: Ledger,
) -> Result<(), UnkeepableLedger> {
    programs.keep(key(code), Arc::downgrade(&Arc::new(())), ledger)
}

#[test]
fn a_ledger_is_for_others_once_its_run_has_ended() {
    let (programs, run) = (Arc::new(SuspendedPrograms::default()), Arc::new(()));
    programs.keep(key("p"), Arc::downgrade(&run), ledger(1)).unwrap();
    assert!(programs.take(&key("p")).is_none());
    let weak = Arc::downgrade(&run);
    drop(run);
    assert!(programs.take(&key("other")).is_none());
    assert!(programs.take(&key("p")).is_some());
    assert!(programs.take(&key("p")).is_none());
    programs.keep(key("p"), weak.clone(), ledger(1)).unwrap();
    programs.forget(&weak);
    assert!(programs.take(&key("p")).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_ledger_is_awaited_while_its_run_is_about_to_end() {
    let (programs, run) = (Arc::new(SuspendedPrograms::default()), Arc::new(()));
    assert!(programs.take_ended(&key("p")).await.is_none());
    programs.keep(key("p"), Arc::downgrade(&run), ledger(1)).unwrap();
    assert!(programs.take_ended(&key("p")).await.is_none(), "the run goes on");
    let taken = tokio::spawn(async move { programs.take_ended(&key("p")).await });
    tokio::time::sleep(END_WAIT_MAX / 2).await;
    drop(run);
    assert!(taken.await.unwrap().is_some());
}

#[test]
fn the_bytes_of_a_program_and_of_all_are_limited() {
    let programs = Arc::new(SuspendedPrograms::default());
    let large = keep(&programs, "large", ledger(LEDGER_BYTES_MAX));
    assert_eq!(large, Err(UnkeepableLedger::TooLarge));
    let mut values = SessionValues::default();
    values.keep(json!("x".repeat(LEDGER_BYTES_MAX)));
    let large = keep(&programs, "values", Ledger { values, ..ledger(1) });
    assert_eq!(large, Err(UnkeepableLedger::TooLarge));
    let half = LEDGER_BYTES_MAX / 2;
    // 62 MiB, of which 20 MiB are files.
    let with_files = ledger(half);
    let _files = with_files.budget.take(20 << 20).unwrap();
    keep(&programs, "files", with_files).unwrap();
    for index in 0..20 {
        keep(&programs, &index.to_string(), ledger(half)).unwrap();
    }
    assert_eq!(keep(&programs, "full", ledger(half)), Err(UnkeepableLedger::NoSpace));
    assert!(programs.take(&key("0")).is_some());
    keep(&programs, "full", ledger(half)).unwrap();
}

#[test]
fn the_oldest_program_that_has_ended_is_forgotten_first() {
    let (programs, run) = (Arc::new(SuspendedPrograms::default()), Arc::new(()));
    programs.keep(key("goes on"), Arc::downgrade(&run), ledger(1)).unwrap();
    for index in 0..SUSPENDED_MAX {
        keep(&programs, &index.to_string(), ledger(1)).unwrap();
    }
    drop(run);
    assert!(programs.take(&key("0")).is_none());
    assert!(programs.take(&key("1")).is_some() && programs.take(&key("goes on")).is_some());
}

#[tokio::test(start_paused = true)]
async fn an_expired_ledger_is_dropped_without_another_call() {
    let programs = Arc::new(SuspendedPrograms::default());
    keep(&programs, "p", ledger(1)).unwrap();
    tokio::time::sleep(LIFETIME / 2).await;
    assert_eq!(programs.programs.lock().len(), 1);
    tokio::time::sleep(LIFETIME).await;
    assert_eq!(programs.programs.lock().len(), 0);
}
