//! `wasi:http` for guests: the runtime's resources, with our own policy and client behind them.
//!
//! A redirect is returned as a response; a guest that follows one sends a new request, which is
//! checked like the first. The guest learns only the error code of a refusal; the record contains
//! the reason and a remedy.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_network::{
    Allowance, Client, InvalidTarget, NetworkError, NetworkStage, Timeouts, admit,
    is_reserved_header,
};
use cofferdam_tool::CallRecord;
use http_body_util::BodyExt;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi_http::p2::bindings::http::types::{
    DnsErrorPayload, ErrorCode, TlsAlertReceivedPayload,
};
use wasmtime_wasi_http::{
    Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView,
    WasiHttpHooks, WasiHttpView,
};

use super::Network;
use super::ledger::TrafficLedger;
use crate::Grants;
use crate::host_api::CallState;
use crate::host_api::PluginContext;
use crate::recording::{CallRecorder, RequestTape, played_response};

/// Name of the interface in the runtime. The linker matches a guest's own patch version of 0.2 with
/// it.
const TYPES: &str = "wasi:http/types@0.2.12";
/// Maximum size of one set of header fields that a guest builds, with the host's overhead, in
/// bytes.
const FIELDS_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of bytes of a body that a guest writes in one chunk. Two chunks of each body may
/// be queued in the host.
const BODY_PART_BYTES_MAX: usize = 64 * 1024;

/// HTTP state of one call.
pub(super) struct Http {
    ctx: WasiHttpCtx,
    hooks: Hooks,
}

/// Client, grants and allowance of one call's requests.
struct Hooks {
    client: Client,
    grants: Arc<Grants>,
    allowance: Allowance,
    ledger: TrafficLedger,
    recorder: Option<Arc<CallRecorder>>,
}

type Answer = Result<(http::Response<WasiBody>, Worker), Error>;
/// Future that the runtime would run along with a response. Ours is driven by its own task.
type Worker = Box<dyn Future<Output = Result<(), Error>> + Send>;

impl Http {
    fn new(
        network: &Network,
        plugin: &PluginContext,
        recorder: Option<&Arc<CallRecorder>>,
    ) -> Self {
        let mut ctx = WasiHttpCtx::new();
        ctx.set_field_size_limit(FIELDS_BYTES_MAX);
        let allowance = Allowance::new(
            network.requests_max,
            network.sent_bytes_max,
            network.received_bytes_max,
        );
        let (client, grants) = (plugin.client.clone(), Arc::clone(&plugin.grants));
        let (ledger, recorder) = (TrafficLedger::default(), recorder.cloned());
        Self { ctx, hooks: Hooks { client, grants, allowance, ledger, recorder } }
    }

    pub(super) fn report(&self, record: &mut CallRecord) {
        self.hooks.ledger.report(record);
        record.http_sent_bytes = self.hooks.allowance.sent_bytes();
        record.http_received_bytes = self.hooks.allowance.received_bytes();
    }
}

impl Network {
    fn http(&mut self, plugin: &PluginContext, recorder: Option<&Arc<CallRecorder>>) -> &mut Http {
        let made = self.http.take().unwrap_or_else(|| Box::new(Http::new(self, plugin, recorder)));
        self.http.insert(made)
    }
}

impl WasiHttpView for CallState {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        let http = self.network.http(&self.plugin, self.recorder.as_ref());
        WasiHttpCtxView { hooks: &mut http.hooks, table: &mut self.resources, ctx: &mut http.ctx }
    }
}

impl WasiHttpHooks for Hooks {
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::new(is_reserved_header)
    }

    fn is_forbidden_header(&mut self, name: &http::HeaderName) -> bool {
        is_reserved_header(name)
    }

    fn set_host_header(&mut self) -> bool {
        // The client sets the header from the URL that was checked.
        false
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        BODY_PART_BYTES_MAX
    }

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _received: Worker,
    ) -> Box<dyn Future<Output = Answer> + Send> {
        let secret = |name: &str| self.grants.secrets.get(name).cloned();
        let playback = self.recorder.as_ref().and_then(|recorder| recorder.playback());
        let played = playback.map(|_| (request.method().to_string(), request.uri().to_string()));
        let (request, tape) = match &self.recorder {
            Some(recorder) => RequestTape::start(recorder, request),
            None => (request, None),
        };
        let admitted = match admit(&self.grants.http, secret, request) {
            Ok(admitted) => admitted,
            Err(error) => {
                tape.into_iter().for_each(RequestTape::forget);
                let code = self.ledger.code(&error);
                return Box::new(async move { Err(code.into()) });
            }
        };
        self.ledger.contact(admitted.host(), admitted.port());
        if let (Some(playback), Some((method, url))) = (playback, played) {
            // Nothing of the network is there to refuse them again.
            playback.network_refusals().for_each(|refusal| self.ledger.add(refusal.clone()));
            let (body, allowance) = (admitted.into_body(), self.allowance.clone());
            let answer = played_response(playback, &method, &url, body, allowance);
            return Box::new(async move { ended(tape.as_ref(), answer.await) });
        }
        let (client, allowance, ledger) =
            (self.client.clone(), self.allowance.clone(), self.ledger.clone());
        Box::new(async move {
            let answer =
                client.send(admitted, &allowance, &timeouts(options.unwrap_or_default())).await;
            let answer = answer.map_err(|error| ledger.code(&error)).map(|answer| {
                answer.map(|body| {
                    body.map_err(move |error| ledger.code(&error).into()).boxed_unsync()
                })
            });
            ended(tape.as_ref(), answer)
        })
    }
}

