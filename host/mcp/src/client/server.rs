//! Remote server as a source of tools.

use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cofferdam_tool::invoke::HostValues;
use cofferdam_tool::label::{Label, StatedLabels};
use cofferdam_tool::origin::ToolOrigin;
use cofferdam_tool::record::{HostContact, ServerRequest};
use cofferdam_tool::redact::Redactor;
use cofferdam_tool::{
    CallContext, CallRecord, Completion, ErrorType, Outcome, ToolCall, ToolDefinition, ToolError,
    ToolName, ToolSource,
};
use parking_lot::RwLock;
use rmcp::model::{ProtocolVersion, SubscriptionFilter};
use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::connection::{Live, ServerConnection};
use super::limits::{DESCRIPTION_BYTES_MAX, RELOAD_SPACING, cut};
use super::oauth::{self, LoginTime};
use super::offer::{Kind, Offer};
use super::origin::origin_digest;
use super::settings::{ServerEndpoint, ServerSettings};
use super::{
    CallError, Calls, ConnectError, Item, ItemKind, Questions, RemoteItems, Resend, SamplingLimits,
    ServerListing, into_output, joined_meta,
};

/// Time between two attempts to subscribe to changes.
const LISTEN_AGAIN: Duration = Duration::from_secs(5);

/// Connected server. Dropping it closes the connection, and ends the process if there is one.
pub struct RemoteServer {
    inner: Arc<ServerState>,
    _stop: DropGuard,
}

struct ServerState {
    settings: ServerSettings,
    connection: Arc<ServerConnection>,
    calls: Calls,
    offer: RwLock<Arc<Offer>>,
    versions: watch::Sender<u64>,
    /// Instructions of the server.
    instructions: Option<String>,
    /// Instructions that the review has accepted.
    accepted_instructions: OnceLock<String>,
}

impl RemoteServer {
    /// Connects to a server and lists what it offers, at most for the time of
    /// [`ServerSettings::connect_wait`]. The time in which the user logs in does not count. A
    /// request for tokens goes on after that time, and stores them.
    ///
    /// # Errors
    /// [`ConnectError`]. The connection to an unusable server is closed and its process ended.
    pub async fn connect(settings: ServerSettings) -> Result<Self, ConnectError> {
        let (logins, wait) = (Arc::new(LoginTime::default()), settings.connect_wait);
        let connecting = Box::pin(Self::connect_with(settings, &logins));
        logins.within(wait, connecting).await.unwrap_or(Err(ConnectError::TooLate(wait)))
    }

    async fn connect_with(
        settings: ServerSettings,
        logins: &Arc<LoginTime>,
    ) -> Result<Self, ConnectError> {
        let redactor = settings.redactor.clone().filter(|redactor| !redactor.is_empty());
        let questions =
            Questions { sampling: SamplingLimits::new(settings.sampling.clone()), redactor };
        let questions = Arc::new(questions);
        let connection = ServerConnection::open(&settings, Arc::clone(&questions), logins).await?;
        let connection = Arc::new(connection);
        let info = connection.live().and_then(|live| live.server());
        let instructions = info.and_then(|info| info.instructions.clone());
        let instructions = instructions.map(|text| questions.clean(&text).into_owned());
        let inner = Arc::new(ServerState {
            calls: Calls {
                remote: Arc::clone(&connection) as _,
                tasks: settings.tasks,
                selection: settings.selection,
                questions,
                loads_tools: settings.loads_tools,
                resend: Resend::Always,
                wait: Some(settings.call_wait),
            },
            offer: RwLock::new(Arc::new(Offer::empty())),
            versions: watch::Sender::new(0),
            instructions: instructions.map(|text| cut(&text, DESCRIPTION_BYTES_MAX).to_owned()),
            accepted_instructions: OnceLock::new(),
            settings,
            connection,
        });
        inner.list().await?;
        let stop = CancellationToken::new();
        let changed = inner.connection.changed();
        spawn_until(
            &stop,
            listen(Arc::downgrade(&inner), inner.connection.numbers(), Arc::clone(&changed)),
        );
        spawn_until(&stop, reload(Arc::downgrade(&inner), changed));
        Ok(Self { inner, _stop: stop.drop_guard() })
    }

