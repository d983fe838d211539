//! Questions of tools to the client of a gateway.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_tool::ask::{AskError, Asker, Question, QuestionKind};
use cofferdam_tool::{CallContext, Outcome, Output, ToolFailure, Toolset};
use serde_json::{Value, json};

use super::calls::{wait_until, worker};
use super::server::Server;
use super::tools::Starts;

/// Answers forms after a while.
#[derive(Default)]
struct Client {
    answer_time: Duration,
    answer_bytes: usize,
    asked: AtomicUsize,
    /// Number of times that it was asked and has answered, or is no longer asked.
    ended: Arc<AtomicUsize>,
}

struct Asked(Arc<AtomicUsize>);

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl Asker for Client {
    fn can_ask(&self, kind: QuestionKind) -> bool {
        kind == QuestionKind::Elicitation
    }

    async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Value>, AskError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let _asked = Asked(Arc::clone(&self.ended));
        tokio::time::sleep(self.answer_time).await;
        if questions.iter().any(|question| question.parameters["message"] == "fail") {
            return Err(AskError::Failed("gone".to_owned()));
        }
        Ok(vec![json!({"action": "accept", "content": {"text": "x".repeat(self.answer_bytes)}})])
    }
}

async fn ask(toolset: &Toolset, text: &str, context: &CallContext) -> Outcome {
    let arguments = json!({"text": text}).to_string();
    toolset.call("ask", Some(arguments.as_bytes()), context).await.unwrap().outcome
}

fn context(id: &str, client: &Arc<Client>) -> CallContext {
    let asker = Some(Arc::clone(client) as Arc<dyn Asker>);
    CallContext { asker, ..CallContext::new(id) }
}

#[tokio::test]
async fn a_client_is_asked_once_and_its_answer_reaches_the_tool() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("starts");
    let _worker = worker(&server, &path, 8).await;
    let toolset = server.gateway().await.toolset;

    // Longer than three heartbeats, with each of which the worker asks again.
    let client = Client { answer_time: Duration::from_millis(700), ..Client::default() };
    let (client, without_client) = (Arc::new(client), CallContext::new("without-client"));
    let (first, second) = (context("1", &client), context("2", &client));
    let (first, second, without_client) = tokio::join!(
        ask(&toolset, "a", &first),
        ask(&toolset, "fail", &second),
        ask(&toolset, "a", &without_client)
    );
    let answer = json!({"action": "accept", "content": {"text": ""}});
    assert_eq!(first, Outcome::Ok(Output::Value(json!([[true, false, false], [answer]]))));
    let failure = "the client did not answer: gone";
    assert_eq!(second, Outcome::Failure(ToolFailure::new(failure)));
    assert_eq!(without_client, Outcome::Ok(Output::Value(json!("no client"))));
    assert_eq!(client.asked.load(Ordering::Relaxed), 2);

    let large = Arc::new(Client { answer_bytes: 600_000, ..Client::default() });
    let Outcome::Failure(failure) = ask(&toolset, "a", &context("3", &large)).await else {
        panic!("the answer is too large");
    };
    assert!(failure.message.contains("at most 524288 bytes"), "{failure:?}");
}

#[tokio::test]
async fn questions_and_answers_that_fit_into_no_message_are_failures() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("small.conf");
    std::fs::write(&config, "max_payload: 65536\n").unwrap();
    let Some(server) = Server::start(&["-c", config.to_str().unwrap()]) else { return };
    let _worker = worker(&server, &folder.path().join("starts"), 8).await;
    let toolset = server.gateway().await.toolset;
    for (bytes, answer_bytes) in [(100_000, 0), (0, 100_000)] {
        let client = Arc::new(Client { answer_bytes, ..Client::default() });
        let (arguments, context) = (json!({"bytes": bytes}).to_string(), context("1", &client));
        let asking = toolset.call("ask", Some(arguments.as_bytes()), &context);
        let ended = tokio::time::timeout(Duration::from_secs(10), asking).await;
        let Outcome::Failure(failure) = ended.expect("an end").unwrap().outcome else {
            panic!("the message is too large");
        };
        assert!(failure.message.contains("the message bus allows 65536"), "{failure:?}");
    }
}

#[tokio::test]
async fn cancellation_and_the_deadline_end_a_question() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("starts");
    let _worker = worker(&server, &path, 8).await;
    let toolset = server.gateway().await.toolset;
    let client = Client { answer_time: Duration::from_secs(600), ..Client::default() };
    let client = Arc::new(client);
    let canceled = context("canceled", &client);
    let late = CallContext {
        deadline: Some(tokio::time::Instant::now() + Duration::from_millis(300)),
        ..context("late", &client)
    };
    let cancel = async {
        wait_until("the question", || client.asked.load(Ordering::Relaxed) == 2).await;
        canceled.cancellation.cancel();
    };
    let (first, second, ()) =
        tokio::join!(ask(&toolset, "a", &canceled), ask(&toolset, "a", &late), cancel);
    assert_eq!((first, second), (Outcome::Cancelled, Outcome::Cancelled));
    assert_eq!(client.ended.load(Ordering::Relaxed), 2);
    for id in ["canceled canceled", "canceled late"] {
        wait_until(id, || Starts::at(&path).of(id) == 1).await;
    }
}