/// Records the response if there is a recording, and returns it.
fn ended(
    tape: Option<&RequestTape>,
    answer: Result<http::Response<WasiBody>, ErrorCode>,
) -> Answer {
    let answer = match (tape, answer) {
        (None, answer) => answer?,
        (Some(tape), Ok(answer)) => tape.answer(answer),
        (Some(tape), Err(code)) => {
            tape.fail(&code);
            return Err(code.into());
        }
    };
    Ok((answer, Box::new(async { Ok(()) }) as Worker))
}

impl TrafficLedger {
    /// Records an error and converts it to the guest's error code.
    fn code(&self, error: &NetworkError) -> ErrorCode {
        self.note(error);
        code(error)
    }
}

/// Returns the timeouts that the guest asks for. The client decides about the others, and about the
/// maximum.
fn timeouts(options: RequestOptions) -> Timeouts {
    Timeouts {
        connect: options.connect_timeout.unwrap_or(Duration::MAX),
        first_byte: options.first_byte_timeout.unwrap_or(Duration::MAX),
        between_bytes: options.between_bytes_timeout.unwrap_or(Duration::MAX),
    }
}

fn code(error: &NetworkError) -> ErrorCode {
    use NetworkError as E;
    match error {
        E::Target(InvalidTarget::Method) => ErrorCode::HttpRequestMethodInvalid,
        E::Target(_) => ErrorCode::HttpRequestUriInvalid,
        E::Denied { .. } | E::ReservedHeader(_) => ErrorCode::HttpRequestDenied,
        E::NoSecret { .. } | E::BadSecret { .. } => ErrorCode::ConfigurationError,
        E::Lookup(_) | E::NoAddress => {
            ErrorCode::DnsError(DnsErrorPayload { rcode: None, info_code: None })
        }
        E::AddressRefused { .. } => ErrorCode::DestinationIpProhibited,
        E::Connect(cause) => match cause.kind() {
            io::ErrorKind::ConnectionRefused => ErrorCode::ConnectionRefused,
            io::ErrorKind::TimedOut => ErrorCode::ConnectionTimeout,
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
                ErrorCode::DestinationIpUnroutable
            }
            _ => ErrorCode::DestinationUnavailable,
        },
        E::Certificate(_) => ErrorCode::TlsCertificateError,
        E::TlsAlert(_) => ErrorCode::TlsAlertReceived(TlsAlertReceivedPayload {
            alert_id: None,
            alert_message: None,
        }),
        E::Tls(_) => ErrorCode::TlsProtocolError,
        E::Timeout(NetworkStage::Lookup) => ErrorCode::DnsTimeout,
        E::Timeout(NetworkStage::Connect | NetworkStage::Tls) => ErrorCode::ConnectionTimeout,
        E::Timeout(_) => ErrorCode::ConnectionReadTimeout,
        E::SentLimit(max) => ErrorCode::HttpRequestBodySize(Some(*max)),
        E::ReceivedLimit(max) => ErrorCode::HttpResponseBodySize(Some(*max)),
        E::HeadLimit(max) => ErrorCode::HttpResponseHeaderSectionSize(u32::try_from(*max).ok()),
        E::TooManyRequests => ErrorCode::ConnectionLimitReached,
        E::Incomplete => ErrorCode::HttpResponseIncomplete,
        E::Upgrade => ErrorCode::HttpUpgradeFailed,
        _ => ErrorCode::HttpProtocolError,
    }
}

/// Lets a guest ask why a body ended: the runtime stores the cause in a form that its own function
/// does not recognize.
pub(crate) fn explain_body_errors(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    linker.instance(TYPES)?.func_wrap(
        "http-error-code",
        |mut store, (error,): (Resource<wasmtime::Error>,)| {
            let view = WasiHttpView::http(store.data_mut());
            let error = view.table.get(&error)?;
            Ok((error.downcast_ref().and_then(code_of_body),))
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

/// Returns the codes of [`code`] that a body can end with.
fn code_of_body(error: &Error) -> Option<ErrorCode> {
    match error {
        Error::HttpRequestBodySize(max) => Some(ErrorCode::HttpRequestBodySize(*max)),
        Error::HttpResponseBodySize(max) => Some(ErrorCode::HttpResponseBodySize(*max)),
        Error::ConnectionReadTimeout => Some(ErrorCode::ConnectionReadTimeout),
        Error::HttpResponseIncomplete => Some(ErrorCode::HttpResponseIncomplete),
        Error::HttpProtocolError => Some(ErrorCode::HttpProtocolError),
        _ => None,
    }
}
