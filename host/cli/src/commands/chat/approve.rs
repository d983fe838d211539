//! Approval of calls by the user.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cofferdam::code;
use cofferdam::record::LogEvent;
use cofferdam::records::CallLog;
use cofferdam_agent::{ApprovalRequest, Approvals, MessageContent, Scope, Session, allow_always};
use cofferdam_tool::Toolset;
use cofferdam_tool::prompt::{
    FirstAnswer, OperatorPrompt, PendingPrompts, PromptAnswer, PromptKind,
};
use serde_json::{Map, Value};

use crate::inspector::{self, APPROVAL_REASON, PromptedCall};
use crate::{ask, print};

/// Callers, as pages show them.
const MODEL: &str = "the model of this conversation";
const PROGRAM: &str = "a program of the model";

/// Maximum number of questions after an invalid answer.
const ATTEMPTS_MAX: u32 = 3;
/// Name of the argument of file-access tools that is the path of a file.
const FILE_ARGUMENT: &str = "file_name";

/// Approvals that are given in advance: by flags, or by the user for the session.
pub(super) struct StandingApprovals {
    /// True if every call is approved.
    pub(super) all: bool,
    /// Names of tools whose calls are approved.
    pub(super) tools: Vec<String>,
    /// Names of the file-access tools, whose calls can be approved by folder.
    pub(super) file_tools: Vec<String>,
    /// Rules for which calls need approval.
    pub(super) rules: Approvals,
    /// Tools that calls are of.
    pub(super) toolset: Toolset,
}

/// Result of an approval request.
pub(super) struct ApprovalOutcome {
    /// Answer to send with the next run.
    pub(super) answer: MessageContent,
    /// True if the call was denied because no user could be asked.
    pub(super) is_unasked: bool,
    /// Party that decided, for the call log.
    pub(super) by: &'static str,
}

impl ApprovalOutcome {
    /// Returns the decision, for the call log.
    pub(super) fn decision(&self) -> &'static str {
        match &self.answer {
            MessageContent::ApprovalAnswer(answer) if answer.approved == true => "approved",
            _ if self.is_unasked => "denied: no one could be asked",
            _ => "denied",
        }
    }
}

impl StandingApprovals {
    /// Returns whether flags approve a request. They do not approve calls that violate the label
    /// policy: they were given before the user could know which data the model would see.
    pub(super) fn approve(&self, request: &ApprovalRequest) -> bool {
        let is_approved = self.all || self.tools.contains(&request.function_call.name);
        is_approved && request.violations().next().is_none()
    }
}

/// Answers an approval request. If the future is dropped, the request stays unanswered.
pub(super) async fn answer(
    request: &ApprovalRequest,
    approved: &StandingApprovals,
    session: &Session,
    pages: Option<&ApprovalPages>,
) -> ApprovalOutcome {
    let call = &request.function_call;
    let against: Vec<_> = request.violations().collect();
    if approved.approve(request) {
        return ApprovalOutcome { answer: request.approve(), is_unasked: false, by: "flag" };
    }
    if approved.rules.is_allowed_since(request, &approved.toolset, session) {
        return ApprovalOutcome { answer: request.approve(), is_unasked: false, by: "operator" };
    }
    let is_possible = inspector::is_possible(pages.map(|pages| &pages.prompts));
    if !is_possible && !against.is_empty() {
        print::note(&format!(
            "`{}` was not called: the label policy is against it, and {}",
            call.name,
            ask::why_impossible()
        ));
        return unasked(request);
    }
    if !is_possible {
        print::note(&format!(
            "`{}` was not called: it needs approval, and {}; pass --approve {} or --yes",
            call.name,
            ask::why_impossible(),
            call.name
        ));
        return unasked(request);
    }
    let at_terminal = async {
        match against.is_empty() {
            true => ask_user(request, approved, session).await,
            false => ask_user_despite(request, &against).await,
        }
    };
    let prompt = |pages: &ApprovalPages| pages.prompt(request, &against, session);
    let first = inspector::first_answer(pages.map(|p| (&p.prompts, prompt(p))), at_terminal);
    let (answer, by) = match first.await {
        Some(FirstAnswer::Elsewhere(answer)) => (answer, "operator"),
        Some(FirstAnswer::Operator(PromptAnswer::Approved)) => (request.approve(), "inspector"),
        Some(FirstAnswer::Operator(PromptAnswer::Denied(reason))) => {
            (request.refuse(reason), "inspector")
        }
        _ => return unasked(request),
    };
    ApprovalOutcome { answer, is_unasked: false, by }
}

