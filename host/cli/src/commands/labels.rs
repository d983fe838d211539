//! Information-flow labels of conversations and workflows: builds the policy from the configuration
//! and prints its decisions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cofferdam_agent::Session;
use cofferdam_labels::{AuditDecision, Label, LabelAudit, LabelDecision, LabelPolicy, context_of};
use cofferdam_tool::Toolset;
use serde_json::{Value, json};

use crate::print;
use cofferdam::Host;
use cofferdam::config::ConfigFile;
use cofferdam::model_specs;

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
) -> anyhow::Result<Option<LabelPolicy>> {
    let recorded = |policy: LabelPolicy| match tools.call_log() {
        Some(log) => policy.audit(cofferdam::label_recorder(log)),
        None => policy,
    };
    let Some(file) = file else {
        return Ok(is_asked.then(|| recorded(LabelPolicy::new().audit(decisions.clone()))));
    };
    let table = &file.config.labels;
    if !is_asked && !table.policy {
        return Ok(None);
    }
    check_names(file, tools)?;
    let mut policy = recorded(table.to_policy().audit(decisions.clone()));
    if let Some(name) = &table.quarantine_model {
        if !file.config.models.contains_key(name.get_ref()) {
            let message = format!("there is no model `{}` in this file", name.get_ref());
            return Err(file.error(name.span(), message).into());
        }
        let model = model_specs::choose(Some(name.get_ref()), None, Some(file))?;
        policy = policy.quarantine(model_specs::client(&model, None)?);
    }
    Ok(Some(policy))
}

/// Checks that the configuration labels only tools and sources that exist, because a label of any
/// other has no effect. Checks nothing if a server is unreachable or has changed, because its tools
/// are unknown.
fn check_names(file: &ConfigFile, tools: &Host) -> anyhow::Result<()> {
    if !tools.servers().unreachable.is_empty() || !tools.servers().changed().is_empty() {
        return Ok(());
    }
    let table = &file.config.labels;
    // Labels of tools that are not offered have no effect, but are no mistake.
    let toolset = tools.toolset().unrestricted();
    for name in table.tools() {
        if toolset.definition(name.get_ref()).is_err() {
            let message =
                format!("labels: there is no tool `{}`; {}", name.get_ref(), known_tools(toolset));
            return Err(file.error(name.span(), message).into());
        }
    }
    for name in table.sources() {
        if !toolset.sources().any(|source| source.name() == name.get_ref()) {
            let sources: Vec<_> =
                toolset.sources().map(|source| format!("`{}`", source.name())).collect();
            let message = format!(
                "labels: no plugin, server or file store with tools is called `{}`; there are {}",
                name.get_ref(),
                sources.join(", ")
            );
            return Err(file.error(name.span(), message).into());
        }
    }
    Ok(())
}

fn known_tools(toolset: &Toolset) -> String {
    match toolset.definitions().len() {
        0 => "there are no tools".to_owned(),
        count => format!("`cofferdam list` shows the {}", print::counted(count, "tool")),
    }
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
