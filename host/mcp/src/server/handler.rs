//! Handler of MCP requests. Each is answered from the catalog at its time.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use cofferdam_tool::ask::LogLevel;
use cofferdam_tool::{CallContext, Outcome, Output};
use parking_lot::Mutex;
use rmcp::model::{
    CacheScope, CallToolRequestMethod, CallToolRequestParams, CallToolResponse, CallToolResult,
    CancelTaskParams, ClientCapabilities, CompleteRequestParams, CompleteResult, CompletionInfo,
    ConstString, CreateTaskResult, CustomRequest, CustomResult, DiscoverResult, ErrorCode,
    GetPromptRequestMethod, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
    GetTaskParams, GetTaskResult, Implementation, InputResponses, JsonObject, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, MetaObject,
    PaginatedRequestParams, ReadResourceRequestMethod, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Reference, Resource, ResourceContents,
    ServerCapabilities, ServerConfig, SetLevelRequestMethod, SetLevelRequestParams,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::json;
use tokio_util::sync::DropGuard;

use super::caller::{Caller, is_modern, principal};
use super::calls::{self, ElicitationMode, RequestOutcome, ToolRequest};
use super::catalog::{Catalog, CatalogEntry};
use super::lines::CloseSignals;
use super::methods::{is_known, is_legacy};
use super::notify::{notify_connection, tell_subscription};
use super::page::page;
use super::principal::Principal;
use super::report::Forwarder;
use super::subscriptions;
use super::waiting::WaitOutcome;
use super::{ServerShared, answer, prompts, receipt, search};
use crate::level;

/// Maximum number of resources that are requested from one source.
const RESOURCES_MAX: usize = 1000;
/// Time that a client may cache a list. It is notified when a list changes.
const LIST_TTL_MS: u64 = 60_000;

/// Error message for calls that arrive while the server is stopping.
pub(crate) const STOPPING: &str = "the server is stopping and takes no new calls";

/// View of a server for one connection. Clones belong to the same connection.
#[derive(Clone)]
pub(crate) struct Handler {
    shared: Arc<ServerShared>,
    connection: Arc<ConnectionSettings>,
}

/// Settings that a client of a session-based revision has made for its connection.
pub(super) struct ConnectionSettings {
    log_level: Mutex<LogLevel>,
    pub(super) subscriptions: Mutex<BTreeSet<String>>,
    closing: CloseSignals,
    /// Ends the task that notifies the client, with the connection.
    pub(super) notifying: OnceLock<DropGuard>,
}

impl Handler {
    pub(crate) fn new(shared: Arc<ServerShared>, closing: CloseSignals) -> Self {
        let connection = ConnectionSettings {
            log_level: Mutex::new(LogLevel::Info),
            subscriptions: Mutex::default(),
            closing,
            notifying: OnceLock::new(),
        };
        Self { shared, connection: Arc::new(connection) }
    }

    /// Runs a tool for a request of any method that can ask back.
    async fn run(
        &self,
        catalog: Arc<Catalog>,
        entry: &CatalogEntry,
        what: RequestTarget,
        caller: &Arc<Caller>,
    ) -> Result<RequestOutcome, ErrorData> {
        if self.connection.closing.stop.is_cancelled() {
            return Err(ErrorData::internal_error(STOPPING, None));
        }
        if self.shared.options.only_as_task.contains(entry.definition.name.as_str())
            && !caller.capabilities().supports_tasks()
        {
            let needed = ClientCapabilities::builder().enable_tasks().build();
            return Err(ErrorData::missing_required_client_capability(needed));
        }
        let takes_tasks = what.method == CallToolRequestMethod::VALUE
            && entry.definition.annotations.long_running == Some(true)
            && caller.capabilities().supports_tasks();
        let (log_level, asked) = if caller.is_modern {
            let asked = ElicitationMode::ByResult { state: what.state, responses: what.responses };
            (caller.meta().log_level().map(level::from_wire), asked)
        } else {
            let log_level = *self.connection.log_level.lock();
            (Some(log_level), ElicitationMode::ByRequest)
        };
        let request = ToolRequest {
            catalog,
            entry,
            method: what.method,
            arguments: what.arguments,
            is_dry_run: caller.meta().get(receipt::DRY_RUN) == Some(&serde_json::Value::Bool(true)),
            idempotency_key: match what.method {
                CallToolRequestMethod::VALUE => caller.idempotency_key()?,
                _ => None,
            },
            caller,
            asked,
            reports: Forwarder::new(caller, log_level, &entry.wire).after(what.progress),
            takes_tasks,
        };
        self.shared.run(request).await
    }

    /// Handles `tools/call`: runs a tool, or searches for tools.
    async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = Arc::new(Caller::new(context));
        let catalog = self.shared.catalog(&caller.principal);
        let (mut name, mut arguments) = (request.name, request.arguments.unwrap_or_default());
        if self.shared.options.searches {
            match &*name {
                search::SEARCH => {
                    let found = search::search(&catalog, &caller.principal, &arguments);
                    return Ok(found.map_or_else(answer::error, answer::structured).into());
                }
                search::CALL => {
                    let inner = search::inner(arguments);
                    (name, arguments) = (inner.0.into(), inner.1);
                }
                _ => {}
            }
        }
        let WaitOutcome { catalog, progress } =
            self.shared.catalog_with(catalog, &name, &caller).await?;
        let Some(entry) = catalog.find(&name, &caller.principal) else {
            let missing = catalog.missing(&caller.principal);
            let mut result = answer::error(answer::unknown(&name, &missing));
            result.meta = self.response_meta(None, caller.is_modern);
            return Ok(result.into());
        };
        let what = RequestTarget {
            method: CallToolRequestMethod::VALUE,
            arguments,
            responses: request.input_responses,
            state: request.request_state,
            progress,
        };
        let span = tracing::info_span!(
            "execute_tool",
            gen_ai.tool.name = %entry.definition.name,
            mcp.request.id = %caller.request_id(),
            traceparent = caller.meta().get_traceparent(),
            tracestate = caller.meta().get_tracestate(),
        );
        let call = self.run(Arc::clone(&catalog), entry, what, &caller);
        let mut result: CallToolResult = match tracing::Instrument::instrument(call, span).await? {
            RequestOutcome::Asks(mut result) => {
                result.meta = self.response_meta(None, caller.is_modern);
                return Ok(result.into());
            }
            RequestOutcome::Task(task) => {
                let mut result = CreateTaskResult::new(task);
                result.meta = self.response_meta(None, caller.is_modern);
                return Ok(result.into());
            }
            RequestOutcome::NotApproved(reason) => calls::not_approved(&reason),
            RequestOutcome::Done(ended) => match *ended {
                Err(refused) => answer::refused(&refused),
                // A canceled request is not answered, so this is never read.
                Ok(completion) => self
                    .shared
                    .answers(&caller.principal)
                    .completion(completion, entry)
                    .ok_or_else(|| ErrorData::internal_error("cancelled", None))?,
            },
        };
        result.meta = self.response_meta(result.meta, caller.is_modern);
        Ok(result.into())
    }

    async fn prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let caller = Arc::new(Caller::new(context));
        let catalog = self.shared.catalog(&caller.principal);
        let offer = catalog.prompts.iter().find(|offer| offer.name == request.name);
        let entry = offer.and_then(|offer| catalog.renderer(&offer.tool, &caller.principal));
        let Some(entry) = entry else {
            let (arguments, call) = (request.arguments.unwrap_or_default(), self.passing(&caller));
            let passed =
                catalog.passed.prompt(&request.name, arguments, &caller.principal, &call).await;
            if let Some(passed) = passed {
                let mut result = passed?;
                result.meta = self.response_meta(None, caller.is_modern);
                return Ok(result.into());
            }
            return Err(ErrorData::invalid_params(
                format!("there is no prompt called '{}'", request.name),
                None,
            ));
        };
        let what = RequestTarget {
            method: GetPromptRequestMethod::VALUE,
            arguments: request.arguments.unwrap_or_default(),
            responses: request.input_responses,
            state: request.request_state,
            progress: None,
        };
        match self.render(entry, &catalog, what, &caller).await? {
            Err(asks) => Ok(asks.into()),
            Ok(output) => {
                let mut result = GetPromptResult::new(prompts::messages(output))
                    .with_description(entry.definition.description.clone());
                result.meta = self.response_meta(None, caller.is_modern);
                Ok(result.into())
            }
        }
    }

    async fn read(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = Arc::new(Caller::new(context));
        let catalog = self.shared.catalog(&caller.principal);
        let (uri, principal) = (request.uri, &caller.principal);
        let found = |contents: Vec<ResourceContents>, ttl: u64| {
            let mut result = ReadResourceResult::new(contents);
            (result.ttl_ms, result.cache_scope) = (Some(ttl), Some(CacheScope::Private));
            result.meta = self.response_meta(None, caller.is_modern);
            Ok(result.into())
        };
        if let Some(text) = self.shared.keep.get(principal.name(), &uri) {
            return found(vec![ResourceContents::text(&*text, uri)], LIST_TTL_MS);
        }
        for offer in &catalog.resources {
            let Some(arguments) = offer.arguments(&uri) else { continue };
            let Some(entry) = catalog.renderer(&offer.tool, principal) else { continue };
            let what = RequestTarget {
                method: ReadResourceRequestMethod::VALUE,
                arguments,
                responses: request.input_responses,
                state: request.request_state,
                progress: None,
            };
            return match self.render(entry, &catalog, what, &caller).await? {
                Err(asks) => Ok(asks.into()),
                Ok(output) => found(offer.contents(&uri, output), 0),
            };
        }
        for source in
            catalog.resource_sources.iter().filter(|source| principal.may_use(source.name()))
        {
            if uri.starts_with(source.prefix())
                && let Some((media_type, body)) = source.read(&uri).await
            {
                return found(vec![answer::contents(uri, media_type, body)], 0);
            }
        }
        if let Some(read) = catalog.passed.read(&uri, principal, &self.passing(&caller)).await {
            return found(read?.contents, 0);
        }
        let data = json!({"uri": uri});
        if caller.is_modern {
            return Err(ErrorData::invalid_params("there is no such resource", Some(data)));
        }
        Err(ErrorData::new(ErrorCode::RESOURCE_NOT_FOUND, "there is no such resource", Some(data)))
    }

    /// Returns the context of a request that is passed through to a remote server, without an
    /// asker.
    fn passing(&self, caller: &Caller) -> CallContext {
        CallContext {
            cancellation: caller.cancellation().clone(),
            ..CallContext::new(self.shared.next_call_id())
        }
    }

    /// Runs the tool that renders a prompt or a resource. Their results have no form for an error,
    /// so a failure becomes a protocol error.
    async fn render(
        &self,
        entry: &CatalogEntry,
        catalog: &Arc<Catalog>,
        what: RequestTarget,
        caller: &Arc<Caller>,
    ) -> Result<Result<Output, rmcp::model::InputRequiredResult>, ErrorData> {
        match self.run(Arc::clone(catalog), entry, what, caller).await? {
            RequestOutcome::Asks(result) => Ok(Err(result)),
            RequestOutcome::Done(ended) => match *ended {
                Err(refused) => Err(ErrorData::invalid_params(refused.to_string(), None)),
                Ok(completion) => match completion.outcome {
                    Outcome::Ok(output) => Ok(Ok(output)),
                    other => {
                        let text = other.shown().map(|shown| shown.text()).unwrap_or_default();
                        Err(ErrorData::internal_error(text, None))
                    }
                },
            },
            RequestOutcome::NotApproved(reason) => Err(ErrorData::invalid_request(reason, None)),
            RequestOutcome::Task(_) => {
                Err(ErrorData::internal_error("this request cannot become a task", None))
            }
        }
    }

    /// Returns the metadata of a response. Clients without a handshake learn the server from it.
    fn response_meta(&self, meta: Option<MetaObject>, is_modern: bool) -> Option<MetaObject> {
        if is_modern { Some(self.with_server_info(meta)) } else { meta }
    }

    fn with_server_info(&self, meta: Option<MetaObject>) -> MetaObject {
        let mut meta = meta.unwrap_or_default();
        meta.insert(
            "io.modelcontextprotocol/serverInfo".to_owned(),
            self.shared.server_info.clone(),
        );
        meta
    }
}

