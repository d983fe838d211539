//! Calls that the operator has to approve.

use cofferdam_agent::{ApprovalRequest, MessageContent, Scope, Session, allow_always};

use crate::{ask, print};

/// Maximum number of questions after an invalid answer.
const ATTEMPTS_MAX: u32 = 3;

/// Approvals that need no question.
pub(super) struct StandingApprovals {
    /// Everything.
    pub(super) all: bool,
    /// Every call of these tools.
    pub(super) tools: Vec<String>,
}

/// Result of an approval request.
pub(super) struct ApprovalOutcome {
    /// The answer for the model's turn.
    pub(super) answer: MessageContent,
    /// True if it was refused because there was no operator to ask.
    pub(super) is_unasked: bool,
}

/// Gets an answer to a request. Dropping the future is no answer.
pub(super) async fn answer(
    request: &ApprovalRequest,
    approved: &StandingApprovals,
    session: &Session,
) -> ApprovalOutcome {
    let call = &request.function_call;
    let against: Vec<_> = request.violations().collect();
    // Flags were written before it was known what the model would have seen.
    if against.is_empty() && (approved.all || approved.tools.contains(&call.name)) {
        return ApprovalOutcome { answer: request.approve(), is_unasked: false };
    }
    if !ask::is_possible() && !against.is_empty() {
        print::note(&format!(
            "`{}` was not called: the label policy is against it, and {}",
            call.name,
            ask::why_impossible()
        ));
        let reason = "Nobody is there to approve it.".to_owned();
        return ApprovalOutcome { answer: request.refuse(Some(reason)), is_unasked: true };
    }
    if !ask::is_possible() {
        print::note(&format!(
            "`{}` was not called: it needs approval, and {}; pass --approve {} or --yes",
            call.name,
            ask::why_impossible(),
            call.name
        ));
        let reason = "Nobody is there to approve it.".to_owned();
        return ApprovalOutcome { answer: request.refuse(Some(reason)), is_unasked: true };
    }
    let answer = match against.is_empty() {
        true => asked(request, session).await,
        false => asked_despite(request, &against).await,
    };
    ApprovalOutcome { answer, is_unasked: false }
}

/// Asks about one call that the label policy would block. Nothing of this kind is allowed for
/// always (`LBL-11`).
async fn asked_despite(request: &ApprovalRequest, against: &[&str]) -> MessageContent {
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
    print::note(&print::marked(
        &format!("the model wants to call `{}` with", call.name),
        &arguments,
    ));
}

async fn asked(request: &ApprovalRequest, session: &Session) -> MessageContent {
    show(request);
    for _ in 0..ATTEMPTS_MAX {
        let typed =
            ask::choice_later("Allow it? [y]es, [N]o, [a]lways this tool, [e]xactly this always: ")
                .await;
        let rule = match typed.to_ascii_lowercase().as_str() {
            "y" | "yes" => return request.approve(),
            "a" | "always" => Scope::every_call(request),
            "e" | "exactly" => Scope::same_call(request),
            "" | "n" | "no" => {
                let reason = ask::text_later("Reason for the model [none]: ").await;
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
