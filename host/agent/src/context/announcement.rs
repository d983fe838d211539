//! Announcements of state to the model, once for each change (`SES-23`).

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{AfterRun, BeforeRun};

/// Key in a provider's state of the digest of the last announced description.
const ANNOUNCED: &str = "told";

/// Announces a description of a provider's state, unless the model knows it. A state that is empty
/// and was never announced is not announced either.
pub(super) fn announce(run: &mut BeforeRun<'_>, description: &str, is_empty: bool) {
    let announced = run.state.get(ANNOUNCED).and_then(Value::as_str);
    let is_news = match announced {
        Some(announced) => announced != digest(description),
        None => !is_empty,
    };
    if is_news {
        run.announce(description);
    }
}

/// Notes what the model knows after a run. It has seen the announcement, and the results of the
/// tools that have changed the state since. If the conversation was shortened, both may be gone, so
/// the next run announces the state again.
pub(super) fn note(run: &mut AfterRun<'_>, description: &str) {
    if run.is_compacted() {
        if let Some(state) = run.state.as_object_mut() {
            state.remove(ANNOUNCED);
        }
        return;
    }
    set_members(run.state, [(ANNOUNCED.to_owned(), digest(description).into())]);
}

/// Sets members of a provider's state, which may not be an object yet.
pub(super) fn set_members(state: &mut Value, members: impl IntoIterator<Item = (String, Value)>) {
    if !state.is_object() {
        *state = json!({});
    }
    if let Some(state) = state.as_object_mut() {
        state.extend(members);
    }
}

fn digest(description: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(description))
}
