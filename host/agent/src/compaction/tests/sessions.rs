//! Tests of sessions that are compacted: what is stored, and what the next run begins with.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::{Functions, Toolset};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::compaction::{
    Compaction, SlidingWindow, Summarize, TokenCounter, TokenEstimate, TokenLimit, ToolResults,
    is_compaction_record,
};
use crate::guard::{BatchGuard, Guard, GuardedRun, NoGuard, RunGuard};
use crate::history::{FileHistory, FileHistoryOptions, History, HistoryFlags};
use crate::{
    Agent, ChatClient, ChatError, ChatErrorKind, ChatRequest, Message, MessageContent, Reasoning,
    Reply, ReplyStream, Role, ScriptedClient, Session,
};

/// Maximum tokens of the messages of a request.
const LIMIT: u64 = 3000;
const TURNS: usize = 500;

/// A model that looks something up and then answers. It refuses requests that a provider would
/// refuse: calls without results, and reasoning behind other messages than those it followed.
#[derive(Default)]
struct Strict {
    requests: AtomicUsize,
    largest: AtomicU64,
    facts: Mutex<Vec<String>>,
    /// True if the second request of the turn is never answered.
    hangs: AtomicBool,
    is_hanging: Notify,
}

fn add(message: &Message, hasher: &mut DefaultHasher) {
    format!("{:?} {:?}", message.role, message.contents).hash(hasher);
}

