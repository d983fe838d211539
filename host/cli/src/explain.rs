//! Explanations of a call's outcome for the operator, which the model does not see.

use std::path::Path;

use cofferdam::text::limit;
use cofferdam::{Host, consent};
use cofferdam_tool::{CallRecord, Outcome};

use crate::print;

/// Prints what a call was denied, with the flags or commands that would grant it. `config` is the
/// configuration of the command.
pub(crate) fn denials(record: &CallRecord, config: Option<&Path>) {
    let plugin = record.plugin.as_ref().map_or("", |plugin| plugin.name.as_str());
    for refusal in &record.refused {
        print::note(&format!("refused: {}", refusal.capability));
        if let Some(reason) = &refusal.reason {
            print::note(&format!("  {reason}"));
        }
        if let Some(how) = consent::how_to_grant(plugin, &refusal.capability, config) {
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
    denials(record, config);
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
