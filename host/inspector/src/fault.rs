//! Party that a call failed because of, by its outcome and the type of its error.

use cofferdam_record::{CallEntry, LOST, REFUSED};
use cofferdam_tool::ErrorType;

/// Party that a call failed because of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallFault {
    /// Name of the party.
    pub(crate) party: &'static str,
    /// Cause in plain words.
    pub(crate) cause: &'static str,
    /// Advice for the operator.
    pub(crate) advice: &'static str,
}

impl CallFault {
    /// Returns the party, or `None` for a call that did not fail.
    pub(crate) fn of(call: &CallEntry) -> Option<Self> {
        let error = call.error.as_deref().unwrap_or_default();
        match call.outcome.as_str() {
            // Most tools report a refusal as a failure of their own.
            "failure" if !call.refused.is_empty() => Some(Self {
                party: "grant",
                cause: "the tool was refused a permission and reported a failure",
                advice: "Grant it if the tool should have it.",
            }),
            "failure" => Some(Self {
                party: "tool",
                cause: "the tool reported a failure",
                advice: "The result has its message for the model.",
            }),
            "cancelled" => Some(Self {
                party: "caller",
                cause: "the caller stopped waiting",
                advice: "The client closed the call, or its own time limit passed.",
            }),
            LOST => Some(Self {
                party: "host",
                cause: "the host was killed during the call",
                advice: "The log has no end of the call. Its file changes were not made.",
            }),
            REFUSED => Some(refused(error)),
            "error" => Some(ErrorType::named(error).map_or(
                Self {
                    party: "tool",
                    cause: "a function of the host, or a server, ended with an error",
                    advice: "The detail has its message, if payloads are stored.",
                },
                |error| Self { party: party(error), cause: error.cause(), advice: error.help() },
            )),
            _ => None,
        }
    }
}

/// Returns the fault of a call that did not start.
fn refused(reason: &str) -> CallFault {
    let (party, cause, advice) = match reason {
        "UnknownTool" => ("model", "there is no tool of this name", "The model guessed a name."),
        "InvalidArguments" => (
            "model",
            "the arguments do not match the schema of the tool",
            "If it happens often, the description or the schema of the tool is unclear.",
        ),
        "NoDryRun" => ("caller", "the tool has no dry run", "Call it without a dry run."),
        "InvocationsUsedUp" | "FailuresUsedUp" => (
            "limit",
            "the tool reached its maximum number of calls",
            "Raise the limit of the tool.",
        ),
        _ => ("host", "the call did not start", "The log of the host has the reason."),
    };
    CallFault { party, cause, advice }
}

fn party(error: ErrorType) -> &'static str {
    match error {
        ErrorType::Timeout
        | ErrorType::CpuLimit
        | ErrorType::MemoryLimit
        | ErrorType::OutputLimit
        | ErrorType::HandleLimit => "limit",
        ErrorType::CapabilityDenied => "grant",
        ErrorType::Conflict => "another call",
        ErrorType::PluginUnavailable => "host",
        _ => "plugin",
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_tool::record::Refusal;

    use super::*;

    fn party_of(outcome: &str, error: &str) -> Option<&'static str> {
        let mut call = CallEntry::default();
        call.outcome = outcome.to_owned();
        call.error = (!error.is_empty()).then(|| error.to_owned());
        CallFault::of(&call).map(|fault| fault.party)
    }

    #[test]
    fn each_outcome_has_a_party() {
        for (outcome, error, party) in [
            ("failure", "", "tool"),
            ("cancelled", "", "caller"),
            ("lost", "", "host"),
            ("refused", "UnknownTool", "model"),
            ("refused", "InvalidArguments", "model"),
            ("error", "Trap.StackOverflow", "plugin"),
            ("error", "Timeout", "limit"),
            ("error", "CapabilityDenied", "grant"),
            ("error", "PluginUnavailable", "host"),
            ("error", "ConnectionRefused", "tool"),
        ] {
            assert_eq!(party_of(outcome, error), Some(party), "{outcome} {error}");
        }
        let mut refused = CallEntry::default();
        refused.outcome = "failure".to_owned();
        refused.refused.push(Refusal::new("clock:precise"));
        assert_eq!(CallFault::of(&refused).map(|fault| fault.party), Some("grant"));
        assert_eq!(party_of("ok", ""), None);
        assert_eq!(party_of("running", ""), None);
    }
}