    /// Waits until no connection of this process requests tokens, at most for `wait`. A process
    /// that ends earlier loses the tokens, and the user has to log in again.
    pub async fn tokens_stored(wait: Duration) {
        oauth::finished(wait).await;
    }

    /// Returns a counter that increases with each reload of the server's tools, for callers that
    /// derive state from them.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.versions.subscribe()
    }

    /// Lists again what the server offers, so that it is reviewed again.
    ///
    /// # Errors
    /// [`ConnectError`] if the lists cannot be fetched. The offer then stays unchanged.
    pub async fn review_again(&self) -> Result<(), ConnectError> {
        self.inner.reload().await
    }

    /// Returns the items that the server lists in addition to its tools, as of the last load.
    #[must_use]
    pub fn remote_items(&self) -> Arc<RemoteItems> {
        Arc::clone(&self.inner.offer().passed)
    }

    /// Reads a resource of the server.
    ///
    /// # Errors
    /// [`CallError`], with a message that may be shown.
    pub async fn read_resource(&self, uri: &str, call: &CallContext) -> Result<Value, CallError> {
        let parameters = Map::from_iter([("uri".to_owned(), uri.into())]);
        self.inner.pass(uri, "resources/read", parameters, call).await
    }

    /// Gets a prompt of the server unchanged.
    ///
    /// # Errors
    /// [`CallError`], with a message that may be shown.
    pub async fn get_prompt(
        &self,
        prompt: &str,
        arguments: Map<String, Value>,
        call: &CallContext,
    ) -> Result<Value, CallError> {
        let parameters = [
            ("name".to_owned(), prompt.into()),
            ("arguments".to_owned(), Value::Object(arguments)),
        ];
        self.inner.pass(prompt, "prompts/get", Map::from_iter(parameters), call).await
    }

    /// Returns the protocol revision of the current connection.
    #[must_use]
    pub fn protocol_version(&self) -> Option<String> {
        let info = self.inner.connection.live()?.server()?;
        Some(info.protocol_version.as_str().to_owned())
    }
}

fn spawn_until(stop: &CancellationToken, work: impl Future<Output = ()> + Send + 'static) {
    let stop = stop.clone();
    tokio::spawn(async move { stop.run_until_cancelled(work).await });
}

/// Reloads the lists after each change, one reload at a time and at most one per
/// [`RELOAD_SPACING`].
async fn reload(server: Weak<ServerState>, changed: Arc<Notify>) {
    loop {
        changed.notified().await;
        let Some(inner) = server.upgrade() else { return };
        if let Err(error) = inner.reload().await {
            tracing::warn!(server = inner.settings.name, %error, "the tools stay as they were");
        }
        drop(inner);
        tokio::time::sleep(RELOAD_SPACING).await;
    }
}

/// Subscribes to changes on connections whose revision requires it (2026-07-28).
async fn listen(
    server: Weak<ServerState>,
    mut numbers: watch::Receiver<u64>,
    changed: Arc<Notify>,
) {
    loop {
        numbers.mark_unchanged();
        let live = server.upgrade().and_then(|inner| inner.connection.live());
        if let Some(live) = live.as_ref().filter(|live| announces_changes(live)) {
            tokio::select! {
                () = watch_changes(live, &changed) => {}
                another = numbers.changed() => if another.is_err() { return },
            }
            tokio::time::sleep(LISTEN_AGAIN).await;
        } else if numbers.changed().await.is_err() {
            return;
        }
        if server.strong_count() == 0 {
            return;
        }
    }
}

fn announces_changes(live: &Live) -> bool {
    live.server().is_some_and(|info| {
        let tools = info.capabilities.tools.as_ref().and_then(|tools| tools.list_changed);
        info.protocol_version >= ProtocolVersion::V_2026_07_28 && tools == Some(true)
    })
}

async fn watch_changes(live: &Live, changed: &Notify) {
    let filter = SubscriptionFilter::builder()
        .tools_list_changed()
        .prompts_list_changed()
        .resources_list_changed()
        .build();
    match live.peer().listen(filter).await {
        Ok(mut subscription) => {
            while let Ok(Some(_)) = subscription.next().await {
                changed.notify_one();
            }
        }
        Err(error) => tracing::debug!(%error, "changes of a server are not heard of"),
    }
}

