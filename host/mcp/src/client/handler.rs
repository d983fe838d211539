//! Handler for messages that a server sends on its own: progress, log lines, questions, and list
//! changes.

#![expect(
    deprecated,
    reason = "servers of earlier revisions still log, ask for messages and for roots"
)]

use std::sync::Arc;
use std::time::Duration;

use cofferdam_tool::invoke::Progress;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CustomRequest, CustomResult, ErrorCode, ErrorData,
    Implementation,
};
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
    ListRootsResult, LoggingMessageNotificationParam, ProgressNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use super::limits::{MESSAGE_BYTES_MAX, OWN_MESSAGE_BYTES_MAX, cut};
use super::question::{Questions, elicit};
use super::raw::TOO_LARGE;
use super::running::{ActiveRequests, AskingCall};
use crate::level;

/// Prefix of the names of questions without a name of their own, followed by a number.
const ASKED: &str = "elicitation";
/// Name of the extension for tasks.
const TASKS: &str = "io.modelcontextprotocol/tasks";
/// Maximum wait for a request to be registered when a message that belongs to it arrives first.
const OVERTAKEN: Duration = Duration::from_millis(20);

/// Handles messages of a server on one connection.
pub(crate) struct Handler {
    pub(crate) running: Arc<ActiveRequests>,
    pub(crate) questions: Arc<Questions>,
    pub(crate) may_elicit: bool,
    pub(crate) changed: Arc<Notify>,
}

/// Converts a value to another type with the same JSON form.
fn reread<T: DeserializeOwned>(value: impl Serialize) -> Option<T> {
    serde_json::from_value(serde_json::to_value(value).ok()?).ok()
}

/// Calls `find`, and a second time after a short wait if it finds nothing.
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
        let declined = || {
            reread(super::question::declined()).ok_or_else(|| ErrorData::internal_error("", None))
        };
        let call = found(|| self.running.asking(context.extensions.get()))
            .await
            .filter(|_| self.may_elicit);
        let (Some(asking), Some(parameters)) = (call, reread::<Map<String, Value>>(request)) else {
            return declined();
        };
        let AskingCall { call, number, ended } = asking;
        let question = (format!("{ASKED}-{number}"), parameters);
        let asking = elicit(&self.questions, vec![question], &call);
        let answer = tokio::select! {
            answers = asking => answers.into_iter().next_back(),
            // The server has withdrawn the question, or the connection is lost.
            () = context.ct.cancelled() => None,
            // A server may forget to withdraw the questions of a call that was canceled.
            () = ended.cancelled() => None,
        };
        answer.and_then(reread).map_or_else(declined, Ok)
    }

    async fn create_message(
        &self,
        parameters: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let refused = |text: String| ErrorData::invalid_request(text, None);
        let parameters =
            reread(parameters).ok_or_else(|| refused("malformed parameters".to_owned()))?;
        let answer = self.questions.sample(parameters).await;
        let answer = answer.map_err(|error| refused(error.to_string()))?;
        reread(answer).ok_or_else(|| ErrorData::internal_error("the answer is not a message", None))
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::default())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == TOO_LARGE {
            let text = format!("a request has at most {OWN_MESSAGE_BYTES_MAX} bytes");
            return Err(ErrorData::invalid_request(text, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None))
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let found = found(|| self.running.reporting(&progress.progress_token)).await;
        let Some(Some(call)) = found else { return };
        if let Some(sink) = &call.progress {
            let message = progress.message;
            let message =
                message.map(|text| cut(&self.questions.clean(&text), MESSAGE_BYTES_MAX).to_owned());
            sink.report(
                &call.call_id,
                Progress { done: progress.progress, total: progress.total, message },
            );
        }
    }

    async fn on_logging_message(
        &self,
        line: LoggingMessageNotificationParam,
        context: NotificationContext<RoleClient>,
    ) {
        let found = found(|| self.running.logging(context.extensions.get())).await;
        let Some(Some(call)) = found else { return };
        if let Some(sink) = &call.log {
            let text = line.data.as_str().map_or_else(|| line.data.to_string(), str::to_owned);
            let text = self.questions.clean(&text);
            sink.log(&call.call_id, level::from_wire(line.level), cut(&text, MESSAGE_BYTES_MAX));
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}
