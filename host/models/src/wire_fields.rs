//! Fields of a function call that this crate does not know and that its server may require back.
//!
//! Gemini signs calls and refuses a conversation without the signatures. Such fields are stored in
//! the record of the call, with the host that sent them, and go back to that host only: other
//! servers refuse fields that they do not know.

use cofferdam_agent::FunctionCall;
use serde_json::{Map, Value};

/// Key of the fields in the record of a call.
const KEY: &str = "wire_fields";
const HOST: &str = "host";
const FIELDS: &str = "fields";

/// Returns the unknown fields of a call's record that hold `fields`.
pub(super) fn record(host: &str, fields: &Map<String, Value>) -> Map<String, Value> {
    let stored = Map::from_iter([
        (HOST.to_owned(), host.into()),
        (FIELDS.to_owned(), fields.clone().into()),
    ]);
    Map::from_iter([(KEY.to_owned(), stored.into())])
}

/// Returns the fields of a call, if this host sent them.
pub(super) fn of<'c>(call: &'c FunctionCall, host: &str) -> Option<&'c Map<String, Value>> {
    let stored = call.extra.get(KEY)?;
    let is_ours = stored.get(HOST).and_then(Value::as_str) == Some(host);
    stored.get(FIELDS).filter(|_| is_ours).and_then(Value::as_object)
}
