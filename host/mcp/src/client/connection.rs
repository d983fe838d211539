//! Connection that is reopened when it is lost.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_tool::CallContext;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::RwLock;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientRequest, CustomRequest,
    ListToolsRequest, MetaObject, PaginatedRequestParams, ProtocolVersion, RequestId,
    RequestMetaObject, ServerPeerInfo,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, PeerRequestOptions, RoleClient,
    RunningService, ServiceError, serve_client_with_lifecycle,
};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::transport::{StreamableHttpClientTransport, Transport};
use serde_json::{Map, Value};
use tokio::sync::{Mutex, Notify, watch};

use super::handler::Handler;
use super::http::HttpClient;
use super::inbound::Inbound;
use super::limits::cut;
use super::oauth::{Authorizer, LoginTime};
use super::question::Questions;
use super::remote::{ReconnectFailed, Remote, RequestError};
use super::running::ActiveRequests;
use super::settings::{Generation, HttpEndpoint, ServerEndpoint, ServerSettings};
use super::stdio::{StdioTransport, Unread};
use super::{ConnectError, raw};

/// Maximum number of times that one request may lead to new credentials, so that a server which
/// rejects all of them does not cause an endless loop.
const AUTHORIZATIONS_MAX: usize = 3;

/// Maximum number of bytes of an unknown revision that are shown.
const REVISION_BYTES_MAX: usize = 40;

/// Connection to one server, including the settings for reopening it.
pub(crate) struct ServerConnection {
    name: String,
    endpoint: ServerEndpoint,
    generation: Generation,
    questions: Arc<Questions>,
    may_elicit: bool,
    connect_wait: Duration,
    logins: Arc<LoginTime>,
    changed: Arc<Notify>,
    http: Option<Http>,
    live: RwLock<Option<Arc<Live>>>,
    /// Number of the current connection.
    numbers: watch::Sender<u64>,
    /// Held while a connection is opened, so that it is opened only once.
    opening: Mutex<()>,
}

/// State that outlives a single HTTP connection.
struct Http {
    client: HttpClient,
    authorizer: Option<Arc<Authorizer>>,
}

/// Single open connection.
pub(crate) struct Live {
    number: u64,
    running: Arc<ActiveRequests>,
    service: RunningService<RoleClient, Handler>,
}

impl Live {
    pub(crate) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    pub(crate) fn server(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer().peer_info()
    }
}

impl ServerConnection {
    /// Opens the first connection. The caller limits the time.
    pub(crate) async fn open(
        settings: &ServerSettings,
        questions: Arc<Questions>,
        logins: &Arc<LoginTime>,
    ) -> Result<Self, ConnectError> {
        let http = match &settings.endpoint {
            ServerEndpoint::Command(_) => None,
            ServerEndpoint::Http(endpoint) => {
                let client = HttpClient::new()?;
                let authorizer = match endpoint.oauth() {
                    Some(oauth) => {
                        let (oauth, logins) = (oauth.clone(), Arc::clone(logins));
                        let authorizer = Authorizer::new(endpoint, oauth, client.clone(), logins);
                        Some(Arc::new(authorizer.await?))
                    }
                    None => None,
                };
                Some(Http { client, authorizer })
            }
        };
        let connection = Self {
            name: settings.name.clone(),
            endpoint: settings.endpoint.clone(),
            generation: settings.generation,
            questions,
            may_elicit: settings.may_elicit,
            connect_wait: settings.connect_wait,
            logins: Arc::clone(logins),
            changed: Arc::default(),
            http,
            live: RwLock::default(),
            numbers: watch::Sender::new(0),
            opening: Mutex::default(),
        };
        connection.connect(1).await?;
        Ok(connection)
    }

