//! A model whose replies are recorded in the call log: usage, reason of the end, and duration.
//! Requests and replies themselves are stored only if conversations are recorded so that they can
//! run again.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use cofferdam_agent::{
    ChatClient, ChatError, ChatRequest, EndedRun, FinishReason, Reply, ReplyStream, RunError,
    RunObserver, TokenUsage,
};
use cofferdam_record::{LogEvent, ModelExchange, SpanIds};
use parking_lot::Mutex;
use serde_json::Value;

use crate::records::CallLog;

/// Finish of a stream or a run that was dropped before its end.
const DROPPED: &str = "dropped";

/// Client that records the requests to another one.
struct RecordedModel {
    client: Arc<dyn ChatClient>,
    provider: String,
    log: Arc<CallLog>,
}

/// State of a request, of which an event is made when it ends.
struct OpenRequest {
    session: Option<String>,
    provider: String,
    model: String,
    log: Arc<CallLog>,
    started: Instant,
    usage: Option<TokenUsage>,
    finish: String,
    trace: Option<SpanIds>,
    /// Messages of the request as JSON, if they are stored.
    request: Option<Vec<Value>>,
    /// Messages of the reply, if they are stored and the reply is complete.
    reply: Option<Vec<Value>>,
}

/// Records the runs of an agent.
struct RunRecorder {
    provider: String,
    log: Arc<CallLog>,
}

/// Returns an observer that records the runs of an agent in a log, if there is one.
#[must_use]
pub fn run_recorder(provider: &str, log: Option<&Arc<CallLog>>) -> Option<Arc<dyn RunObserver>> {
    let log = Arc::clone(log?);
    Some(Arc::new(RunRecorder { provider: provider.to_owned(), log }))
}

impl RunObserver for RunRecorder {
    fn ended(&self, run: &EndedRun<'_>) {
        let error = match run.error {
            None if run.is_dropped => Some(DROPPED),
            None => None,
            Some(RunError::Cancelled) => Some("cancelled"),
            Some(RunError::Chat(_)) => Some("model"),
            Some(RunError::BudgetExceeded(_)) => Some("budget"),
            Some(RunError::Answer(_)) => Some("answer"),
            Some(RunError::Calls(_)) => Some("calls"),
            Some(_) => Some("_OTHER"),
        };
        self.log.recorder().event(LogEvent::Agent {
            agent: run.agent.to_owned(),
            session: run.session.map(str::to_owned),
            provider: Some(self.provider.clone()),
            model: Some(run.model.to_owned()),
            input_tokens: run.usage.map(|usage| usage.input),
            output_tokens: run.usage.map(|usage| usage.output),
            error: error.map(str::to_owned),
            trace: Some(SpanIds::from(&run.trace)),
            duration: run.duration,
        });
    }
}

/// Returns a client that records the replies of `client` in a log, if there is one.
#[must_use]
pub fn recorded(
    client: Arc<dyn ChatClient>,
    provider: &str,
    log: Option<&Arc<CallLog>>,
) -> Arc<dyn ChatClient> {
    match log {
        Some(log) => {
            let (provider, log) = (provider.to_owned(), Arc::clone(log));
            Arc::new(RecordedModel { client, provider, log })
        }
        None => client,
    }
}

/// Returns an audit that records the decisions of a label policy in a log, except that it has
/// labelled a result.
#[cfg(feature = "labels")]
#[must_use]
pub(crate) fn label_recorder(log: &Arc<CallLog>) -> impl cofferdam_labels::LabelAudit + use<> {
    use cofferdam_labels::{AuditDecision, LabelDecision};

    let log = Arc::clone(log);
    move |decision: &LabelDecision<'_>| {
        if decision.decided == AuditDecision::Labelled {
            return;
        }
        let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let integrity = word(serde_json::json!(decision.label.integrity));
        let confidentiality = word(serde_json::json!(decision.label.confidentiality));
        let decided = decision.decided.word();
        log.recorder().event(LogEvent::Label {
            tool: decision.tool.to_owned(),
            call: decision.call_id.to_owned(),
            decision: format!("{decided} ({integrity}/{confidentiality})"),
        });
    }
}

