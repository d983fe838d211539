//! Progress ledger: the planner's assessment of the state of the work.

use serde_json::Value;

/// State of the work, and the next speaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProgressLedger {
    pub(super) is_satisfied: bool,
    /// True if the work makes no progress or is in a loop.
    pub(super) is_stalled: bool,
    pub(super) next_speaker: String,
    pub(super) instruction: String,
}

/// Error returned for an invalid ledger.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoLedger {
    #[error("the progress ledger is not JSON")]
    Json,
    #[error("the progress ledger has no `{0}` with a fitting `answer`")]
    Missing(&'static str),
    #[error("the progress ledger names `{named}` as the next speaker; participants: {known}")]
    Speaker { named: String, known: String },
}

impl ProgressLedger {
    /// Parses a ledger and ignores everything around the JSON.
    pub(super) fn read(text: &str, participants: &[String]) -> Result<Self, NoLedger> {
        let between =
            text.find('{').zip(text.rfind('}')).and_then(|(from, to)| text.get(from..=to));
        let json: Value =
            between.and_then(|text| serde_json::from_str(text).ok()).ok_or(NoLedger::Json)?;
        let flag = |name| match answer(&json, name) {
            Some(Value::Bool(flag)) => Ok(*flag),
            _ => Err(NoLedger::Missing(name)),
        };
        let words =
            |name| answer(&json, name).and_then(Value::as_str).ok_or(NoLedger::Missing(name));
        let is_satisfied = flag("is_request_satisfied")?;
        let is_stalled = flag("is_in_loop")? || !flag("is_progress_being_made")?;
        if is_satisfied {
            // The work is complete, so there is no next speaker.
            return Ok(Self {
                is_satisfied,
                is_stalled,
                next_speaker: String::new(),
                instruction: String::new(),
            });
        }
        let named = words("next_speaker")?;
        let Some(next_speaker) = participants.iter().find(|name| *name == named).cloned() else {
            let named = named.chars().take(100).collect();
            return Err(NoLedger::Speaker { named, known: participants.join(", ") });
        };
        let instruction = words("instruction_or_question")?.to_owned();
        Ok(Self { is_satisfied, is_stalled, next_speaker, instruction })
    }
}

/// Returns the answer to a question of the ledger: `{"reason": …, "answer": …}`, or only the
/// answer.
fn answer<'j>(json: &'j Value, name: &str) -> Option<&'j Value> {
    let item = json.get(name)?;
    Some(item.get("answer").unwrap_or(item))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_ledger_is_read_out_of_what_a_model_writes() {
        let participants = ["a".to_owned()];
        let written = json!({
            "is_request_satisfied": {"reason": "", "answer": false},
            "is_in_loop": false,
            "is_progress_being_made": {"answer": false},
            "next_speaker": {"answer": "a"},
            "instruction_or_question": {"answer": "look"},
        });
        let ledger =
            ProgressLedger::read(&format!("Here:\n```json\n{written}\n```"), &participants)
                .unwrap();
        assert!(ledger.is_stalled && !ledger.is_satisfied);
        assert_eq!((ledger.next_speaker.as_str(), ledger.instruction.as_str()), ("a", "look"));
        let wrong = |text: &str| ProgressLedger::read(text, &participants).unwrap_err();
        assert_eq!(wrong("no"), NoLedger::Json);
        assert_eq!(wrong("{}"), NoLedger::Missing("is_request_satisfied"));
        let mut other = written;
        other["next_speaker"]["answer"] = "eve".into();
        assert!(matches!(wrong(&other.to_string()), NoLedger::Speaker { .. }));
    }
}
