//! Programs that a provider runs and that call the functions of a request.
//!
//! A program is an item of the reply. Its calls name it as their caller, and it waits until their
//! results arrive in the next request. The calls are like those of the model for everything else.

use std::collections::HashSet;

use cofferdam_agent::{ChatError, ChatErrorKind, Message, MessageContent};
use serde_json::{Map, Value, json};

use super::{Provider, ProviderSettings};

/// Field of a call with its caller.
pub(super) const CALLER: &str = "caller";
/// Version of Anthropic's tool for programs that can call functions.
const CODE_EXECUTION: &str = "code_execution_20260120";

/// Declaration of programs in a request.
#[derive(Debug)]
pub(super) struct HostedPrograms {
    /// Tool that runs programs.
    pub(super) tool: Value,
    /// Name of programs in the list of those who can call a function.
    caller: &'static str,
    /// True if programs can call functions whose schemas the provider enforces.
    calls_strict: bool,
}

impl HostedPrograms {
    /// Returns the declaration for these settings, if programs are on.
    ///
    /// # Errors
    /// [`ChatErrorKind::Configuration`] if the API has no programs, or if the service keeps the
    /// conversation.
    pub(super) fn of(settings: &ProviderSettings) -> Result<Option<Self>, ChatError> {
        if !settings.hosted_programs {
            return Ok(None);
        }
        let refused = |message: String| ChatError::new(ChatErrorKind::Configuration, message);
        match settings.provider {
            Provider::OpenAiResponses if settings.store => Err(refused(
                "programs of the provider need the whole conversation in each request: turn \
                 `store` off"
                    .to_owned(),
            )),
            Provider::OpenAiResponses => Ok(Some(Self {
                tool: json!({"type": "programmatic_tool_calling"}),
                caller: "programmatic",
                calls_strict: true,
            })),
            Provider::Anthropic => Ok(Some(Self {
                tool: json!({"type": CODE_EXECUTION, "name": "code_execution"}),
                caller: CODE_EXECUTION,
                calls_strict: false,
            })),
            Provider::OpenAiChat => Err(refused(format!(
                "the provider `{}` runs no programs; `{}` and `{}` do",
                settings.provider,
                Provider::OpenAiResponses,
                Provider::Anthropic,
            ))),
        }
    }

    /// Allows programs to call a function.
    pub(super) fn allow(&self, tool: &mut Map<String, Value>, is_strict: bool) {
        if self.calls_strict || !is_strict {
            tool.insert("allowed_callers".to_owned(), json!(["direct", self.caller]));
        }
    }
}

/// Returns the ids of the programs of a conversation, which are in the field `key` of items of the
/// type `kind`.
pub(super) fn programs<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    kind: &str,
    key: &str,
) -> HashSet<&'m str> {
    let contents = messages.into_iter().flat_map(|message| &message.contents);
    let items = contents.filter_map(|content| match content {
        MessageContent::Reasoning(reasoning) => reasoning.opaque.as_ref()?.as_array(),
        _ => None,
    });
    let text = |item: &'m Value, key: &str| item.get(key).and_then(Value::as_str);
    let items = items.flatten().filter(|item| text(item, "type") == Some(kind));
    items.filter_map(|item| text(item, key)).collect()
}