impl RecordedModel {
    fn begin(&self, request: &ChatRequest) -> OpenRequest {
        OpenRequest {
            session: request.session_id.clone(),
            provider: self.provider.clone(),
            model: self.client.model().to_owned(),
            log: Arc::clone(&self.log),
            started: Instant::now(),
            usage: None,
            finish: DROPPED.to_owned(),
            trace: request.trace.map(|run| SpanIds::from(&run.child())),
            request: self.request(request),
            reply: None,
        }
    }

    /// Returns the messages of a request as JSON, if they are to be stored. Without a session they
    /// would never be found.
    fn request(&self, request: &ChatRequest) -> Option<Vec<Value>> {
        request.session_id.as_ref().filter(|_| self.log.recorder().stores_conversations())?;
        let messages = request.messages.iter().map(|message| serde_json::to_value(&**message));
        messages.collect::<Result<_, _>>().ok()
    }
}

impl OpenRequest {
    fn add(&mut self, usage: Option<TokenUsage>, finish: Option<&FinishReason>) {
        if let Some(usage) = usage {
            *self.usage.get_or_insert_default() += usage;
        }
        if let Some(finish) = finish {
            self.finish = finish.word().to_owned();
        }
    }

    /// Adds the complete reply.
    fn complete(&mut self, reply: &Reply) {
        if self.request.is_some() {
            self.reply =
                reply.messages.iter().map(serde_json::to_value).collect::<Result<_, _>>().ok();
        }
    }
}

/// Records the request, also if its future or its stream is dropped.
impl Drop for OpenRequest {
    fn drop(&mut self) {
        let messages = self.request.take().zip(self.reply.take());
        let messages = messages.and_then(|(request, reply)| ModelExchange::new(request, reply));
        let event = LogEvent::Model {
            provider: std::mem::take(&mut self.provider),
            model: std::mem::take(&mut self.model),
            session: self.session.take(),
            input_tokens: self.usage.map(|usage| usage.input),
            output_tokens: self.usage.map(|usage| usage.output),
            finish: std::mem::take(&mut self.finish),
            trace: self.trace.take(),
            exchange: None,
            duration: self.started.elapsed(),
        };
        self.log.recorder().reply(event, messages);
    }
}

#[async_trait]
impl ChatClient for RecordedModel {
    fn model(&self) -> &str {
        self.client.model()
    }

    fn keeps_conversation(&self) -> bool {
        self.client.keeps_conversation()
    }

    fn supports_response_format(&self) -> bool {
        self.client.supports_response_format()
    }

    async fn reply(&self, request: ChatRequest) -> Result<Reply, ChatError> {
        let mut open = self.begin(&request);
        let reply = self.client.reply(request).await;
        match &reply {
            Ok(reply) => {
                open.finish = "stop".to_owned();
                open.add(reply.usage, reply.finish.as_ref());
                open.complete(reply);
            }
            Err(error) => open.finish = format!("{:?}", error.kind),
        }
        reply
    }

    async fn stream(&self, request: ChatRequest) -> Result<ReplyStream, ChatError> {
        let mut open = self.begin(&request);
        let stream = self.client.stream(request).await;
        let stream = stream.inspect_err(|error| open.finish = format!("{:?}", error.kind))?;
        let open = Arc::new(Mutex::new(open));
        let ended = Arc::clone(&open);
        let stream = stream.map_updates(move |update| {
            let mut open = open.lock();
            open.add(update.usage, update.finish.as_ref());
            update
        });
        Ok(stream.map_reply(move |reply| {
            let mut open = ended.lock();
            if open.finish == DROPPED {
                open.finish = "stop".to_owned();
            }
            open.complete(&reply);
            reply
        }))
    }
}