/// Returns the outcome if no user could be asked, or none has answered.
fn unasked(request: &ApprovalRequest) -> ApprovalOutcome {
    let answer = request.refuse(Some("Nobody is there to approve it.".to_owned()));
    ApprovalOutcome { answer, is_unasked: true, by: "operator" }
}

/// Pages that show approvals besides the terminal.
pub(super) struct ApprovalPages {
    pub(super) prompts: PendingPrompts,
    /// Tools that calls are of.
    pub(super) toolset: Toolset,
}

impl ApprovalPages {
    fn prompt(
        &self,
        request: &ApprovalRequest,
        against: &[&str],
        session: &Session,
    ) -> OperatorPrompt {
        let call = PromptedCall {
            tool: &request.function_call.name,
            arguments: &request.function_call.arguments,
            caller: MODEL,
            session: Some(session.id()),
        };
        call.approval(&self.toolset, against)
    }
}

/// Approves calls of programs: by the flags of the command, or by asking the user while the program
/// waits.
pub(super) struct ProgramApprovals {
    /// True if every call is approved.
    pub(super) all: bool,
    /// Names of tools whose calls are approved.
    pub(super) tools: Vec<String>,
    /// Pages that show approvals besides the terminal.
    pub(super) prompts: Option<PendingPrompts>,
    /// True if the session keeps a program while no user can be asked.
    pub(super) is_kept: bool,
    /// Log of the decisions, which is opened after this is created.
    pub(super) call_log: Arc<OnceLock<Arc<CallLog>>>,
}

impl ProgramApprovals {
    fn record(
        &self,
        request: &code::ApprovalRequest<'_>,
        decision: &'static str,
        waited: Duration,
    ) {
        if let Some(log) = self.call_log.get() {
            log.recorder().event(LogEvent::Approval {
                tool: request.tool.name.to_string(),
                call: request.call_id.to_owned(),
                by: "inspector".to_owned(),
                decision: decision.to_owned(),
                waited,
            });
        }
    }
}

#[async_trait]
impl code::CallApprover for ProgramApprovals {
    async fn approve(&self, request: code::ApprovalRequest<'_>) -> code::Decision {
        let name = request.tool.name.as_str();
        if self.all || self.tools.iter().any(|tool| tool == name) {
            return code::Decision::Approved;
        }
        let prompts = self.prompts.as_ref();
        let rejected = || match self.is_kept {
            true => code::Decision::Unavailable(no_one(name)),
            false => code::Decision::Rejected(no_one(name)),
        };
        if !inspector::is_possible(prompts) {
            if self.is_kept {
                return rejected();
            }
            print::note(&format!(
                "the program may not call `{name}`: it needs approval, and {}; pass --approve \
                 {name} or --yes",
                ask::why_impossible(),
            ));
            return rejected();
        }
        let started = Instant::now();
        let arguments = Value::Object(request.arguments.clone()).to_string();
        let prompt = || OperatorPrompt {
            annotations: request.tool.annotations,
            ..PromptedCall { tool: name, arguments: &arguments, caller: PROGRAM, session: None }
                .form(PromptKind::Approval, APPROVAL_REASON)
        };
        let at_terminal = ask_about_program(name, &arguments);
        let pages = prompts.map(|prompts| (prompts, prompt()));
        match inspector::first_answer(pages, at_terminal).await {
            Some(FirstAnswer::Elsewhere(decision)) => decision,
            Some(FirstAnswer::Operator(PromptAnswer::Approved)) => {
                self.record(&request, "approved", started.elapsed());
                code::Decision::Approved
            }
            Some(FirstAnswer::Operator(PromptAnswer::Denied(reason))) => {
                self.record(&request, "denied", started.elapsed());
                let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
                let rejection = format!("the user did not approve the call to '{name}'{reason}");
                code::Decision::Rejected(rejection)
            }
            _ => rejected(),
        }
    }
}

