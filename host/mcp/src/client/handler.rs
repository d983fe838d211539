//! What a server sends by itself: progress, log lines, questions, news of its lists.

#![expect(deprecated, reason = "servers of earlier revisions still log, ask for messages and for roots")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cofferdam_tool::{CallContext, Progress};
use rmcp::ClientHandler;
use rmcp::model::{ClientCapabilities, ClientConfig, ErrorData, Implementation, ProgressToken, RequestId};
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, ListRootsResult,
    LoggingMessageNotificationParam, ProgressNotificationParam,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext, RoleClient};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use super::limits::{MESSAGE_BYTES_MAX, cut};
use super::question::{Questions, elicit};
use crate::level;

/// What a question is called that has no name of its own, before its number.
const ASKED: &str = "elicitation";
/// The extension for tasks.
const TASKS: &str = "io.modelcontextprotocol/tasks";
/// What a server sends can be faster than the note about the request that it belongs to.
const OVERTAKEN: Duration = Duration::from_millis(20);

/// Who waits for one request.
struct Waiting {
    token: ProgressToken,
    call: CallContext,
    /// How many questions were asked of it so far.
    asked: u32,
}

/// Who waits for which request of one connection.
#[derive(Default)]
pub(crate) struct Running {
    calls: Mutex<HashMap<RequestId, Waiting>>,
}

impl Running {
    fn calls(&self) -> MutexGuard<'_, HashMap<RequestId, Waiting>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, id: RequestId, token: ProgressToken, call: CallContext) {
        self.calls().insert(id, Waiting { token, call, asked: 0 });
    }

    pub(crate) fn remove(&self, id: &RequestId) {
        self.calls().remove(id);
    }

    fn by_token(&self, token: &ProgressToken) -> Option<CallContext> {
        self.calls().values().find(|waiting| waiting.token == *token).map(|waiting| waiting.call.clone())
    }

    /// Whose question this is, and how many were asked of that request before. A transport that keeps streams apart knows it;
    /// otherwise there has to be one call alone, or several of one session. Nobody is asked for somebody else.
    fn asking(&self, origin: Option<&InboundStreamOrigin>) -> Option<(CallContext, u32)> {
        let mut calls = self.calls();
        let waiting = if let Some(InboundStreamOrigin::OutboundRequest(id)) = origin {
            calls.get_mut(id)?
        } else {
            // Requests that belong to no call have no id of one.
            let mut running = calls.values_mut().filter(|waiting| !waiting.call.call_id.is_empty());
            let first = running.next()?;
            let session = first.call.session.clone();
            if !running.all(|other| session.is_some() && other.call.session == session) {
                return None;
            }
            first
        };
        let asked = waiting.asked;
        waiting.asked = asked.saturating_add(1);
        Some((waiting.call.clone(), asked))
    }

    /// Whose line of a log this is: that of the stream, or of the only call there is.
    fn logging(&self, origin: Option<&InboundStreamOrigin>) -> Option<CallContext> {
        let calls = self.calls();
        let waiting = match origin {
            Some(InboundStreamOrigin::OutboundRequest(id)) => calls.get(id),
            _ if calls.len() == 1 => calls.values().next(),
            _ => None,
        };
        waiting.map(|waiting| waiting.call.clone())
    }
}

/// Answers a server on one connection.
pub(crate) struct Handler {
    pub(crate) running: Arc<Running>,
    pub(crate) questions: Arc<Questions>,
    pub(crate) may_elicit: bool,
    pub(crate) changed: Arc<Notify>,
}

/// From one form of the same JSON to another.
fn reread<T: DeserializeOwned>(value: impl Serialize) -> Option<T> {
    serde_json::from_value(serde_json::to_value(value).ok()?).ok()
}

/// What `find` finds, now or a moment later.
async fn found<T>(find: impl Fn() -> Option<T>) -> Option<T> {
    if let Some(found) = find() {
        return Some(found);
    }
    tokio::time::sleep(OVERTAKEN).await;
    find()
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = json!({"extensions": {TASKS: {}}});
        if let Some(members) = capabilities.as_object_mut() {
            if self.may_elicit {
                members.insert("elicitation".to_owned(), json!({"form": {}}));
            }
            if self.questions.sampling.is_offered() {
                members.insert("sampling".to_owned(), json!({}));
            }
        }
        let capabilities = reread(capabilities).unwrap_or_else(ClientCapabilities::default);
        ClientConfig::new(capabilities, Implementation::new("cofferdam", env!("CARGO_PKG_VERSION")))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let declined =
            || reread(super::question::declined()).ok_or_else(|| ErrorData::internal_error("", None));
        let call = found(|| self.running.asking(context.extensions.get())).await.filter(|_| self.may_elicit);
        let (Some((call, asked)), Some(parameters)) = (call, reread::<Map<String, Value>>(request)) else {
            return declined();
        };
        let answer = elicit(vec![(format!("{ASKED}-{asked}"), parameters)], &call).await.pop();
        answer.and_then(reread).map_or_else(declined, Ok)
    }

    async fn create_message(
        &self,
        parameters: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let refused = |text: String| ErrorData::invalid_request(text, None);
        let parameters = reread(parameters).ok_or_else(|| refused("malformed parameters".to_owned()))?;
        let answer = self.questions.sampling.answer(parameters).await;
        let answer = answer.map_err(|error| refused(error.to_string()))?;
        reread(answer).ok_or_else(|| ErrorData::internal_error("the answer is no message", None))
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::default())
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let Some(call) = found(|| self.running.by_token(&progress.progress_token)).await else { return };
        if let Some(sink) = &call.progress {
            let message = progress.message.map(|text| cut(&text, MESSAGE_BYTES_MAX).to_owned());
            sink.report(&call.call_id, Progress { done: progress.progress, total: progress.total, message });
        }
    }

    async fn on_logging_message(
        &self,
        line: LoggingMessageNotificationParam,
        context: NotificationContext<RoleClient>,
    ) {
        let Some(call) = found(|| self.running.logging(context.extensions.get())).await else { return };
        if let Some(sink) = &call.log {
            let text = line.data.as_str().map_or_else(|| line.data.to_string(), str::to_owned);
            sink.log(&call.call_id, level::from_wire(line.level), cut(&text, MESSAGE_BYTES_MAX));
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}
