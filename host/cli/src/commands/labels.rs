//! Information-flow labels of conversations and workflows: prints the decisions of
//! their policy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cofferdam_agent::Session;
use cofferdam_labels::{AuditDecision, Label, LabelAudit, LabelDecision, LabelPolicy, context_of};
use serde_json::{Value, json};

use crate::print;
use cofferdam::config::ConfigFile;
use cofferdam::{Host, LabelledTools};

/// Advice for a session or a run that goes on without the label policy that it was begun with.
pub(super) const LABELS_ADVICE: &str = "go on with --labels, or with `policy = true` in [labels]";

/// Prints the decisions of the policy. Clones share state.
#[derive(Clone, Default)]
pub(super) struct Decisions {
    is_json: bool,
    /// True if a call of the model was blocked since the last [`take_blocked`](Self::take_blocked).
    has_blocked: Arc<AtomicBool>,
}

/// Returns the label policy, or `None` if neither the flag nor the configuration enables it.
pub(super) fn policy(
    is_asked: bool,
    file: Option<&ConfigFile>,
    tools: &Host,
    decisions: &Decisions,
) -> cofferdam::Result<Option<LabelPolicy>> {
    let policy = LabelledTools::of(tools).policy(is_asked, file)?;
    Ok(policy.map(|policy| policy.audit(decisions.clone())))
}

impl Decisions {
    pub(super) fn new(is_json: bool) -> Self {
        Self { is_json, has_blocked: Arc::default() }
    }

    /// Returns whether a call of the model was blocked since the last call of this function.
    pub(super) fn take_blocked(&self) -> bool {
        self.has_blocked.swap(false, Ordering::SeqCst)
    }
}

impl LabelAudit for Decisions {
    fn decided(&self, decision: &LabelDecision<'_>) {
        if decision.decided == AuditDecision::Blocked {
            self.has_blocked.store(true, Ordering::SeqCst);
        }
        if self.is_json {
            let mut line = json!({"type": "label_decision"});
            if let (Some(line), Value::Object(decision)) =
                (line.as_object_mut(), decision.to_json())
            {
                line.extend(decision);
            }
            // A closed standard output is reported with the next message.
            let _ = print::result(&line.to_string());
        }
        if let Some(line) = line(decision) {
            print::note(&format!("  {line}"));
        }
    }
}

/// Returns a decision as a line for the user. Returns `None` for a result that is public and
/// trusted.
fn line(decision: &LabelDecision<'_>) -> Option<String> {
    let label = words(decision.label);
    let reasons: Vec<_> = decision.violations.iter().map(|violation| violation.message()).collect();
    let reasons = reasons.join("; ");
    match decision.decided {
        AuditDecision::Labelled if *decision.label == Label::default() => None,
        AuditDecision::Labelled => Some(format!("label: {label}")),
        AuditDecision::Hidden => {
            Some(format!("hidden from the model as {}", decision.variable.unwrap_or_default()))
        }
        AuditDecision::Discarded => Some("too large to be hidden, so it was dropped".to_owned()),
        AuditDecision::Blocked => Some(format!("blocked `{}` ({label}): {reasons}", decision.tool)),
        AuditDecision::ApprovalRequested => {
            Some(format!("`{}` needs approval ({label}): {reasons}", decision.tool))
        }
        AuditDecision::Approved => Some(format!("allowed by you ({label}), although: {reasons}")),
        other => Some(other.word().to_owned()),
    }
}

fn words(label: &Label) -> String {
    let mut words = format!("{}, {}", label.integrity.word(), label.confidentiality.word());
    for principal in &label.principals {
        words.push_str(&format!(" of {}", super::chat::short(principal)));
    }
    words
}

/// Prints the output of `/labels`.
pub(super) fn show(session: &Session) {
    let context = context_of(session);
    print::note(&format!("the conversation is {}", words(&context)));
}