    /// Returns a signal that fires when the server reports changed lists, and after each
    /// reconnection.
    pub(crate) fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }

    /// Returns the time in which the user has been logging in.
    pub(crate) fn logins(&self) -> &LoginTime {
        &self.logins
    }

    /// Returns a receiver of the current connection's number, which changes with each reconnection.
    pub(crate) fn numbers(&self) -> watch::Receiver<u64> {
        self.numbers.subscribe()
    }

    pub(crate) fn live(&self) -> Option<Arc<Live>> {
        self.live.read().clone()
    }

    async fn connect(&self, number: u64) -> Result<(), ConnectError> {
        let running = Arc::new(ActiveRequests::default());
        let first = match self.generation {
            Generation::Stateless => OpeningMode::Stateless,
            Generation::Handshake => OpeningMode::Handshake,
            Generation::Auto => OpeningMode::Either,
        };
        let service = match self.serve(&running, first).await {
            // Some old servers respond to the discovery request with arbitrary data, or hang up.
            Err(ConnectError::Handshake(error))
                if first == OpeningMode::Either && is_wrong_protocol(&error.0) =>
            {
                self.serve(&running, OpeningMode::Handshake).await?
            }
            other => other?,
        };
        let live = Arc::new(Live { number, running, service });
        let before = self.live.write().replace(live);
        drop(before);
        self.numbers.send_replace(number);
        Ok(())
    }

    async fn serve(
        &self,
        running: &Arc<ActiveRequests>,
        opening: OpeningMode,
    ) -> Result<Service, ConnectError> {
        let handler = || Handler {
            running: Arc::clone(running),
            questions: Arc::clone(&self.questions),
            may_elicit: self.may_elicit,
            changed: Arc::clone(&self.changed),
        };
        match (&self.endpoint, &self.http) {
            (ServerEndpoint::Http(endpoint), Some(http)) => {
                http.client.forget_stream();
                let bounds = Bounds { running: Arc::clone(running), server: self.name.clone() };
                let service = over_http(endpoint, http, handler, &bounds, opening).await?;
                http.client.stream_settled().await;
                Ok(service)
            }
            (ServerEndpoint::Command(command), _) => {
                let transport = StdioTransport::start(command, &self.name, Arc::clone(running))
                    .map_err(ConnectError::Start)?;
                let bounds = Bounds { running: Arc::clone(running), server: self.name.clone() };
                let transport = bounds.around(transport);
                handshake(handler(), transport, opening).await
            }
            (ServerEndpoint::Http(_), None) => Err(ConnectError::TooLate(self.connect_wait)),
        }
    }

    async fn once(
        &self,
        live: &Live,
        method: &'static str,
        mut parameters: Map<String, Value>,
        call: &CallContext,
    ) -> Result<Value, RequestFailure> {
        if live.running.is_closed() {
            return Err(RequestFailure::NotSent);
        }
        let mut options = PeerRequestOptions::no_options();
        if let Some(Value::Object(meta)) = parameters.remove("_meta") {
            options = options.with_meta(RequestMetaObject(MetaObject(meta)));
        }
        let peer = live.peer();
        let handle = peer.send_request_with_option(request(method, parameters), options).await;
        let handle = handle.map_err(|_| RequestFailure::NotSent)?;
        let id = handle.id.clone();
        live.running.add(id.clone(), handle.progress_token.clone(), call.clone());
        let mut guard = InFlight { running: &live.running, peer, id, is_answered: false };
        let result = tokio::select! {
            biased;
            result = handle.await_response() => result,
            () = live.running.closed() => Err(ServiceError::TransportClosed),
        };
        guard.is_answered = true;
        if live.running.is_flooded(&guard.id) {
            return Err(RequestFailure::Flooded);
        }
        Ok(result.map(raw::reveal)?)
    }
}

type Service = RunningService<RoleClient, Handler>;

/// Limits for unsolicited messages of the server on one connection.
struct Bounds {
    running: Arc<ActiveRequests>,
    server: String,
}

impl Bounds {
    fn around<T>(&self, transport: T) -> Inbound<T> {
        Inbound { transport, running: Arc::clone(&self.running), server: self.server.clone() }
    }
}

/// Reason why a request has no result.
enum RequestFailure {
    Service(ServiceError),
    /// The connection was lost before the request was sent.
    NotSent,
    /// The server sent too many requests while it worked on this one.
    Flooded,
}

impl From<ServiceError> for RequestFailure {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}

/// Opens a session of MCP.
async fn handshake(
    handler: Handler,
    transport: impl Transport<RoleClient> + 'static,
    opening: OpeningMode,
) -> Result<Service, ConnectError> {
    // A large future that is only needed once.
    let serving = Box::pin(serve_client_with_lifecycle(handler, transport, opening.lifecycle()));
    let service = serving.await?;
    let revision = service.peer().peer_info().map(|info| info.protocol_version.clone());
    match revision.filter(|revision| !ProtocolVersion::KNOWN_VERSIONS.contains(revision)) {
        Some(unknown) => {
            let found = cut(unknown.as_str(), REVISION_BYTES_MAX).escape_debug().to_string();
            Err(ConnectError::UnknownRevision { found })
        }
        None => Ok(service),
    }
}