fn no_one(name: &str) -> String {
    format!("no user can be asked to approve the call to '{name}'")
}

/// Asks at the terminal about a call of a program.
async fn ask_about_program(name: &str, arguments: &str) -> code::Decision {
    let question = format!("the program wants to call `{name}` with");
    print::note(&print::with_prefix(&question, &print::arguments(arguments)));
    for _ in 0..ATTEMPTS_MAX {
        let typed = ask::choice_later("Allow it? [y]es, [N]o: ").await;
        match typed.to_ascii_lowercase().as_str() {
            "y" | "yes" => return code::Decision::Approved,
            "" | "n" | "no" => break,
            _ => {}
        }
    }
    code::Decision::Rejected(format!("the user did not approve the call to '{name}'"))
}

/// Asks about one call that the label policy would block. The approval is never permanent
/// (`LBL-11`).
async fn ask_user_despite(request: &ApprovalRequest, against: &[&str]) -> MessageContent {
    show(request);
    against.iter().for_each(|reason| print::note(&format!("  against it: {reason}")));
    for _ in 0..ATTEMPTS_MAX {
        let typed = ask::choice_later("Allow it this once? [y]es, [N]o: ").await;
        match typed.to_ascii_lowercase().as_str() {
            "y" | "yes" => return request.approve(),
            "" | "n" | "no" => return request.refuse(None),
            _ => {}
        }
    }
    request.refuse(None)
}

fn show(request: &ApprovalRequest) {
    let call = &request.function_call;
    let arguments = print::arguments(&call.arguments);
    let caller = if request.is_of_program() { "program" } else { "model" };
    print::note(&print::with_prefix(
        &format!("the {caller} wants to call `{}` with", call.name),
        &arguments,
    ));
}

/// Returns the folder of the file that a call of a file-access tool names, and the scope of calls
/// in it with any other arguments.
fn folder_scope(request: &ApprovalRequest) -> Option<(String, Scope)> {
    let call = &request.function_call;
    let arguments: Map<String, Value> = serde_json::from_str(&call.arguments).ok()?;
    let free: Vec<_> = arguments.keys().map(String::as_str).collect();
    let scope = Scope::same_folder(request, FILE_ARGUMENT, &free)?;
    let path = arguments.get(FILE_ARGUMENT)?.as_str()?;
    let (folder, _) = path.rsplit_once('/')?;
    Some((folder.to_owned(), scope))
}

async fn ask_user(
    request: &ApprovalRequest,
    approved: &StandingApprovals,
    session: &Session,
) -> MessageContent {
    show(request);
    let is_file_tool = approved.file_tools.contains(&request.function_call.name);
    let folder = is_file_tool.then(|| folder_scope(request)).flatten();
    let question = match &folder {
        Some((path, _)) => format!(
            "Allow it? [y]es, [N]o, [a]lways this tool, [f]older `{path}` always, \
             [e]xactly this always: "
        ),
        None => "Allow it? [y]es, [N]o, [a]lways this tool, [e]xactly this always: ".to_owned(),
    };
    for _ in 0..ATTEMPTS_MAX {
        let typed = ask::choice_later(&question).await;
        let rule = match typed.to_ascii_lowercase().as_str() {
            "y" | "yes" => return request.approve(),
            "f" | "folder" if folder.is_some() => folder.map(|(_, scope)| scope),
            "a" | "always" => Scope::every_call(request),
            "e" | "exactly" => Scope::same_call(request),
            "" | "n" | "no" => {
                let reason = ask::ask_async("Reason for the model [none]: ").await;
                return request.refuse(Some(reason).filter(|reason| !reason.is_empty()));
            }
            _ => continue,
        };
        if let Some(rule) = rule {
            allow_always(session, rule);
        }
        return request.approve();
    }
    request.refuse(None)
}
