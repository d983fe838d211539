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

/// Prints why a call did not succeed: the meaning of its error, the limit that it exceeded, and the
/// permissions that its plugin asks for and was not granted.
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
    for missing in &plugin.granted().missing {
        let permission = &missing.permission;
        print::note(&format!("not granted: to {}", permission.in_plain_words()));
        let name = plugin.info().identity.name.as_str();
        if let Some(how) = consent::how_to_grant(name, &permission.to_string(), config) {
            print::note(&format!("  {how}"));
        }
    }
}
