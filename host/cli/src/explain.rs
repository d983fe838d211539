//! Explanations of a call's outcome for the operator, which the model does not see.

use std::path::Path;
use std::sync::Arc;

use cofferdam::text::limit;
use cofferdam::{Host, consent};
use cofferdam_engine::Plugin;
use cofferdam_tool::{CallRecord, Outcome, Permission};

use crate::print;

/// Prints what a call of one of `plugins` was denied, with the flags or commands that would grant
/// it. `config` is the configuration of the command.
pub(crate) fn denials(record: &CallRecord, plugins: &[Arc<Plugin>], config: Option<&Path>) {
    let name = record.plugin.as_ref().map_or("", |plugin| plugin.name.as_str());
    let plugin = plugins.iter().find(|plugin| plugin.info().identity.name.as_str() == name);
    for refusal in &record.refused {
        print::note(&format!("refused: {}", refusal.capability));
        if let Some(reason) = &refusal.reason {
            print::note(&format!("  {reason}"));
        }
        let is_asked = |permission: &Permission| {
            plugin.is_none_or(|plugin| plugin.requested().asks_for(permission))
        };
        if refusal.capability.parse().is_ok_and(|permission| !is_asked(&permission)) {
            print::note(&format!(
                "  no grant can give it, because the manifest of `{name}` does not ask for it"
            ));
        } else if let Some(how) = consent::how_to_grant(name, &refusal.capability, config) {
            print::note(&format!("  {how}"));
        }
    }
}

/// Prints why a call did not succeed: the meaning of its error, the limit that it exceeded, and
/// what it was denied.
pub(crate) fn outcome(outcome: &Outcome, record: &CallRecord, tools: &Host, config: Option<&Path>) {
    let plugin = record.plugin.as_ref().and_then(|of_call| {
        tools.plugins().iter().find(|plugin| plugin.info().identity.name == of_call.name)
    });
    match outcome {
        Outcome::Failure(_) => print::note("the tool reported a failure"),
        Outcome::Error(error) => {
            print::note(&format!("the call ended as {error}"));
            if let Some(cause) = error.error_type() {
                print::note(&format!("  meaning: {}", cause.cause()));
                let limits = plugin.map(|plugin| &plugin.granted().policy.limits);
                if let Some(limit) = limits.and_then(|limits| limit(cause, limits)) {
                    print::note(&format!("  {limit}"));
                }
            }
        }
        _ => return,
    }
    denials(record, tools.plugins(), config);
    let Some(plugin) = plugin.filter(|_| record.refused.is_empty()) else { return };
    let shown = outcome.shown().map(|shown| shown.text()).unwrap_or_default();
    let missing = plugin.granted().missing.iter().map(|missing| &missing.permission);
    for permission in missing.filter(|permission| is_cause(permission, &shown)) {
        print::note(&format!("not granted: to {}", permission.in_plain_words()));
        let name = plugin.info().identity.name.as_str();
        if let Some(how) = consent::how_to_grant(name, &permission.to_string(), config) {
            print::note(&format!("  {how}"));
        }
    }
}

/// Returns whether a missing permission may be the reason of a failure. The host sees no attempt to
/// use a store or a variable that a guest does not have, so that a failure which names it counts.
/// Other attempts are recorded as refusals.
fn is_cause(permission: &Permission, failure: &str) -> bool {
    let mut words = failure.split(|c: char| !(c.is_alphanumeric() || "/_-.".contains(c)));
    match permission {
        Permission::Files(store, _) => words.any(|word| {
            let path = word.strip_prefix('/').unwrap_or_default();
            let first = path.split('/').next().unwrap_or_default();
            !first.is_empty() && store.as_ref().is_none_or(|store| store.as_str() == first)
        }),
        Permission::Env(name) => words.any(|word| word == name),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_that_names_a_store_or_a_variable_may_lack_it() {
        let is_cause = |permission: &str, text| is_cause(&permission.parse().unwrap(), text);
        let no_file = r#"{"error":{"message":"there is no file `/notes/a.md`"}}"#;
        assert!(is_cause("files:*=read-only", no_file));
        assert!(is_cause("files:notes=read-only", no_file));
        assert!(!is_cause("files:note=read-only", no_file));
        assert!(!is_cause("files:*=read-only", "`base64` is not base64, image/png or 1 / 2"));
        assert!(is_cause("env:LANG", "LANG is not set") && !is_cause("env:LANG", "LANGUAGE"));
        assert!(!is_cause("http:GET https://*/", "https://a.example/ has no address"));
    }
}
