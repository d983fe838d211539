//! Inspector of a command that runs tools, and questions that its pages can answer.

use cofferdam::config::ConfigFile;
use cofferdam::inspector::{Inspector, InspectorOptions, options_ambient};
use cofferdam_tool::Toolset;
use cofferdam_tool::prompt::{FirstAnswer, OperatorPrompt, PendingPrompts, PromptKind, PromptText};
use tokio_util::sync::CancellationToken;

use crate::args::InspectorFlag;
use crate::exit::UsageError;
use crate::{ask, print};

/// Reason of every approval.
pub(crate) const APPROVAL_REASON: &str = "A call of this tool needs approval.";
/// End of a prompt that was answered at the terminal first.
const AT_TERMINAL: &str = "answered at the terminal";

/// Returns the prompts that the pages of a command show, if it has any.
pub(crate) fn prompts(flag: Option<&InspectorFlag>) -> Option<PendingPrompts> {
    flag.map(|flag| PendingPrompts::new(flag.approves))
}

/// Returns the options of the pages of a command that runs tools.
pub(crate) fn options(
    config: Option<&ConfigFile>,
    prompts: Option<PendingPrompts>,
) -> anyhow::Result<InspectorOptions> {
    Ok(InspectorOptions { prompts, ..options_ambient(config, None)? })
}

/// Starts the pages of a command, and prints their address.
pub(crate) async fn start(
    flag: &InspectorFlag,
    options: InspectorOptions,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let listening = Inspector::listen(options, flag.address).await;
    let (inspector, listener) = listening.map_err(|error| UsageError(error.to_string()))?;
    let address = inspector.login_address()?;
    print::note(&format!("inspector, once and within five minutes: {address}"));
    tokio::spawn(async move { inspector.serve(listener, stop).await });
    Ok(())
}

/// Returns whether an operator can be asked, at the terminal or on a page.
pub(crate) fn is_possible(prompts: Option<&PendingPrompts>) -> bool {
    ask::is_possible() || prompts.is_some_and(PendingPrompts::accepts_answers)
}

/// Asks at the terminal, if there is one, and on the pages. The first answer counts, and the
/// question is withdrawn from the other one. Returns `None` if there is no answer.
pub(crate) async fn first_answer<T>(
    prompt: Option<(&PendingPrompts, OperatorPrompt)>,
    at_terminal: impl Future<Output = T>,
) -> Option<FirstAnswer<T>> {
    let accepts_answers = prompt.as_ref().is_some_and(|(prompts, _)| prompts.accepts_answers());
    let open = prompt.and_then(|(prompts, prompt)| prompts.open(prompt));
    let answer = match open {
        Some(open) if ask::is_possible() => open.answer_or(at_terminal, AT_TERMINAL).await,
        Some(open) if accepts_answers => {
            print::note("waiting for an answer in the inspector");
            FirstAnswer::Operator(open.answer_in_time().await?)
        }
        None if ask::is_possible() => FirstAnswer::Elsewhere(at_terminal.await),
        _ => return None,
    };
    if let FirstAnswer::Operator(answer) = &answer {
        print::note(&format!("{} in the inspector", answer.word()));
    }
    Some(answer)
}

/// Call that a prompt is about.
pub(crate) struct PromptedCall<'c> {
    pub(crate) tool: &'c str,
    /// Arguments as JSON.
    pub(crate) arguments: &'c str,
    /// Command or agent that calls.
    pub(crate) caller: &'c str,
    pub(crate) session: Option<&'c str>,
}

impl PromptedCall<'_> {
    /// Returns a prompt whether the call may run. `against` are the objections of the label policy.
    pub(crate) fn approval(&self, toolset: &Toolset, against: &[&str]) -> OperatorPrompt {
        let objections = against.iter().map(|reason| format!("\nAgainst it: {reason}"));
        let reasons = std::iter::once(APPROVAL_REASON.to_owned()).chain(objections);
        let toolset = toolset.unrestricted();
        let definition = toolset.definition(self.tool).ok();
        OperatorPrompt {
            source: toolset
                .source(self.tool)
                .map(|source| source.name().to_owned())
                .unwrap_or_default(),
            annotations: definition.map(|definition| definition.annotations).unwrap_or_default(),
            ..self.form(PromptKind::Approval, &reasons.collect::<String>())
        }
    }

    /// Returns a prompt with a question.
    pub(crate) fn form(&self, kind: PromptKind, message: &str) -> OperatorPrompt {
        OperatorPrompt {
            kind,
            tool: self.tool.to_owned(),
            source: String::new(),
            caller: self.caller.to_owned(),
            session: self.session.map(str::to_owned),
            arguments: PromptText::new(self.arguments),
            message: PromptText::new(message),
            annotations: Default::default(),
        }
    }
}