impl ServerState {
    /// Lists again what the server offers, in the time that connecting may take.
    async fn reload(&self) -> Result<(), ConnectError> {
        let wait = self.settings.connect_wait;
        let listed = self.connection.logins().within(wait, Box::pin(self.list())).await;
        listed.unwrap_or(Err(ConnectError::TooLate(wait)))
    }

    async fn list(&self) -> Result<(), ConnectError> {
        let settings = &self.settings;
        let info = self.connection.live().and_then(|live| live.server());
        let capabilities = info.map(|info| info.capabilities.clone()).unwrap_or_default();
        let has_prompts = capabilities.prompts.is_some();
        let remote = self.connection.as_ref();
        let mut listing = ServerListing::fetch(remote, settings.loads_tools, has_prompts).await?;
        let passed = match capabilities.resources {
            Some(_) => RemoteItems::fetch(remote, self.redactor(), &mut listing.left_out).await,
            None => Ok(RemoteItems::default()),
        };
        // Tools are useful without resources.
        let passed = passed.unwrap_or_else(|error| {
            listing.left_out.push(format!("all resources: {error}"));
            RemoteItems::default()
        });
        let listing = match self.redactor() {
            Some(redactor) => listing.redacted(redactor),
            None => listing,
        };
        let offer = Offer::new(
            &settings.name,
            listing,
            &settings.admission,
            settings.selection,
            settings.loads_prompts,
        )?;
        let statements = offer.statements(self.instructions.clone(), &passed);
        let left_out =
            settings.review.as_ref().map(|review| review.left_out(&statements)).unwrap_or_default();
        if let Some(instructions) = statements.instructions.filter(|_| !left_out.instructions) {
            // Instructions do not change while the server is connected.
            let _ = self.accepted_instructions.set(instructions);
        }
        let offer = offer.without(&left_out, passed);
        *self.offer.write() = Arc::new(offer);
        self.versions.send_modify(|version| *version = version.saturating_add(1));
        Ok(())
    }

    /// Sends a request that is passed through, and removes secrets from the response.
    async fn pass(
        &self,
        what: &str,
        method: &'static str,
        parameters: Map<String, Value>,
        call: &CallContext,
    ) -> Result<Value, CallError> {
        let result = self.calls.forward_question(what, method, parameters, call).await;
        let Some(redactor) = self.redactor() else { return result };
        match result {
            Ok(value) => Ok(redactor.value(value)),
            Err(CallError::Protocol { code, message }) => {
                Err(CallError::Protocol { code, message: redactor.text(&message).into_owned() })
            }
            Err(error) => Err(error),
        }
    }

    fn redactor(&self) -> Option<&Redactor> {
        self.settings.redactor.as_deref().filter(|redactor| !redactor.is_empty())
    }

    fn offer(&self) -> Arc<Offer> {
        Arc::clone(&self.offer.read())
    }

    /// Makes a call, and records the arguments that were dropped.
    async fn call(
        &self,
        call: &ToolCall<'_>,
        context: &CallContext,
        record: &mut CallRecord,
    ) -> Result<Vec<Item>, CallError> {
        let offer = self.offer();
        let entry = offer.entry(&call.tool.name).ok_or(CallError::Gone)?;
        let none = HostValues::default();
        let host = context.host.as_deref().unwrap_or(&none);
        let arguments = call.arguments.value().clone();
        let mut parameters =
            Map::from_iter([("name".to_owned(), Value::from(entry.remote.as_str()))]);
        // What the program states about its trace comes before the span of the call.
        let span = context.trace.filter(|_| host.trace.is_none()).map(|span| {
            Map::from_iter([("traceparent".to_owned(), Value::from(span.to_string()))])
        });
        let trace = host.trace.as_ref().or(span.as_ref());
        if let Some(meta) = joined_meta(host.meta.as_ref(), trace, entry.meta.as_ref())? {
            parameters.insert("_meta".to_owned(), Value::Object(meta));
        }
        let calls = &self.calls;
        match entry.kind {
            Kind::Tool(support) => {
                let extras = &self.settings.extras;
                let forwarded =
                    offer.arguments.forward(&entry.remote, extras, arguments, &host.arguments);
                record.dropped = forwarded.dropped;
                parameters.insert("arguments".to_owned(), Value::Object(forwarded.arguments));
                let calls = Calls { resend: Resend::of(call.tool.annotations), ..calls.clone() };
                calls.call(&entry.remote, support, parameters, context).await
            }
            Kind::Prompt => {
                let declared =
                    call.tool.input.published().get("properties").and_then(Value::as_object);
                let is_declared =
                    |name: &str| declared.is_some_and(|names| names.contains_key(name));
                let (sent, dropped): (Vec<_>, Vec<_>) =
                    arguments.into_iter().partition(|(name, _)| is_declared(name));
                record.dropped = dropped.into_iter().map(|(name, _)| name).collect();
                // Prompts only take string arguments.
                let sent =
                    sent.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| {
                        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                        (name, Value::String(text))
                    });
                parameters.insert("arguments".to_owned(), Value::Object(sent.collect()));
                calls.prompt(&entry.remote, parameters, context).await
            }
        }
    }

    fn contact(&self) -> Option<HostContact> {
        let ServerEndpoint::Http(endpoint) = &self.settings.endpoint else { return None };
        let (host, port) = (endpoint.url().host_str()?, endpoint.url().port_or_known_default()?);
        Some(HostContact { host: host.to_owned(), port, requests: 1 })
    }
}

