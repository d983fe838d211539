//! Requests: checks, login, and the page of each path.
//!
//! A request passes these steps in order: the checks of the guard, the assets, the login, and the
//! cookie. Only then is its path looked at.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::answer::{self, PageBody};
use crate::error::PageError;
use crate::inspector::InspectorState;
use crate::live::EventBody;
use crate::login::Browser;
use crate::prompts::PageAnswer;
use crate::query::PageQuery;
use crate::replay::{ReplayAnswer, ReplayOrder};
use crate::trial::Trial;
use crate::{assets, guard, live_run, views};

/// Header that only scripts of the own pages can send.
const OWN_HEADER: HeaderName = HeaderName::from_static("x-cofferdam");
/// Value of that header in a login.
const LOGIN: &[u8] = b"login";
/// Path of the login.
const SESSION_PATH: &str = "/session";
/// Path of calls that pages make.
const TRIAL_PATH: &str = "/try";
/// Path of replays of recorded calls.
const REPLAY_PATH: &str = "/replay";
/// Maximum bytes of the body of a call: the arguments as a string.
const TRIAL_BYTES_MAX: usize = 4 << 20;
/// Path of answers to prompts.
const ANSWER_PATH: &str = "/answer";
/// Maximum bytes of the body of an answer: a form as a string.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Maximum bytes of the body of a replay: two ids.
const REPLAY_BYTES_MAX: usize = 1024;
/// Maximum bytes of the body of a login.
const LOGIN_BYTES_MAX: usize = 1024;
/// Message to a page if [`InspectorState::trials`] has no permit left.
const BUSY: &str = "too many calls of pages are running";
/// Maximum time to receive the body of a request.
const BODY_TIME_MAX: Duration = Duration::from_secs(15);

/// Body of a login.
#[derive(Deserialize)]
struct LoginBody {
    key: String,
}

/// Answers a request.
pub(crate) async fn answer(
    state: &Arc<InspectorState>,
    request: Request<Incoming>,
) -> Response<PageBody> {
    let (parts, body) = request.into_parts();
    let mut response = match state.guard.check(&parts) {
        Err(foreign) => answer::message(StatusCode::FORBIDDEN, &foreign.to_string()),
        Ok(()) => route(state, &parts, body).await,
    };
    answer::confine(&mut response);
    response
}

async fn route(state: &Arc<InspectorState>, parts: &Parts, body: Incoming) -> Response<PageBody> {
    let path = parts.uri.path();
    let is_get = guard::only_reads(&parts.method);
    if is_get && let Some(asset) = assets::find(path) {
        return answer::asset(asset);
    }
    if parts.method == Method::POST && path == SESSION_PATH {
        return log_in(state, parts, body).await;
    }
    let Some(browser) = state.logins.browser(&parts.headers) else {
        return match is_get {
            true => answer::page(StatusCode::OK, views::login::page()),
            false => answer::message(StatusCode::UNAUTHORIZED, "expected a browser that logged in"),
        };
    };
    if parts.method == Method::POST && path == TRIAL_PATH {
        return call(state, &browser, parts, body).await;
    }
    if parts.method == Method::POST && path == ANSWER_PATH {
        return answer_prompt(state, &browser, parts, body).await;
    }
    if parts.method == Method::POST && path == REPLAY_PATH {
        return replay(state, &browser, parts, body).await;
    }
    if !is_get {
        return answer::message(StatusCode::METHOD_NOT_ALLOWED, "expected GET");
    }
    let query = PageQuery::parse(parts.uri.query().unwrap_or_default());
    if path == "/live/prompts" {
        return live_prompts(state);
    }
    if path == "/live/run" {
        return live_run(state, &query).await;
    }
    if path == "/live" {
        return live(state, parts, &query);
    }
    read(state, browser, path.to_owned(), query).await
}