async fn over_http(
    endpoint: &HttpEndpoint,
    http: &Http,
    handler: impl Fn() -> Handler,
    bounds: &Bounds,
    opening: OpeningMode,
) -> Result<Service, ConnectError> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(endpoint.url().as_str());
    config.custom_headers = endpoint.headers().collect();
    // The SDK would neither check the revision of the new session nor list its tools.
    config.reinit_on_expired_session = false;
    let Some(authorizer) = &http.authorizer else {
        let transport = StreamableHttpClientTransport::with_client(http.client.clone(), config);
        let transport = bounds.around(transport);
        let served = handshake(handler(), transport, opening).await;
        return served.map_err(|error| match error {
            ConnectError::Handshake(error) if error.0.auth_challenge().is_some() => {
                ConnectError::NeedsAuthorization
            }
            other => other,
        });
    };
    for _ in 0..AUTHORIZATIONS_MAX {
        authorizer.refresh().await?;
        let transport =
            StreamableHttpClientTransport::with_client(authorizer.client(), config.clone());
        let transport = bounds.around(transport);
        match handshake(handler(), transport, opening).await {
            Err(ConnectError::Handshake(error)) => match error.0.auth_challenge() {
                Some(challenge) => authorizer.authorize(challenge).await?,
                None => return Err(ConnectError::Handshake(error)),
            },
            other => return other,
        }
    }
    Err(ConnectError::Unauthorized)
}

/// Handshake that opens a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpeningMode {
    Stateless,
    Handshake,
    Either,
}

impl OpeningMode {
    fn lifecycle(self) -> ClientLifecycleMode {
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        match self {
            Self::Stateless => ClientLifecycleMode::Discover { preferred_versions },
            Self::Handshake => ClientLifecycleMode::Initialize,
            Self::Either => ClientLifecycleMode::Auto {
                preferred_versions,
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            },
        }
    }
}

/// Returns true if the error may be due to a server that does not understand the discovery request.
fn is_wrong_protocol(error: &ClientInitializeError) -> bool {
    matches!(
        error,
        ClientInitializeError::ExpectedInitResult(_)
            | ClientInitializeError::ConnectionClosed(_)
            | ClientInitializeError::ConflictInitResponseId(..)
            | ClientInitializeError::UncorrelatedErrorResponse { .. }
    )
}

/// Builds the request as the SDK sends it. `tools/list` has its own type, because the transport
/// parses its response too.
fn request(method: &'static str, mut parameters: Map<String, Value>) -> ClientRequest {
    if method == "tools/list" {
        let cursor =
            parameters.remove("cursor").and_then(|cursor| cursor.as_str().map(str::to_owned));
        let parameters =
            cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        return ClientRequest::ListToolsRequest(ListToolsRequest {
            params: parameters,
            ..ListToolsRequest::default()
        });
    }
    ClientRequest::CustomRequest(CustomRequest::new(method, Some(Value::Object(parameters))))
}

/// Request without a response so far. If it is dropped in this state, the server is notified that
/// it is canceled.
struct InFlight<'a> {
    running: &'a ActiveRequests,
    peer: &'a Peer<RoleClient>,
    id: RequestId,
    is_answered: bool,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.running.remove(&self.id);
        if self.is_answered {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (peer, id) = (self.peer.clone(), self.id.clone());
        runtime.spawn(async move {
            let reason = Some("the caller gave up".to_owned());
            let cancelled =
                CancelledNotification::new(CancelledNotificationParam::new(Some(id), reason));
            if let Err(error) = peer.send_notification(cancelled.into()).await {
                tracing::debug!(%error, "a cancellation was not sent");
            }
        });
    }
}

/// Returns the typed error of the HTTP transport, if there is one.
fn http_error(error: &ServiceError) -> Option<&StreamableHttpError<reqwest::Error>> {
    match error {
        ServiceError::TransportSend(error) => error.error.downcast_ref(),
        _ => None,
    }
}

/// Returns true if a server on a pipe does not read its input.
fn is_unread(error: &ServiceError) -> bool {
    let ServiceError::TransportSend(error) = error else { return false };
    let error = error.error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    error.is_some_and(|error| error.is::<Unread>())
}

