//! Programs that a caller keeps until a user decides about one of their calls.

use std::collections::HashSet;

use cofferdam_files::{DirectoryOptions, DirectoryStore};
use cofferdam_tool::CallRecord;
use cofferdam_tool::invoke::{InnerCalls, SuspendedProgram};

use super::*;
use crate::{LedgerError, LedgerSeal};

/// A seal whose key is a prefix.
struct PrefixSeal(Mutex<HashSet<String>>);

impl LedgerSeal for PrefixSeal {
    fn seal(&self, ledger: &[u8]) -> Result<String, LedgerError> {
        Ok(format!("sealed:{}", std::str::from_utf8(ledger).unwrap()))
    }

    fn open(&self, sealed: &str) -> Result<Vec<u8>, LedgerError> {
        let ledger = sealed.strip_prefix("sealed:").ok_or(LedgerError::Invalid)?;
        match self.0.lock().insert(ledger.to_owned()) {
            true => Ok(ledger.as_bytes().to_vec()),
            false => Err(LedgerError::Used),
        }
    }
}

/// A caller of programs that can keep one.
struct Keeper {
    kept: Mutex<Option<SuspendedProgram>>,
    resumed: Option<ResumedProgram>,
    bytes_max: usize,
    /// Labels of the results that the program got.
    labels: Mutex<Vec<Option<Label>>>,
}

impl InnerCalls for Keeper {
    fn admit(&self, _: &InnerCall<'_>) -> Result<(), Box<ToolFailure>> {
        Ok(())
    }

    fn ended(&self, _: &InnerCall<'_>, record: &CallRecord) {
        self.labels.lock().push(record.label.clone());
    }

    fn ledger_bytes_max(&self) -> usize {
        self.bytes_max
    }

    fn suspend(&self, program: SuspendedProgram) -> bool {
        *self.kept.lock() = Some(program);
        true
    }

    fn resumed(&self) -> Option<ResumedProgram> {
        self.resumed.clone()
    }
}

/// Host of one process: a directory, its tool, and code mode over it.
struct Process {
    guarded: Arc<Guarded>,
    toolset: Toolset,
    /// Labels of the results that the last program got.
    labels: Mutex<Vec<Option<Label>>>,
}

impl Process {
    fn new(store: Arc<dyn FileStore>, description: &str, seal: &Arc<PrefixSeal>) -> Self {
        Self::with(ListInterpreter::source(), store, description, seal)
    }

    fn with(
        interpreter: Arc<dyn ToolSource>,
        store: Arc<dyn FileStore>,
        description: &str,
        seal: &Arc<PrefixSeal>,
    ) -> Self {
        let guarded = Guarded::over(store, description);
        let mut tools = Toolset::new();
        tools.add(Arc::clone(&guarded) as Arc<dyn ToolSource>).unwrap();
        let seal: Arc<dyn LedgerSeal> = Arc::<PrefixSeal>::clone(seal);
        let options = CodeOptions { seal: Some(seal), ..CodeOptions::default() };
        let mode = CodeMode::new(interpreter, &tools, options).unwrap();
        let mut toolset = Toolset::new();
        toolset.add(Arc::new(mode)).unwrap();
        Self { guarded, toolset, labels: Mutex::default() }
    }

    /// Runs the program, from the beginning or resumed.
    async fn run(&self, resumed: Option<ResumedProgram>) -> (Outcome, Option<SuspendedProgram>) {
        self.run_with(resumed, 1 << 20).await
    }

    async fn run_with(
        &self,
        resumed: Option<ResumedProgram>,
        bytes_max: usize,
    ) -> (Outcome, Option<SuspendedProgram>) {
        let labels = Mutex::default();
        let keeper = Arc::new(Keeper { kept: Mutex::default(), resumed, bytes_max, labels });
        let inner_calls: Arc<dyn InnerCalls> = Arc::<Keeper>::clone(&keeper);
        let context = CallContext {
            session: Some("s".to_owned()),
            inner_calls: Some(inner_calls),
            ..CallContext::new("c")
        };
        let program = serde_json::from_str(WRITES).unwrap();
        let completion = super::run(&self.toolset, program, &context).await;
        let labels = keeper.labels.lock().clone();
        *self.labels.lock() = labels;
        let kept = keeper.kept.lock().take();
        (completion.outcome, kept)
    }

    fn calls(&self) -> usize {
        self.guarded.calls.load(Ordering::Relaxed)
    }
}

fn seal() -> Arc<PrefixSeal> {
    Arc::new(PrefixSeal(Mutex::default()))
}

fn directory(path: &std::path::Path) -> Arc<dyn FileStore> {
    Arc::new(DirectoryStore::open_ambient(path, DirectoryOptions::default()).unwrap())
}

fn message(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Failure(failure) => failure.message.clone(),
        other => panic!("{other:?}"),
    }
}

fn decided(program: &SuspendedProgram, is_approved: bool) -> Option<ResumedProgram> {
    let reason = (!is_approved).then(|| "not now".to_owned());
    Some(ResumedProgram { ledger: program.ledger.clone(), is_approved, reason })
}

