//! Options of a request that an API does not have. They are errors, because a caller who sets one
//! relies on it.

use cofferdam_agent::{ChatError, ChatErrorKind, ChatOptions, Effort};

use super::Provider;

/// Checks that the API of a provider has all options of a request.
pub(super) fn check(provider: Provider, options: &ChatOptions) -> Result<(), ChatError> {
    let (has_stop, has_seed) = match provider {
        Provider::OpenAiChat => (true, true),
        Provider::OpenAiResponses => (false, false),
        Provider::Anthropic => (true, false),
    };
    let is_low = |effort: &Effort| matches!(effort, Effort::None | Effort::Minimal);
    let effort = options.effort.filter(is_low).filter(|_| provider == Provider::Anthropic);
    let option = if !has_stop && !options.stop.is_empty() {
        "option `stop`".to_owned()
    } else if !has_seed && options.seed.is_some() {
        "option `seed`".to_owned()
    } else if let Some(effort) = effort {
        format!("effort `{effort}`")
    } else {
        return Ok(());
    };
    let message = format!("the API of the provider `{provider}` has no {option}: remove it");
    Err(ChatError::new(ChatErrorKind::Configuration, message))
}