fn hash(messages: &[Arc<Message>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    messages.iter().for_each(|message| add(message, &mut hasher));
    hasher.finish()
}

impl Strict {
    fn check(&self, messages: &[Arc<Message>]) -> Result<(), String> {
        let mut hasher = DefaultHasher::new();
        for (index, message) in messages.iter().enumerate() {
            for content in &message.contents {
                if let MessageContent::Reasoning(reasoning) = content
                    && reasoning.opaque != Some(json!(hasher.finish()))
                {
                    return Err(format!("reasoning of message {index} does not match"));
                }
            }
            add(message, &mut hasher);
            let called: Vec<_> = message.calls().map(|call| &call.call_id).collect();
            let results = messages.get(index + 1).into_iter().flat_map(|next| next.results());
            let results: Vec<_> = results.map(|result| &result.call_id).collect();
            if !called.is_empty() && called != results {
                return Err(format!("calls {called:?} have the results {results:?}"));
            }
            if message.role == Role::Tool && messages[index - 1].calls().next().is_none() {
                return Err(format!("message {index} is a result without a call"));
            }
        }
        if messages.first().is_none_or(|first| first.role != Role::User) {
            return Err("the first message is not the user's".to_owned());
        }
        let facts = self.facts.lock().unwrap();
        let is_known = |fact: &&String| messages.iter().any(|message| message.text() == **fact);
        match facts.iter().find(|fact| !is_known(fact)) {
            Some(fact) => Err(format!("{fact} is missing")),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl ChatClient for Strict {
    fn model(&self) -> &str {
        "strict"
    }

    async fn reply(&self, request: ChatRequest) -> Result<Reply, ChatError> {
        let messages = &request.messages;
        self.check(messages).map_err(|error| ChatError::new(ChatErrorKind::Rejected, error))?;
        let tokens = messages.iter().map(|message| TokenEstimate::default().message(message));
        self.largest.fetch_max(tokens.sum(), Ordering::SeqCst);
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        let is_called = messages.last().is_some_and(|last| last.role == Role::Tool);
        if is_called && self.hangs.swap(false, Ordering::SeqCst) {
            self.is_hanging.notify_one();
            std::future::pending::<()>().await;
        }
        let opaque = Some(json!(hash(messages)));
        let thought = Reasoning { text: "hm".to_owned(), opaque, ..Reasoning::default() };
        let content = match is_called {
            true => MessageContent::text(format!("answer {number}")),
            false => MessageContent::call(format!("call-{number}"), "look", "{}"),
        };
        let contents = vec![MessageContent::Reasoning(thought), content];
        let messages = vec![Message::new(Role::Assistant, contents)];
        Ok(Reply { messages, ..Reply::default() })
    }

    async fn stream(&self, request: ChatRequest) -> Result<ReplyStream, ChatError> {
        Ok(self.reply(request).await?.into())
    }
}

/// A model that writes one summary after another.
#[derive(Default)]
struct Summaries(AtomicUsize);

#[async_trait]
impl ChatClient for Summaries {
    fn model(&self) -> &str {
        "summaries"
    }

    async fn reply(&self, _: ChatRequest) -> Result<Reply, ChatError> {
        Ok(Reply::text(format!("summary {}", self.0.fetch_add(1, Ordering::SeqCst))))
    }

    async fn stream(&self, request: ChatRequest) -> Result<ReplyStream, ChatError> {
        Ok(self.reply(request).await?.into())
    }
}

fn tools() -> Toolset {
    let look = Declaration::new("look", "Looks.", r#"{"type":"object"}"#);
    let functions = Functions::new("tests").with(look, async |_, _| Ok(json!("seen ".repeat(60))));
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(functions.unwrap())).unwrap();
    toolset
}

fn open(directory: &Path) -> FileHistory {
    let options = FileHistoryOptions { repair_torn_end: true, ..FileHistoryOptions::default() };
    FileHistory::open_ambient(directory, options).unwrap()
}

#[tokio::test]
async fn a_session_of_500_turns_stays_within_its_limit() {
    let directory = tempfile::tempdir().unwrap();
    let (model, summaries) = (Arc::new(Strict::default()), Arc::new(Summaries::default()));
    let reports = Arc::new(AtomicUsize::new(0));
    let begin = || {
        let strategy = TokenLimit::new(LIMIT)
            .target(LIMIT / 2)
            .then(ToolResults::shorten(2, 80))
            .then(Summarize::new(Arc::clone(&summaries)));
        let reports = Arc::clone(&reports);
        let compaction = Compaction::new(strategy).observer(move |report| {
            assert!(report.tokens_after <= LIMIT && report.tokens_before > LIMIT, "{report:?}");
            reports.fetch_add(usize::from(report.is_summarized), Ordering::SeqCst);
        });
        let agent = Agent::builder(Arc::clone(&model))
            .tools(tools())
            .compaction(compaction)
            .context_provider(History::in_files(open(directory.path())));
        (agent.build().unwrap(), Session::with_id("s"))
    };
    let (mut agent, mut session) = begin();
    for turn in 0..TURNS {
        let input = match turn % 50 {
            0 => {
                let fact = format!("fact {turn}");
                model.facts.lock().unwrap().push(fact.clone());
                Message::user(fact).pinned()
            }
            _ => Message::user(format!("question {turn}")),
        };
        if turn % 37 == 36 {
            // The program is killed after the call has run, and while it writes.
            model.hangs.store(true, Ordering::SeqCst);
            tokio::select! {
                _ = agent.run(input.clone()).session(&session).into_future() => panic!("it hangs"),
                () = model.is_hanging.notified() => {}
            }
            let path = directory.path().join("s.jsonl");
            let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
            std::io::Write::write_all(&mut file, br#"{"type":"message","role":"#).unwrap();
            (agent, session) = begin();
        }
        agent.run(input).session(&session).await.unwrap_or_else(|error| panic!("{turn}: {error}"));
    }
    // Instructions and functions take the rest.
    let largest = model.largest.load(Ordering::SeqCst);
    assert!(largest > LIMIT / 2 && largest <= LIMIT, "{largest} tokens in a request");
    let written = summaries.0.load(Ordering::SeqCst);
    assert!(written > 10 && written < TURNS / 4, "{written} summaries");
    // A summary is lost only if the program is killed before the end of the run.
    assert!(reports.load(Ordering::SeqCst) == written);
    let lines = open(directory.path()).read("s").await.unwrap();
    let messages = lines.iter().filter(|line| !is_compaction_record(line)).count();
    assert_eq!(messages, TURNS * 4);
}

#[tokio::test]
async fn a_session_keeps_its_compaction_in_its_json_form() {
    let mut form = serde_json::to_value(Session::with_id("s")).unwrap();
    let summaries = ScriptedClient::new(["one", "two"].map(Reply::text)).recording();
    let mut sizes = Vec::new();
    for turn in 0..6 {
        let client = ScriptedClient::new([Reply::text("answer")]).recording();
        let strategy = Summarize::new(summaries.clone()).keep(2).slack(2);
        let agent = Agent::builder(client.clone()).compaction(Compaction::new(strategy));
        let session: Session = serde_json::from_value(form).unwrap();
        agent.build().unwrap().run(format!("q{turn}")).session(&session).await.unwrap();
        sizes.push(client.requests()[0].messages.len());
        form = serde_json::to_value(session).unwrap();
    }
    // Every second turn would begin with three groups more than are kept.
    assert_eq!(sizes, [1, 3, 3, 5, 3, 5]);
    assert_eq!(summaries.requests().len(), 2);
}

/// A guard that counts the results it has seen at the beginning of runs.
#[derive(Clone, Default)]
struct Watcher(Arc<AtomicUsize>);

impl Guard for Watcher {
    fn begin(&self, _: GuardedRun<'_>) -> Arc<dyn RunGuard> {
        Arc::new(self.clone())
    }
}

impl RunGuard for Watcher {
    fn begins_with(&self, messages: &[Arc<Message>]) {
        let results = messages.iter().map(|message| message.results().count()).sum();
        self.0.fetch_add(results, Ordering::SeqCst);
    }

    fn begin_batch(self: Arc<Self>) -> Box<dyn BatchGuard> {
        Arc::new(NoGuard).begin_batch()
    }
}

#[tokio::test]
async fn a_guard_still_sees_results_that_the_model_no_longer_sees() {
    let directory = tempfile::tempdir().unwrap();
    let watcher = Watcher::default();
    for turn in 0..3 {
        let agent = Agent::builder(Arc::new(Strict::default()))
            .tools(tools())
            .guard(watcher.clone())
            .compaction(Compaction::new(SlidingWindow::new(1)))
            .context_provider(History::in_files(open(directory.path())));
        let before = watcher.0.load(Ordering::SeqCst);
        let run = agent.build().unwrap().run("go").session(&Session::with_id("s")).await;
        run.unwrap();
        // Some results are both in the file and among what the model sees.
        assert!(watcher.0.load(Ordering::SeqCst) - before >= turn);
    }
}

/// Runs three turns with a window of one group, and returns the lines of the file.
async fn lines(options: FileHistoryOptions, flags: HistoryFlags) -> Vec<Value> {
    let directory = tempfile::tempdir().unwrap();
    for turn in 0..3 {
        let files = FileHistory::open_ambient(directory.path(), options.clone()).unwrap();
        let client = ScriptedClient::new([Reply::text("answer")]);
        let agent = Agent::builder(client)
            .compaction(Compaction::new(SlidingWindow::new(1)))
            .context_provider(History::in_files(files).with_flags(flags));
        let input = format!("question {turn} {}", "x".repeat(300));
        agent.build().unwrap().run(input).session(&Session::with_id("s")).await.unwrap();
    }
    let text = std::fs::read_to_string(directory.path().join("s.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_record_that_cannot_be_stored_costs_no_message() {
    let records =
        |lines: &[Value]| lines.iter().filter(|line| line["contents"] == json!([])).count();
    let stored = lines(FileHistoryOptions::default(), HistoryFlags::default()).await;
    assert_eq!((stored.len(), records(&stored)), (8, 2));
    assert_eq!(stored[3]["additional_properties"]["compaction"]["replaces"], 3);
    assert_eq!(stored[3]["role"], "system");
    let small = FileHistoryOptions { record_bytes_max: 450, ..FileHistoryOptions::default() };
    let stored = lines(small, HistoryFlags::default()).await;
    assert_eq!((stored.len(), records(&stored)), (6, 0));
    // A history of the user's messages only does not have the whole conversation.
    let partial = HistoryFlags { store_outputs: false, ..HistoryFlags::default() };
    assert_eq!(records(&lines(FileHistoryOptions::default(), partial).await), 0);
}
