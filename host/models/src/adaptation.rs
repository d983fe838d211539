//! Adaptation of requests to a model that refuses a part of them.
//!
//! No API says which parts of a request a model accepts, and a table of models would be outdated
//! with every release. So the client sends what was asked for. If the provider refuses a part that
//! the request can do without, the client sends the request again without that part, and leaves it
//! out of later requests.
//!
//! A refusal is recognized by its code or by the field that it names. The Messages API and many
//! servers name the field only in their message, so the message is searched for names of fields,
//! and never for a sentence. A wrong guess costs one request: only what a provider then accepts is
//! remembered.

use cofferdam_agent::{ChatErrorKind, Role, ToolMode};
use parking_lot::Mutex;

use super::fault::Fault;
use super::prepared::{PreparedRequest, is_reply};

/// Field that requests reasoning in a form to send back. Models that do not reason refuse it.
pub(super) const INCLUDE: &str = "include";
/// Field that restricts function calls. Some models refuse to be forced.
const TOOL_CHOICE: &str = "tool_choice";
/// Parts of the names of the field for a response format, in every API. Some models and many older
/// servers refuse it.
const RESPONSE_FORMAT: [&str; 4] =
    ["response_format", "text.format", "output_config.format", "json_schema"];
/// Fields of deferred functions, and of references to them.
const DEFERRED: [&str; 2] = ["defer_loading", "tool_reference"];
/// Code for a reference to a function that the provider does not find.
const UNRESOLVED: &str = "tool_reference_unresolved";
/// Field of a system message in the middle of a conversation.
const ROLE: &str = "role";

/// Parts that are left out of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Adaptation {
    /// No request for encrypted reasoning.
    pub(super) without_reasoning: bool,
    /// `auto` instead of a choice that forces a call.
    pub(super) without_forced_choice: bool,
    /// A response format as a part of the instructions.
    pub(super) without_format: bool,
    /// Functions that the model has loaded like all others.
    pub(super) without_deferred: bool,
    /// System messages in the middle of a conversation as a part of the user's turn.
    pub(super) without_late_system: bool,
}

/// Adaptation that the requests of one client have in common.
#[derive(Debug, Default)]
pub(super) struct SharedAdaptation(Mutex<Adaptation>);

impl Adaptation {
    /// Returns what to leave out after a refusal; `None` if nothing more can be left out because
    /// of it.
    pub(super) fn after(self, refused: &Fault, asked: &PreparedRequest<'_>) -> Option<Self> {
        if refused.error.kind != ChatErrorKind::Rejected {
            return None;
        }
        let states = |field: &str| {
            refused.parameter.as_deref().is_some_and(|parameter| parameter.starts_with(field))
        };
        let names = |field: &str| states(field) || refused.error.message.contains(field);
        let adapted = if asked.requests_reasoning() && states(INCLUDE) {
            Self { without_reasoning: true, ..self }
        } else if asked.forces_call() && names(TOOL_CHOICE) {
            let model = asked.model();
            tracing::warn!(
                model,
                "the model refuses a forced function call: `auto` is sent instead"
            );
            Self { without_forced_choice: true, ..self }
        } else if asked.format().is_some() && RESPONSE_FORMAT.iter().any(|field| names(field)) {
            let (model, error) = (asked.model(), &refused.error);
            tracing::warn!(
                model,
                %error,
                "the model refuses a response format: it is a part of the instructions instead"
            );
            Self { without_format: true, ..self }
        } else if !asked.deferred.names.is_empty()
            && (refused.code.as_deref() == Some(UNRESOLVED)
                || DEFERRED.iter().any(|field| names(field)))
        {
            Self { without_deferred: true, ..self }
        } else if asked.has_late_system() && names(ROLE) {
            Self { without_late_system: true, ..self }
        } else {
            return None;
        };
        Some(adapted)
    }

    fn merged(self, other: Self) -> Self {
        Self {
            without_reasoning: self.without_reasoning || other.without_reasoning,
            without_forced_choice: self.without_forced_choice || other.without_forced_choice,
            without_format: self.without_format || other.without_format,
            without_deferred: self.without_deferred || other.without_deferred,
            without_late_system: self.without_late_system || other.without_late_system,
        }
    }
}

impl SharedAdaptation {
    pub(super) fn get(&self) -> Adaptation {
        *self.0.lock()
    }

    /// Adds what had to be left out of a request that the provider then accepted.
    pub(super) fn add(&self, adaptation: Adaptation) {
        let mut shared = self.0.lock();
        *shared = shared.merged(adaptation);
    }
}

impl PreparedRequest<'_> {
    /// Returns whether the request asks for encrypted reasoning.
    pub(super) fn requests_reasoning(&self) -> bool {
        let settings = self.settings;
        settings.provider == super::Provider::OpenAiResponses
            && !settings.store
            && !self.adaptation.without_reasoning
    }

    /// Returns the restriction on function calls to send.
    pub(super) fn tool_choice(&self) -> Option<&ToolMode> {
        let asked = self.request.options.tool_choice.as_ref();
        match asked {
            _ if self.is_withheld => Some(&ToolMode::None),
            Some(ToolMode::Required(_)) if self.adaptation.without_forced_choice => {
                Some(&ToolMode::Auto)
            }
            asked => asked,
        }
    }

    /// Returns whether the request has a system message in the middle of the conversation, where
    /// only the Messages API does not always accept one.
    fn has_late_system(&self) -> bool {
        let mut late = self.messages.iter().skip_while(|message| !is_reply(message));
        self.settings.provider == super::Provider::Anthropic
            && !self.adaptation.without_late_system
            && late.any(|message| message.role == Role::System && !message.text().trim().is_empty())
    }

    /// Returns whether the request forces a call of a function that it lists.
    fn forces_call(&self) -> bool {
        match self.tool_choice() {
            Some(ToolMode::Required(None)) => self.has_tools(),
            Some(ToolMode::Required(Some(name))) => {
                self.request.tools.iter().any(|tool| tool.name.as_str() == name)
            }
            _ => false,
        }
    }
}