#[tokio::test]
async fn another_process_continues_the_program_and_repeats_no_call() {
    let (folder, seal) = (tempfile::tempdir().unwrap(), seal());
    let first = Process::new(directory(folder.path()), "Writes.", &seal);
    let (outcome, kept) = first.run(None).await;
    assert_eq!(message(&outcome), "the program waits for the approval of a call to 'write'");
    let kept = kept.unwrap();
    assert_eq!((kept.call_id.as_str(), kept.tool.as_str()), ("c.2", "write"));
    assert_eq!(Value::Object(kept.arguments.clone()), json!({"name": "b"}));
    assert_eq!((first.calls(), first.guarded.has("a").await), (1, false));
    drop(first);
    let second = Process::new(directory(folder.path()), "Writes.", &seal);
    let (outcome, again) = second.run(decided(&kept, true)).await;
    assert!(matches!(outcome, Outcome::Ok(_)), "{outcome:?}");
    assert_eq!((second.calls(), again), (1, None));
    // A label policy learns about repeated results as well.
    let untrusted = Some(Label::untrusted());
    assert_eq!(*second.labels.lock(), [untrusted.clone(), untrusted]);
    assert!(second.guarded.has("a").await && second.guarded.has("b").await);
    let (outcome, _) = second.run(decided(&kept, true)).await;
    assert!(message(&outcome).contains("its ledger was used before"), "{outcome:?}");
    assert_eq!(second.calls(), 1);
}

#[tokio::test]
async fn a_refused_call_fails_in_the_program() {
    let (folder, seal) = (tempfile::tempdir().unwrap(), seal());
    let process = Process::new(directory(folder.path()), "Writes.", &seal);
    let kept = process.run(None).await.1.unwrap();
    let (outcome, _) = process.run(decided(&kept, false)).await;
    assert_eq!(message(&outcome), "the user did not approve the call to 'write': not now");
    assert_eq!((process.calls(), process.guarded.has("a").await), (1, false));
}

#[tokio::test]
async fn changed_tools_and_files_and_foreign_ledgers_are_refused() {
    let (folder, seal) = (tempfile::tempdir().unwrap(), seal());
    let first = Process::new(directory(folder.path()), "Writes.", &seal);
    let kept = async || first.run(None).await.1.unwrap();
    let changed = Process::new(directory(folder.path()), "Writes much.", &seal);
    let (outcome, _) = changed.run(decided(&kept().await, true)).await;
    assert_eq!(
        message(&outcome),
        "The program cannot continue after the approval: tools have changed since: 'write', \
         'write_free'. Nothing was called again, and no file change was kept."
    );
    let forged = SuspendedProgram { ledger: "forged".to_owned(), ..kept().await };
    let (outcome, _) = first.run(decided(&forged, true)).await;
    assert!(message(&outcome).contains("its ledger was changed or is incomplete"), "{outcome:?}");
    let program = kept().await;
    std::fs::write(folder.path().join("a"), "of another program").unwrap();
    let (outcome, _) = first.run(decided(&program, true)).await;
    assert!(message(&outcome).contains("`a` in `data`"), "{outcome:?}");
    assert_eq!((changed.calls(), first.calls()), (0, 3));
}

#[tokio::test]
async fn a_program_whose_state_cannot_be_kept_goes_on_without_the_call() {
    let memory: Arc<dyn FileStore> = Arc::new(MemoryStore::new(Quota::default()));
    let process = Process::new(memory, "Writes.", &seal());
    let (outcome, kept) = process.run(None).await;
    assert_eq!((kept, process.calls()), (None, 1));
    let why = message(&outcome);
    assert!(why.contains("`data` is not one directory of this machine"), "{why}");
    let folder = tempfile::tempdir().unwrap();
    let process = Process::new(directory(folder.path()), "Writes.", &seal());
    let (outcome, kept) = process.run_with(None, 100).await;
    assert_eq!(kept, None);
    assert!(
        message(&outcome).contains("other waiting programs already use the available space"),
        "{outcome:?}"
    );
}

/// An interpreter that makes no call, as if the program were another one.
struct Idle(Arc<[Arc<ToolDefinition>]>);

#[async_trait]
impl ToolSource for Idle {
    fn name(&self) -> &str {
        "idle"
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.0)
    }

    async fn invoke(&self, _: ToolCall<'_>, context: &CallContext) -> Completion {
        Completion::ended(Outcome::Ok(Output::Value(json!({"result": 1}))), context)
    }
}

#[tokio::test]
async fn a_program_that_leaves_out_a_call_changes_nothing() {
    let (folder, seal) = (tempfile::tempdir().unwrap(), seal());
    let first = Process::new(directory(folder.path()), "Writes.", &seal);
    let kept = first.run(None).await.1.unwrap();
    let idle = Arc::new(Idle(ListInterpreter::source().definitions()));
    let other = Process::with(idle, directory(folder.path()), "Writes.", &seal);
    let (outcome, _) = other.run(decided(&kept, true)).await;
    assert!(message(&outcome).contains("ended without its call 1"), "{outcome:?}");
    assert_eq!((other.calls(), other.guarded.has("a").await), (0, false));
}
