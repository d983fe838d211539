//! Rows of `compaction.jsonl`: requests after a compaction, and what a history stores.

use std::path::Path;
use std::sync::{Arc, Mutex};

use cofferdam_agent::compaction::{
    Compaction, CompactionStrategy, ContextWindow, Conversation, SlidingWindow, Summarize,
    TokenCounter, TokenEstimate, TokenLimit, ToolResults,
};
use cofferdam_agent::history::{FileHistory, FileHistoryOptions, History};
use cofferdam_agent::{
    AfterScript, Agent, BoxError, Data, Message, MessageContent, Reasoning, Reply, Role,
    ScriptedClient, Session,
};
use serde_json::{Map, Value, json};

use super::agent::block_on;
use super::{Row, expect_same};

pub(crate) fn run(row: &Row) -> Result<(), String> {
    let outcome = match row.op.as_str() {
        "request" => block_on(async { Ok(request(&row.value).await) })?,
        "session" => block_on(async { Ok(session(&row.value).await) })?,
        "history" => block_on(async { Ok(history(&row.value).await) })?,
        "tokens" => tokens(&row.value),
        other => return Err(format!("unknown operation `{other}`")),
    };
    let expected = row.expect.as_object().ok_or("`expect` is not an object")?;
    expected.iter().try_for_each(|(key, expected)| {
        let got = outcome.get(key).ok_or_else(|| format!("unknown key `{key}` in `expect`"))?;
        expect_same(key, expected, got)
    })
}

/// One run whose input is the whole conversation: the messages of its request.
async fn request(row: &Value) -> Value {
    let summaries = summaries(row);
    let reports = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&reports);
    let compaction = Compaction::new(strategy(&row["strategy"], &summaries));
    let compaction = compaction.observer(move |report| {
        seen.lock().unwrap().push(json!({
            "messages_before": report.messages_before,
            "messages_after": report.messages_after,
            "tokens_before": report.tokens_before,
            "tokens_after": report.tokens_after,
            "is_summarized": report.is_summarized,
        }));
    });
    let client = ScriptedClient::new([Reply::text("done")]).recording();
    let agent = Agent::builder(client.clone()).compaction(compaction).build().unwrap();
    let messages: Vec<_> = list(&row["messages"]).iter().map(message).collect();
    agent.run(messages).await.unwrap();
    let shown: Vec<_> =
        client.requests()[0].messages.iter().map(|message| shown(message)).collect();
    let report = reports.lock().unwrap().first().cloned().unwrap_or_default();
    json!({"messages": shown, "report": report, "summaries": summaries.requests().len()})
}

/// Turns of one session, each by a new agent and with the file opened again.
async fn session(row: &Value) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let summaries = summaries(row);
    let (mut requests, mut last) = (Vec::new(), Vec::new());
    for turn in list(&row["turns"]) {
        let client = ScriptedClient::new([Reply::text(turn[1].as_str().unwrap())]).recording();
        let compaction = Compaction::new(strategy(&row["strategy"], &summaries));
        let agent = Agent::builder(client.clone())
            .compaction(compaction)
            .context_provider(History::in_files(open(directory.path())))
            .build()
            .unwrap();
        agent.run(turn[0].as_str().unwrap()).session(&Session::with_id("s")).await.unwrap();
        let messages = &client.requests()[0].messages;
        requests.push(messages.len());
        last = messages.iter().map(|message| shown(message)).collect();
    }
    let lines = std::fs::read_to_string(directory.path().join("s.jsonl")).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown_lines = lines.iter().filter(|line| line["contents"] != json!([])).count();
    json!({
        "requests": requests,
        "last_request": last,
        "summaries": summaries.requests().len(),
        "messages_in_file": shown_lines,
        "records_in_file": lines.len() - shown_lines,
    })
}

/// One run of an agent without compaction over a given history file.
async fn history(row: &Value) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let lines: String =
        list(&row["lines"]).iter().map(|line| format!("{}\n", stored(line))).collect();
    std::fs::write(directory.path().join("s.jsonl"), lines).unwrap();
    let client = ScriptedClient::new([Reply::text("done")]).recording();
    let history = History::in_files(open(directory.path()));
    let agent = Agent::builder(client.clone()).context_provider(history).build().unwrap();
    agent.run("hi").session(&Session::with_id("s")).await.unwrap();
    let messages = client.requests()[0].messages.clone();
    json!({"messages": messages.iter().map(|message| shown(message)).collect::<Vec<_>>()})
}

fn tokens(row: &Value) -> Value {
    let counter = TokenEstimate::percent(row["percent"].as_u64().unwrap_or(100));
    json!({"tokens": counter.message(&message(&row["message"]))})
}

