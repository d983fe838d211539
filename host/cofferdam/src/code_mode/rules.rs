//! Rules of `[[agent.approvals]]` for the calls of programs. An agent has rules of its own, which
//! apply instead.

use std::sync::Arc;

use cofferdam_agent::Approvals;
use cofferdam_code::ProgramRules;
use cofferdam_tool::invoke::{ApprovalNeed, InnerCall};
use serde_json::{Map, Value};

use crate::Result;
use crate::config::ConfigFile;

/// Rules of a configuration.
struct ConfiguredProgramRules(Approvals);

/// Returns the rules of a configuration, if it has any.
///
/// # Errors
/// Returns an error for a rule that can match nothing.
pub(super) fn of_config(file: Option<&ConfigFile>) -> Result<Option<Arc<dyn ProgramRules>>> {
    let Some(file) = file else { return Ok(None) };
    let approvals = file.approvals(Approvals::default())?;
    let has_rules = approvals != Approvals::default();
    Ok(has_rules.then(|| Arc::new(ConfiguredProgramRules(approvals)) as Arc<dyn ProgramRules>))
}

impl ProgramRules for ConfiguredProgramRules {
    fn approval(&self, call: &InnerCall<'_>, arguments: &Map<String, Value>) -> ApprovalNeed {
        self.0.of_inner_call(call, arguments, None)
    }
}