/// Exchanges a key for a cookie.
async fn log_in(state: &InspectorState, parts: &Parts, body: Incoming) -> Response<PageBody> {
    if own_header(parts) != Some(LOGIN) || !is_json(parts) {
        return answer::message(StatusCode::FORBIDDEN, "expected a login of the own page");
    }
    let LoginBody { key } = match json_body(body, LOGIN_BYTES_MAX, "a key").await {
        Ok(body) => body,
        Err(response) => return response,
    };
    let cookie = match state.logins.log_in(&key) {
        Ok(Some(cookie)) => HeaderValue::from_str(&cookie).ok(),
        Ok(None) => None,
        Err(error) => {
            return answer::message(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string());
        }
    };
    let Some(cookie) = cookie else {
        return answer::message(StatusCode::FORBIDDEN, "the key was used, or is too old");
    };
    let mut response = answer::message(StatusCode::OK, "logged in");
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    response
}

/// Calls a tool for a page.
async fn call(
    state: &InspectorState,
    browser: &Browser,
    parts: &Parts,
    body: Incoming,
) -> Response<PageBody> {
    let Some(workbench) = &state.options.workbench else {
        return answer::message(StatusCode::NOT_FOUND, "this inspector calls no tools");
    };
    if !is_of_own_page(browser, parts) {
        return answer::message(StatusCode::FORBIDDEN, "expected a call of the own page");
    }
    let trial: Trial = match json_body(body, TRIAL_BYTES_MAX, "a tool and its arguments").await {
        Ok(body) => body,
        Err(response) => return response,
    };
    let Ok(_permit) = state.trials.try_acquire() else {
        return answer::message(StatusCode::SERVICE_UNAVAILABLE, BUSY);
    };
    let result = trial.run(workbench).await;
    json_answer(StatusCode::OK, &result)
}

/// Answers a prompt for a page.
async fn answer_prompt(
    state: &InspectorState,
    browser: &Browser,
    parts: &Parts,
    body: Incoming,
) -> Response<PageBody> {
    let Some(feed) = &state.prompts else {
        return answer::message(StatusCode::NOT_FOUND, "this inspector has no prompts");
    };
    if !is_of_own_page(browser, parts) {
        return answer::message(StatusCode::FORBIDDEN, "expected an answer of the own page");
    }
    if !feed.prompts.accepts_answers() {
        let message = "prompts can only be seen here; start the host with `--inspector=approve`";
        return answer::message(StatusCode::FORBIDDEN, message);
    }
    let answered: PageAnswer = match json_body(body, ANSWER_BYTES_MAX, "an id and an answer").await
    {
        Ok(body) => body,
        Err(response) => return response,
    };
    let (status, effect) = feed.answer(answered);
    json_answer(status, &effect)
}

/// Runs a recorded call again for a page.
async fn replay(
    state: &Arc<InspectorState>,
    browser: &Browser,
    parts: &Parts,
    body: Incoming,
) -> Response<PageBody> {
    let Some(replayer) = &state.options.replayer else {
        return answer::message(StatusCode::NOT_FOUND, "this inspector replays no calls");
    };
    if !is_of_own_page(browser, parts) {
        return answer::message(StatusCode::FORBIDDEN, "expected a replay of the own page");
    }
    let order: ReplayOrder = match json_body(body, REPLAY_BYTES_MAX, "a call and a component").await
    {
        Ok(body) => body,
        Err(response) => return response,
    };
    let Ok(_permit) = state.trials.try_acquire() else {
        return answer::message(StatusCode::SERVICE_UNAVAILABLE, BUSY);
    };
    let source = Arc::clone(&state.source);
    let reading =
        tokio::task::spawn_blocking(move || order.read(source.log()?.ok_or(PageError::NotFound)?));
    let result = match reading.await {
        Ok(Ok((recording, component))) => replayer.replay(recording, component).await,
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("reading the log ended with a bug".to_owned()),
    };
    json_answer(StatusCode::OK, &ReplayAnswer::new(result))
}

/// Returns whether a script of the page that this browser has sent the request.
fn is_of_own_page(browser: &Browser, parts: &Parts) -> bool {
    own_header(parts).is_some_and(|token| browser.is_own_token(token)) && is_json(parts)
}

fn own_header(parts: &Parts) -> Option<&[u8]> {
    parts.headers.get(OWN_HEADER).map(HeaderValue::as_bytes)
}