fn open(directory: &Path) -> FileHistory {
    FileHistory::open_ambient(directory, FileHistoryOptions::default()).unwrap()
}

fn summaries(row: &Value) -> ScriptedClient {
    let replies: Vec<_> =
        list(&row["summaries"]).iter().map(|text| Reply::text(text.as_str().unwrap())).collect();
    ScriptedClient::new(replies).then(AfterScript::Silence).recording()
}

/// A strategy of a row, whatever it is.
struct Any(Box<dyn CompactionStrategy>);

#[async_trait::async_trait]
impl CompactionStrategy for Any {
    async fn compact(&self, conversation: &mut Conversation<'_>) -> Result<(), BoxError> {
        self.0.compact(conversation).await
    }
}

fn strategy(form: &Value, summaries: &ScriptedClient) -> Any {
    let (name, options) = form.as_object().unwrap().iter().next().unwrap();
    let number = |key: &str| options[key].as_u64();
    let count = |key: &str| number(key).map(|number| usize::try_from(number).unwrap());
    let then = list(&options["then"]);
    Any(match name.as_str() {
        "window" => Box::new(SlidingWindow::new(count("groups").unwrap())),
        "results" => Box::new(match count("chars") {
            Some(chars) => ToolResults::shorten(count("keep").unwrap(), chars),
            None => ToolResults::remove(count("keep").unwrap()),
        }),
        "summarize" => {
            let mut summarize = Summarize::new(summaries.clone());
            if let Some(groups) = count("keep") {
                summarize = summarize.keep(groups);
            }
            if let Some(groups) = count("slack") {
                summarize = summarize.slack(groups);
            }
            Box::new(summarize)
        }
        "limit" => {
            let mut limit = TokenLimit::new(number("tokens").unwrap());
            if let Some(tokens) = number("target") {
                limit = limit.target(tokens);
            }
            Box::new(then.iter().fold(limit, |limit, form| limit.then(strategy(form, summaries))))
        }
        "context_window" => {
            let window = ContextWindow::new(number("window").unwrap(), number("output").unwrap());
            Box::new(then.iter().fold(window, |all, form| all.then(strategy(form, summaries))))
        }
        other => panic!("unknown strategy `{other}`"),
    })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Reads a message: `role`, `contents`, and optionally `pinned` and `source`.
fn message(form: &Value) -> Message {
    let role: Role = serde_json::from_value(form["role"].clone()).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let content = |form: &Value| {
        let members = form.as_object().unwrap();
        if let Some(thought) = members.get("reasoning") {
            let text = text(thought);
            return MessageContent::Reasoning(Reasoning { text, ..Reasoning::default() });
        }
        if let Some(media_type) = members.get("data") {
            let media_type = text(media_type);
            let data = "A".repeat(usize::try_from(form["length"].as_u64().unwrap()).unwrap());
            return MessageContent::Data(Data { media_type, data, ..Data::default() });
        }
        if let Some(name) = members.get("call") {
            return MessageContent::call(text(&form["id"]), text(name), text(&form["args"]));
        }
        match members.get("result") {
            Some(result) => MessageContent::result(text(&form["id"]), text(result)),
            None => MessageContent::text(text(&form["text"])),
        }
    };
    let message = Message::new(role, list(&form["contents"]).iter().map(content).collect());
    let message = match form["source"].as_str() {
        Some(source) => message.from_source(source),
        None => message,
    };
    if form["pinned"] == json!(true) { message.pinned() } else { message }
}

/// Returns a line of a history file: a message, or the record `{"replaces", "with", "version"}`.
fn stored(form: &Value) -> Value {
    let Some(replaces) = form.get("replaces") else {
        return serde_json::to_value(message(form)).unwrap();
    };
    let messages: Vec<_> = list(&form["with"]).iter().map(message).collect();
    let version = form.get("version").cloned().unwrap_or(json!(1));
    json!({"type": "message", "role": "system", "contents": [], "additional_properties": {
        "compaction": {"version": version, "replaces": replaces, "messages": messages},
    }})
}

/// Returns a message in the form of a row.
fn shown(message: &Message) -> Value {
    let content = |content: &MessageContent| match content {
        MessageContent::Text(text) => json!({"text": text.text}),
        MessageContent::Reasoning(reasoning) => json!({"reasoning": reasoning.text}),
        MessageContent::FunctionCall(call) => json!({"call": call.name, "id": call.call_id}),
        MessageContent::FunctionResult(result) => {
            json!({"result": result.result, "id": result.call_id})
        }
        other => serde_json::to_value(other).unwrap(),
    };
    let mut shown = Map::new();
    shown.insert("role".to_owned(), serde_json::to_value(message.role).unwrap());
    shown.insert("contents".to_owned(), message.contents.iter().map(content).collect());
    Value::Object(shown)
}
