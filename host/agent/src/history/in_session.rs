//! History in the session's own state (`SES-4`), which lasts as long as the session and is part of
//! its JSON form.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{HistoryError, HistoryStore};
use crate::{BoxError, Message, Session};

/// Stores records under `state[<source id>].messages`.
pub(super) struct InSession;

#[async_trait]
impl HistoryStore for InSession {
    async fn load(&self, _: &Session, state: &Value) -> Result<Vec<Message>, BoxError> {
        match state.get("messages") {
            Some(records) => Ok(Vec::deserialize(records).map_err(|_| HistoryError::State)?),
            None if state.is_null() => Ok(Vec::new()),
            None => Err(HistoryError::State.into()),
        }
    }

    async fn append(
        &self,
        _: &Session,
        state: &mut Value,
        messages: &[Arc<Message>],
    ) -> Result<(), BoxError> {
        let records = messages.iter().map(|message| serde_json::to_value(message.as_ref()));
        let records = records.collect::<Result<Vec<_>, _>>()?;
        if state.is_null() {
            *state = json!({"messages": []});
        }
        let kept =
            state.get_mut("messages").and_then(Value::as_array_mut).ok_or(HistoryError::State)?;
        kept.extend(records);
        Ok(())
    }
}