/// Parameters that requests of several methods have in common.
struct RequestTarget {
    method: &'static str,
    arguments: JsonObject,
    responses: Option<InputResponses>,
    state: Option<String>,
    /// Last progress that was sent for the request before the tool runs.
    progress: Option<f64>,
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let catalog = self.shared.main_catalog();
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_logging()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_tasks()
            .build();
        // A source that is still loading may add prompts.
        if catalog.has_prompts || catalog.is_loading() {
            self.shared.announced_prompts.store(true, Ordering::Relaxed);
            let with = ServerCapabilities::builder()
                .enable_prompts()
                .enable_prompts_list_changed()
                .enable_completions()
                .build();
            (capabilities.prompts, capabilities.completions) = (with.prompts, with.completions);
        }
        let mut info = ServerConfig::new(capabilities);
        let options = &self.shared.options;
        info.server_info = Implementation::new(options.name.clone(), options.version.clone())
            .with_title(options.title.clone());
        info.instructions.clone_from(&catalog.instructions);
        info
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        let result = DiscoverResult::from_server_info(versions, self.get_info());
        Ok(result.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let principal = principal(&context);
        let catalog = self.shared.listed_catalog(&principal).await;
        let size = self.shared.options.page_size;
        let (tools, next) = if self.shared.options.searches {
            let mut tools = search::tools(catalog.searchable(&principal).count());
            tools.extend(catalog.always_listed(&principal).map(|entry| entry.tool().clone()));
            page(tools, request, size)?
        } else {
            let (entries, next) = page(catalog.listed(&principal).collect(), request, size)?;
            (entries.into_iter().map(|entry| entry.tool().clone()).collect(), next)
        };
        let mut result = ListToolsResult::with_all_items(tools);
        (result.ttl_ms, result.cache_scope) = (Some(LIST_TTL_MS), Some(CacheScope::Private));
        result.next_cursor = next;
        result.meta = self.response_meta(None, is_modern(&context));
        Ok(result)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        // The transport uses the schema to compare headers with arguments.
        let principal = Principal::of_request()?;
        let catalog = self.shared.catalog(&principal);
        let entry = catalog.find(name, &principal)?;
        Some(Tool::new("", "", Arc::clone(&entry.tool().input_schema)))
    }

