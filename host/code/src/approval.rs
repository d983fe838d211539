//! Approval of programs, and of the calls that they make.

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::ToolDefinition;
use cofferdam_tool::ask::{AskError, Asker, Question, QuestionKind};
use cofferdam_tool::cut::shortened;
use cofferdam_tool::invoke::{ApprovalNeed, InnerCall};
use serde_json::{Map, Value};

/// Maximum bytes of arguments in a question.
const SHOWN_BYTES_MAX: usize = 2000;

/// Programs that a user must approve before they run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CodeApproval {
    /// None. The calls that need approval ask for it themselves.
    #[default]
    Never,
    /// The first one that the host runs.
    First,
    /// Every program.
    Always,
}

/// A call of a program that needs a user's approval.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalRequest<'c> {
    /// Tool that the program calls.
    pub tool: &'c ToolDefinition,
    /// Decoded arguments.
    pub arguments: &'c Map<String, Value>,
    /// Identifier of the call.
    pub call_id: &'c str,
}

/// Answer to an [`ApprovalRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The call may run.
    Approved,
    /// The call may not run. The string is for the program.
    Rejected(String),
    /// No user can be asked now. The string is for the program, unless the caller of the program
    /// keeps it until a user can.
    Unavailable(String),
}

/// Asks a user whether a call of a program may run, while the program waits.
#[async_trait]
pub trait CallApprover: Send + Sync {
    /// Returns the user's decision.
    async fn approve(&self, request: ApprovalRequest<'_>) -> Decision;
}

/// Decides which calls of programs need approval, for callers that have no rules of their own.
pub trait ProgramRules: Send + Sync {
    /// Returns whether a user has to approve a call. Must not block.
    fn approval(&self, call: &InnerCall<'_>, arguments: &Map<String, Value>) -> ApprovalNeed;
}

/// Asks for an approval: the approver of the host, or else the caller of the program.
pub(crate) async fn ask(
    approver: Option<&Arc<dyn CallApprover>>,
    asker: Option<&Arc<dyn Asker>>,
    name: String,
    request: ApprovalRequest<'_>,
) -> Decision {
    let tool = request.tool.name.as_str();
    if let Some(approver) = approver {
        return approver.approve(request).await;
    }
    let asker = asker.filter(|asker| asker.can_ask(QuestionKind::Elicitation));
    let Some(asker) = asker else { return Decision::Unavailable(unavailable(tool)) };
    let answers = asker.ask(vec![question(name, request)]).await;
    let answer = match answers {
        Ok(answers) => answers.into_iter().next().unwrap_or_default(),
        Err(AskError::Unsupported(_)) => return Decision::Unavailable(unavailable(tool)),
        Err(error) => {
            return Decision::Rejected(format!("the call to '{tool}' was not approved: {error}"));
        }
    };
    if Question::is_allowed(&answer) {
        return Decision::Approved;
    }
    Decision::Rejected(format!("the user did not approve the call to '{tool}'"))
}

fn unavailable(tool: &str) -> String {
    format!(
        "each call to '{tool}' needs a user's approval, and no user can be asked while a program \
         runs; call the tool directly, outside of a program"
    )
}

/// Returns the question for a call.
fn question(name: String, request: ApprovalRequest<'_>) -> Question {
    let arguments = Value::Object(request.arguments.clone());
    let shown = shortened(&arguments, SHOWN_BYTES_MAX).unwrap_or(arguments);
    let message = format!("Allow the program to call {} with {shown}?", request.tool.name);
    Question::approval(name, message)
}
