//! HTTP client that sends the current token of a server, and refreshes it.
//!
//! The SDK has such a client, but it gives a refresh up together with the request that needs it: a
//! refresh token that was used up would be lost. Here, refreshes go on.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use rmcp::transport::{AuthError, AuthorizationManager};
use sse_stream::Sse;
use tokio::sync::Mutex;

use super::exchange;
use crate::client::http::HttpClient;

type TransportError = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// HTTP client with the tokens of one server.
#[derive(Clone)]
pub(crate) struct TokenClient {
    http: HttpClient,
    pub(super) manager: Arc<Mutex<AuthorizationManager>>,
}

impl TokenClient {
    pub(super) fn new(http: HttpClient, manager: AuthorizationManager) -> Self {
        Self { http, manager: Arc::new(Mutex::new(manager)) }
    }

    /// Returns the current token, refreshed if it has expired. If the caller gives up, the refresh
    /// goes on and its token is stored.
    pub(super) async fn token(&self) -> Result<String, AuthError> {
        let manager = Arc::clone(&self.manager);
        exchange::finish(async move { manager.lock().await.get_access_token().await }).await
    }

    /// Refreshes the current token, which the server has rejected.
    async fn refreshed(&self) -> Result<String, AuthError> {
        let manager = Arc::clone(&self.manager);
        let refreshing = async move {
            let manager = manager.lock().await;
            match manager.refresh_token().await {
                Ok(_) => manager.get_access_token().await,
                Err(AuthError::TokenRefreshRejected(_)) => Err(AuthError::AuthorizationRequired),
                Err(error) => Err(error),
            }
        };
        exchange::finish(refreshing).await
    }

    /// Sends a request with the current token. If the server rejects that, refreshes it and sends
    /// the request once more, unless there is no other token.
    async fn send<T, F>(&self, request: impl Fn(Option<String>) -> F) -> Result<T, TransportError>
    where
        F: Future<Output = Result<T, TransportError>>,
    {
        let token = match self.token().await {
            Ok(token) => Some(token),
            Err(AuthError::AuthorizationRequired) => None,
            Err(error) => return Err(error.into()),
        };
        let rejected = match (request(token.clone()).await, &token) {
            (Err(rejected @ StreamableHttpError::AuthRequired(_)), Some(_)) => rejected,
            (result, _) => return result,
        };
        match self.refreshed().await {
            Ok(fresh) if token.as_ref() != Some(&fresh) => request(Some(fresh)).await,
            Ok(_) | Err(AuthError::AuthorizationRequired) => Err(rejected),
            Err(error) => Err(error.into()),
        }
    }
}

impl StreamableHttpClient for TokenClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, TransportError> {
        self.send(|token| {
            self.http.post_message(
                Arc::clone(&uri),
                message.clone(),
                session.clone(),
                token,
                headers.clone(),
            )
        })
        .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _token: Option<String>,
        headers: Headers,
    ) -> Result<(), TransportError> {
        self.send(|token| {
            self.http.delete_session(Arc::clone(&uri), session.clone(), token, headers.clone())
        })
        .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _token: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, TransportError> {
        self.send(|token| {
            self.http.get_stream(
                Arc::clone(&uri),
                session.clone(),
                last_event.clone(),
                token,
                headers.clone(),
            )
        })
        .await
    }
}