/// Returns whether a request has a content type that no form of another page can have.
fn is_json(parts: &Parts) -> bool {
    parts.headers.get(header::CONTENT_TYPE).is_some_and(|value| value == "application/json")
}

/// Receives a body that is JSON, or returns the answer to one that is too long, too late, or not
/// what is `expected`.
async fn json_body<T: DeserializeOwned>(
    body: Incoming,
    bytes_max: usize,
    expected: &str,
) -> Result<T, Response<PageBody>> {
    let body = Limited::new(body, bytes_max).collect();
    let Ok(received) = tokio::time::timeout(BODY_TIME_MAX, body).await else {
        return Err(answer::message(StatusCode::REQUEST_TIMEOUT, "the body took too long"));
    };
    let body = received.map_err(|error| match error.is::<LengthLimitError>() {
        true => {
            let message = format!("expected at most {bytes_max} bytes");
            answer::message(StatusCode::PAYLOAD_TOO_LARGE, &message)
        }
        false => answer::message(StatusCode::BAD_REQUEST, "the body ended early"),
    })?;
    serde_json::from_slice(&body.to_bytes())
        .map_err(|_| answer::message(StatusCode::BAD_REQUEST, &format!("expected {expected}")))
}

fn json_answer(status: StatusCode, value: &impl Serialize) -> Response<PageBody> {
    let json = serde_json::to_string(value).unwrap_or_default();
    answer::text(status, "application/json", json)
}

fn live(state: &InspectorState, parts: &Parts, query: &PageQuery) -> Response<PageBody> {
    let filter = match query.filter() {
        Ok(filter) => filter,
        Err(error) => return failed(&error),
    };
    // A browser that connects again states the last event that it received.
    let last = parts.headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let newest = last.or_else(|| query.get("from")).and_then(|position| position.parse().ok());
    let Some(body) = state.live.stream(filter, newest) else {
        let message = "too many pages with live updates are open";
        return answer::message(StatusCode::SERVICE_UNAVAILABLE, message);
    };
    event_stream(body)
}

/// Starts the events about prompts. A browser does not ask again after a response without content.
fn live_prompts(state: &InspectorState) -> Response<PageBody> {
    let Some(feed) = &state.prompts else {
        return answer::message(StatusCode::NO_CONTENT, "");
    };
    match feed.stream() {
        Some(body) => event_stream(body),
        None => {
            let message = "too many browsers receive events";
            answer::message(StatusCode::SERVICE_UNAVAILABLE, message)
        }
    }
}

/// Starts the events of the page of a run.
async fn live_run(state: &Arc<InspectorState>, query: &PageQuery) -> Response<PageBody> {
    match live_run::stream(state, query).await {
        Ok(Some(body)) => event_stream(body),
        Ok(None) => {
            let message = "too many pages of runs are open";
            answer::message(StatusCode::SERVICE_UNAVAILABLE, message)
        }
        Err(error) => failed(&error),
    }
}

fn event_stream(body: EventBody) -> Response<PageBody> {
    let mut response = Response::new(body.boxed());
    answer::set(&mut response, header::CONTENT_TYPE, "text/event-stream");
    answer::set(&mut response, header::CACHE_CONTROL, "no-store");
    response
}

/// Reads the log for a page, on a blocking thread.
async fn read(
    state: &Arc<InspectorState>,
    browser: Browser,
    path: String,
    query: PageQuery,
) -> Response<PageBody> {
    let Ok(_permit) = state.readers.acquire().await else {
        return answer::message(StatusCode::SERVICE_UNAVAILABLE, "the inspector is closing");
    };
    let state = Arc::clone(state);
    let reading = tokio::task::spawn_blocking(move || views::page(&state, &browser, &path, &query));
    match reading.await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => failed(&error),
        Err(_) => answer::message(StatusCode::INTERNAL_SERVER_ERROR, "the page ended with a bug"),
    }
}

fn failed(error: &PageError) -> Response<PageBody> {
    let status = match error {
        PageError::NotFound | PageError::Call(_) => StatusCode::NOT_FOUND,
        PageError::Query(_) => StatusCode::BAD_REQUEST,
        PageError::Log(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    answer::page(status, views::failure::page(status, &error.to_string()))
}