    // The SDK stores the future of a request in one that is sized for the largest of all methods,
    // and moves that several times before it runs; therefore large futures are boxed here.
    fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CallToolResponse, ErrorData>> + Send {
        Box::pin(self.call(request, context))
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let principal = principal(&context);
        let catalog = self.shared.listed_catalog(&principal).await;
        if !catalog.has_prompts && !self.shared.announced_prompts.load(Ordering::Relaxed) {
            return Err(ErrorData::method_not_found::<rmcp::model::ListPromptsRequestMethod>());
        }
        let prompt = |offer: &prompts::PromptOffer| {
            catalog.renderer(&offer.tool, &principal).map(|entry| prompts::prompt(offer, entry))
        };
        let own = catalog.prompts.iter().filter_map(prompt);
        let all = own.chain(catalog.passed.prompts(&principal)).collect();
        let (prompts, next) = page(all, request, self.shared.options.page_size)?;
        let mut result = ListPromptsResult::with_all_items(prompts);
        (result.ttl_ms, result.cache_scope) = (Some(LIST_TTL_MS), Some(CacheScope::Private));
        result.next_cursor = next;
        result.meta = self.response_meta(None, is_modern(&context));
        Ok(result)
    }

    fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<GetPromptResponse, ErrorData>> + Send {
        Box::pin(self.prompt(request, context))
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let principal = principal(&context);
        let catalog = self.shared.listed_catalog(&principal).await;
        let tool = match &request.r#ref {
            Reference::Prompt(prompt) => catalog
                .prompts
                .iter()
                .find(|offer| offer.name == prompt.name)
                .map(|offer| &offer.tool),
            Reference::Resource(resource) => catalog
                .resources
                .iter()
                .find(|offer| offer.uri == resource.uri)
                .map(|offer| &offer.tool),
            _ => None,
        };
        let Some(entry) = tool.and_then(|tool| catalog.renderer(tool, &principal)) else {
            return Err(ErrorData::invalid_params(
                "there is no such prompt or resource template",
                None,
            ));
        };
        let values = prompts::completions(
            &entry.definition,
            &request.argument.name,
            &request.argument.value,
        );
        let completion =
            CompletionInfo::new(values).map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(CompleteResult::new(completion))
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let principal = principal(&context);
        let catalog = self.shared.listed_catalog(&principal).await;
        let offers = catalog.resources.iter().filter(|offer| !offer.is_template());
        let mut all: Vec<Resource> = offers
            .filter_map(|offer| Some(offer.resource(catalog.renderer(&offer.tool, &principal)?)))
            .collect();
        for source in
            catalog.resource_sources.iter().filter(|source| principal.may_use(source.name()))
        {
            all.extend(source.list(RESOURCES_MAX).await.into_iter().map(|listed| {
                let mut resource = Resource::new(listed.uri, listed.name);
                resource.mime_type = listed.media_type;
                resource.size = listed.bytes;
                resource
            }));
        }
        all.extend(catalog.passed.resources(&principal));
        let (resources, next) = page(all, request, self.shared.options.page_size)?;
        let mut result = ListResourcesResult::with_all_items(resources);
        (result.ttl_ms, result.cache_scope) = (Some(LIST_TTL_MS), Some(CacheScope::Private));
        result.next_cursor = next;
        result.meta = self.response_meta(None, is_modern(&context));
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let principal = principal(&context);
        let catalog = self.shared.listed_catalog(&principal).await;
        let offers = catalog.resources.iter().filter(|offer| offer.is_template());
        let own = offers
            .filter_map(|offer| Some(offer.template(catalog.renderer(&offer.tool, &principal)?)));
        let all = own.chain(catalog.passed.templates(&principal)).collect();
        let (templates, next) = page(all, request, self.shared.options.page_size)?;
        let mut result = ListResourceTemplatesResult::with_all_items(templates);
        (result.ttl_ms, result.cache_scope) = (Some(LIST_TTL_MS), Some(CacheScope::Private));
        result.next_cursor = next;
        result.meta = self.response_meta(None, is_modern(&context));
        Ok(result)
    }

    fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ReadResourceResponse, ErrorData>> + Send {
        Box::pin(self.read(request, context))
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut subscriptions = self.connection.subscriptions.lock();
        subscriptions::add(&mut subscriptions, request.uri)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.connection.subscriptions.lock().remove(&request.uri);
        Ok(())
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if is_modern(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        let level = level::from_wire(request.level);
        *self.connection.log_level.lock() = level;
        Ok(())
    }

    /// Handles requests of unknown methods, and requests of known methods whose parameters could
    /// not be parsed.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if is_known(&request.method) && !(is_modern(&context) && is_legacy(&request.method)) {
            return Err(ErrorData::invalid_params(
                format!("malformed parameters of {}", request.method),
                None,
            ));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        notify_connection(self.shared.changes(), &self.connection, context.peer);
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(subscriptions::accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        tell_subscription(&self.shared, &context, &self.connection.closing.last).await;
        Ok(())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let (caller, task) = self.shared.polled_task(context, &request.task_id).await?;
        let mut result = GetTaskResult::new(task);
        result.meta = self.response_meta(None, caller.is_modern);
        Ok(result)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.shared.task_caller(context, &request.task_id).await?;
        let (id, responses) = (&request.task_id, request.input_responses);
        self.shared.tasks.answer(&caller.principal, id, responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.shared.task_caller(context, &request.task_id).await?;
        self.shared.tasks.cancel(&caller.principal, &request.task_id)
    }
}