/// Returns the outcome of a successful call. If the tool declares an output schema, its value must
/// satisfy it (`RES-22`).
fn outcome(tool: &ToolDefinition, items: Vec<Item>) -> Outcome {
    let structured = items.iter().find_map(|item| match &item.kind {
        ItemKind::Structured(value) => Some(value),
        _ => None,
    });
    let broken = tool.output.as_ref().and_then(|schema| match structured {
        Some(value) => schema.validate(value).err(),
        None => Some("the result has no structured content".to_owned()),
    });
    match broken {
        Some(detail) => {
            Outcome::Error(ToolError::new(ErrorType::InvalidResult).with_detail(detail))
        }
        None => Outcome::Ok(into_output(items)),
    }
}

#[async_trait]
impl ToolSource for RemoteServer {
    fn name(&self) -> &str {
        &self.inner.settings.name
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.inner.offer().definitions)
    }

    fn instructions(&self) -> Option<&str> {
        self.inner.accepted_instructions.get().map(String::as_str)
    }

    fn needs_approval(&self, tool: &ToolName) -> bool {
        let entry = self.inner.offer().entry(tool);
        let remote = entry.as_ref().map_or(tool.as_str(), |entry| entry.remote.as_str());
        self.inner.settings.approval.requires(&[tool.as_str(), remote])
    }

    fn origin(&self, tool: &ToolName) -> ToolOrigin {
        let inner = &self.inner;
        let offer = inner.offer();
        let definition = offer.definitions.iter().find(|definition| definition.name == *tool);
        let digest =
            definition.map(|definition| origin_digest(&inner.settings.endpoint, definition));
        ToolOrigin::server(&inner.settings.name, &digest.unwrap_or_default())
    }

    fn labels(&self, tool: &ToolName) -> StatedLabels {
        self.inner.offer().entry(tool).map(|entry| entry.labels.clone()).unwrap_or_default()
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let started = Instant::now();
        let mut record = CallRecord::begun(context);
        let result = self.inner.call(&call, context, &mut record).await;
        let outcome = match result {
            Ok(items) => {
                // All items of a result share its `_meta`.
                let meta = items.first().and_then(|item| item.meta.as_ref());
                record.label = meta.and_then(Label::from_meta);
                outcome(call.tool, items)
            }
            Err(error) => error.into_outcome(),
        };
        record.tool = Some(call.tool.name.clone());
        record.phases.run = started.elapsed();
        record.server_request = self.inner.offer().entry(&call.tool.name).map(|entry| {
            let method = entry.kind.method().into();
            let transport = self.inner.settings.endpoint.transport().into();
            Box::new(ServerRequest { method, protocol: self.protocol_version(), transport })
        });
        if let Some(contact) = self.inner.contact() {
            record.add_host(contact);
        }
        let redactor = self.inner.redactor();
        let outcome = match redactor {
            Some(redactor) => redactor.outcome(outcome),
            None => outcome,
        };
        record.set_outcome(&outcome);
        if let Some(redactor) = redactor {
            redactor.record(&mut record);
        }
        Completion::new(outcome, record)
    }
}
