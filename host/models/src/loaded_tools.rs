//! Functions that a model has loaded by a search (`LOOP-70`).
//!
//! Anthropic refuses reasoning behind a list of functions that has changed, except for functions
//! that are deferred: a result refers to them, and the model sees them from there on. So a loaded
//! function is deferred if the conversation still has the result that lists it. After a compaction
//! it is listed like any other.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cofferdam_agent::{ChatRequest, FunctionCall, LOAD_TOOL, Message, Pairing};
use serde_json::Value;

use super::Provider;

/// Key of the names in a result of [`LOAD_TOOL`].
const LOADED: &str = "loaded";

/// Deferred functions of a request, and the results that refer to them.
#[derive(Debug, Default)]
pub(super) struct DeferredTools {
    /// Names of the functions.
    pub(super) names: Vec<String>,
    /// Names that a result refers to, by the id of its call in the prepared messages.
    results: HashMap<String, Vec<String>>,
}

impl DeferredTools {
    /// Returns the deferred functions of a request whose messages have unique call ids.
    pub(super) fn of(provider: Provider, request: &ChatRequest, messages: &[Arc<Message>]) -> Self {
        if provider != Provider::Anthropic || request.loaded_tools == 0 {
            return Self::default();
        }
        let first = request.tools.len().saturating_sub(request.loaded_tools);
        let loaded = request.tools.get(first..).unwrap_or_default().iter();
        let loaded: HashSet<_> = loaded.map(|tool| tool.name.as_str()).collect();
        let mut results = HashMap::new();
        for (call, result) in Pairing::of(messages).answered(messages) {
            let names = loaded_by(call, &result.result);
            let names: Vec<_> =
                names.into_iter().filter(|name| loaded.contains(name.as_str())).collect();
            if !names.is_empty() && !result.is_error {
                results.insert(result.call_id.clone(), names);
            }
        }
        let names: HashSet<&String> = results.values().flatten().collect();
        let listed = request.tools.iter().map(|tool| tool.name.to_string());
        Self { names: listed.filter(|name| names.contains(name)).collect(), results }
    }

    /// Returns the names that the result of a call refers to, if it does so.
    pub(super) fn references(&self, call_id: &str) -> Option<&[String]> {
        self.results.get(call_id).map(Vec::as_slice)
    }
}

/// Returns the names in the result of a call that has loaded functions.
fn loaded_by(call: &FunctionCall, result: &str) -> Vec<String> {
    if call.name != LOAD_TOOL {
        return Vec::new();
    }
    let result: Value = serde_json::from_str(result).unwrap_or_default();
    let names = result.get(LOADED).and_then(Value::as_array).into_iter().flatten();
    let mut loaded: Vec<String> = Vec::new();
    for name in names.filter_map(Value::as_str) {
        if !loaded.iter().any(|loaded| loaded == name) {
            loaded.push(name.to_owned());
        }
    }
    loaded
}
