//! Scripted server.

use std::collections::VecDeque;
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_tool::CallContext;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::client::{ReconnectFailed, Remote, RequestError};

/// Step of a script.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Responds with a result.
    Answer(Value),
    /// Responds with a JSON-RPC error.
    Error { code: i64, message: String },
    /// Closes the stream.
    Closed,
    /// Fails in any other way.
    Broken,
    /// Never responds.
    Hangs,
    /// Makes the next reconnection fail.
    NoReconnect,
}

impl Step {
    /// Returns the steps for one entry of a row's script.
    pub(super) fn read(entry: &Value) -> Vec<Self> {
        let mut steps = Vec::new();
        if let Some(message) = entry.get("protocol_error").and_then(Value::as_str) {
            let code = entry.get("code").and_then(Value::as_i64).unwrap_or_default();
            steps.push(Self::Error { code, message: message.to_owned() });
        } else if entry.get("connection").is_some_and(|connection| connection == "closed") {
            steps.push(Self::Closed);
        } else if entry.get("hangs").is_some() {
            steps.push(Self::Hangs);
        } else if entry.get("reconnect").is_none() {
            steps.push(Self::Answer(entry.clone()));
        }
        if entry.get("reconnect").is_some_and(|reconnect| reconnect == "fails") {
            steps.push(Self::NoReconnect);
        }
        steps
    }
}

/// Requests that the server received.
#[derive(Debug, Clone, Default)]
pub(super) struct Played {
    pub(super) requests: Vec<String>,
    pub(super) reconnects: u64,
    pub(super) sleeps_s: Vec<f64>,
    pub(super) task_parameter: Option<Value>,
}

/// Server that answers from a script, and does not answer after its end.
pub struct Scripted {
    steps: Mutex<VecDeque<Step>>,
    played: Mutex<Played>,
    sent: Mutex<Vec<(&'static str, Value)>>,
    /// True if pauses really wait; otherwise they are only recorded.
    pub(super) sleeps_really: bool,
    /// True if calls after the end of the script succeed.
    pub(super) calls_plainly: bool,
    /// Fires when the server does not answer.
    pub(super) on_hang: Option<CancellationToken>,
}

impl Scripted {
    pub(super) fn new(steps: Vec<Step>) -> Self {
        Self {
            steps: Mutex::new(steps.into()),
            played: Mutex::default(),
            sent: Mutex::default(),
            sleeps_really: false,
            calls_plainly: false,
            on_hang: None,
        }
    }

    /// Creates a server that returns these results in order.
    #[must_use]
    pub fn answering(results: Vec<Value>) -> Self {
        Self::new(results.into_iter().map(Step::Answer).collect())
    }

    /// Returns the methods and parameters that were sent.
    #[must_use]
    pub fn sent(&self) -> Vec<(&'static str, Value)> {
        self.sent.lock().clone()
    }

    /// Returns the pauses between requests, in seconds.
    #[must_use]
    pub fn pauses_s(&self) -> Vec<f64> {
        self.played.lock().sleeps_s.clone()
    }

    pub(super) fn played(&self) -> Played {
        self.played.lock().clone()
    }

    fn note(&self, method: &str, parameters: &Map<String, Value>) {
        let mut played = self.played.lock();
        let task = parameters.get("task");
        played.requests.push(if task.is_some() {
            format!("{method} +task")
        } else {
            method.to_owned()
        });
        if let Some(task) = task {
            played.task_parameter = Some(task.clone());
        }
    }
}

#[async_trait]
impl Remote for Scripted {
    async fn request(
        &self,
        method: &'static str,
        parameters: Map<String, Value>,
        _call: &CallContext,
    ) -> Result<Value, RequestError> {
        self.note(method, &parameters);
        self.sent.lock().push((method, Value::Object(parameters)));
        if method == "tasks/cancel" {
            return Ok(json!({}));
        }
        let connection = self.played.lock().reconnects;
        let step = self.steps.lock().pop_front();
        match step {
            Some(Step::Answer(result)) => Ok(result),
            Some(Step::Error { code, message }) => {
                Err(RequestError::Protocol { code, message, connection })
            }
            Some(Step::Closed) => Err(RequestError::Lost { connection, is_sent: true }),
            Some(Step::Broken) => Err(RequestError::Other("secret detail".to_owned())),
            None if method == "tools/call" && self.calls_plainly => {
                Ok(json!({"content": [{"type": "text", "text": "plain result"}]}))
            }
            Some(Step::Hangs | Step::NoReconnect) | None => {
                if let Some(token) = &self.on_hang {
                    token.cancel();
                }
                std::future::pending().await
            }
        }
    }

    async fn reconnect(&self, _lost: u64) -> Result<(), ReconnectFailed> {
        self.played.lock().reconnects += 1;
        let mut steps = self.steps.lock();
        if matches!(steps.front(), Some(Step::NoReconnect)) {
            steps.pop_front();
            return Err(ReconnectFailed("no server".to_owned()));
        }
        Ok(())
    }

    async fn pause(&self, duration: Duration) {
        self.played.lock().sleeps_s.push(duration.as_secs_f64());
        if self.sleeps_really {
            tokio::time::sleep(duration).await;
        }
    }
}