fn classified(error: ServiceError, connection: u64) -> RequestError {
    let is_lost = match http_error(&error) {
        Some(StreamableHttpError::Client(error)) => {
            error.is_connect() || error.is_request() || error.is_body() || error.is_decode()
        }
        Some(
            StreamableHttpError::SessionExpired
            | StreamableHttpError::UnexpectedEndOfStream
            | StreamableHttpError::TransportChannelClosed
            | StreamableHttpError::Sse(_)
            | StreamableHttpError::Io(_),
        ) => true,
        Some(_) => false,
        None if is_unread(&error) => return RequestError::Unread,
        // A pipe that cannot be written to is closed.
        None => matches!(error, ServiceError::TransportClosed | ServiceError::TransportSend(_)),
    };
    // A server that does not know the session has done nothing, and a line without its end in a
    // closed pipe is no request.
    let is_sent = match http_error(&error) {
        Some(StreamableHttpError::Client(error)) => !error.is_connect(),
        Some(StreamableHttpError::SessionExpired) => false,
        Some(_) => true,
        None => !matches!(error, ServiceError::TransportSend(_)),
    };
    match error {
        _ if is_lost => RequestError::Lost { connection, is_sent },
        ServiceError::McpError(error) => RequestError::Protocol {
            code: i64::from(error.code.0),
            message: error.message.into_owned(),
            connection,
        },
        // The message of the SDK names types of this crate.
        ServiceError::TransportSend(error) => RequestError::Other(error.error.to_string()),
        other => RequestError::Other(other.to_string()),
    }
}

// The futures are boxed in functions of their own because the compiler takes seconds to check them
// for `Send` under the lifetime bounds of `async_trait`.
impl ServerConnection {
    /// Sends a request, again after each time that the server asked for other credentials.
    fn send<'a>(
        &'a self,
        method: &'static str,
        parameters: Map<String, Value>,
        call: &'a CallContext,
    ) -> BoxFuture<'a, Result<Value, RequestError>> {
        let sending = async move {
            let Some(live) = self.live() else {
                return Err(RequestError::Lost { connection: 0, is_sent: false });
            };
            let authorizer = self.http.as_ref().and_then(|http| http.authorizer.as_ref());
            for _ in 0..AUTHORIZATIONS_MAX {
                let error = match self.once(&live, method, parameters.clone(), call).await {
                    Ok(result) => return Ok(result),
                    Err(RequestFailure::Service(error)) => error,
                    Err(RequestFailure::NotSent) => {
                        let connection = live.number;
                        return Err(RequestError::Lost { connection, is_sent: false });
                    }
                    Err(RequestFailure::Flooded) => return Err(RequestError::Flooded),
                };
                let challenge = http_error(&error).and_then(StreamableHttpError::auth_challenge);
                let (Some(challenge), Some(authorizer)) = (challenge, authorizer) else {
                    return Err(classified(error, live.number));
                };
                // The request has not been executed: servers check credentials first.
                let authorized = authorizer.authorize(challenge).await;
                authorized.map_err(|error| RequestError::Other(error.to_string()))?;
            }
            Err(RequestError::Other("the server rejects every authorization".to_owned()))
        };
        sending.boxed()
    }

    /// Connects again unless another request has done so.
    fn reopen(&self, lost: u64) -> BoxFuture<'_, Result<(), ReconnectFailed>> {
        let opening = async move {
            let _opening = self.opening.lock().await;
            let number = self.live().map_or(0, |live| live.number);
            if number > lost {
                return Ok(());
            }
            let (wait, connecting) = (self.connect_wait, self.connect(number.saturating_add(1)));
            let connected = self.logins.within(wait, Box::pin(connecting)).await;
            let connected = connected.unwrap_or(Err(ConnectError::TooLate(wait)));
            connected.map_err(|error| ReconnectFailed(error.to_string()))?;
            self.changed.notify_one();
            Ok(())
        };
        opening.boxed()
    }
}

#[async_trait]
impl Remote for ServerConnection {
    async fn request(
        &self,
        method: &'static str,
        parameters: Map<String, Value>,
        call: &CallContext,
    ) -> Result<Value, RequestError> {
        self.send(method, parameters, call).await
    }

    async fn reconnect(&self, lost: u64) -> Result<(), ReconnectFailed> {
        self.reopen(lost).await
    }
}
