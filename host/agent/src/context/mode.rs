//! Plan mode and execute mode of a session (`LOOP-63`).

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::ToolDefinition;
use cofferdam_tool::declaration::DeclarationError;
use cofferdam_tool::label::StatedLabels;
use serde_json::{Map, Value, json};

use super::announcement;
use super::tools::{SessionFunctions, SessionTools, compiled, declare};
use crate::{AfterRun, BeforeRun, BoxError, ContextProvider, Session};

/// Source id, and key of the mode in the session's state.
const SOURCE_ID: &str = "mode";
/// Tool that changes the mode.
const SET: &str = "mode_set";
/// Instructions for the model; they never change, so that caches stay valid.
const INSTRUCTIONS: &str = "You work in one of two modes, and messages tell you which. In the mode \
'plan', only tools that change nothing can be used: find out what you need to know and present a \
plan. In the mode 'execute', carry the plan out.";
/// Result of a call that the plan mode denies (`LOOP-60`).
const DENIED: &str = "Error: The mode is 'plan', in which only tools that change nothing can be \
used. Present your plan first; calls that change something are possible in the mode 'execute'.";

/// Mode of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Only tools that change nothing run.
    #[default]
    Plan,
    /// All tools run.
    Execute,
}

/// Error returned for a word that is not a mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Invalid mode: {0}. Supported modes are 'plan', 'execute'.")]
pub struct InvalidMode(pub String);

/// Gives a session a plan mode, in which only tools run that declare themselves read-only.
///
/// The program changes the mode with [`set`](Self::set). The model can ask for it with the tool
/// `mode_set`; the user has to approve the change from plan to execute, unless the agent's
/// approvals allow it.
///
/// A tool's author makes the declaration, and a false one bypasses the mode, so this is a working
/// mode and not a security boundary for tools of untrusted authors.
///
/// ```
/// use cofferdam_agent::{Agent, Mode, PlanMode, ScriptedClient, Session};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let model = ScriptedClient::read("script", br#"{"text":"First, measure."}"#.as_slice())?;
/// let mode = PlanMode::new()?.allow("notes_write");
/// let agent = Agent::builder(model).context_provider(mode.clone()).build()?;
/// let session = Session::new();
/// agent.run("Make a shelf.").session(&session).await?;
/// assert_eq!(mode.of(&session), Mode::Plan);
/// PlanMode::set(&session, Mode::Execute);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct PlanMode {
    initial: Mode,
    allowed: Arc<BTreeSet<String>>,
    definitions: Arc<[Arc<ToolDefinition>]>,
}

impl PlanMode {
    /// Creates the provider. Sessions begin in the plan mode.
    ///
    /// # Errors
    /// The declaration of a tool is invalid. A test checks that this does not happen.
    pub fn new() -> Result<Self, DeclarationError> {
        let mode = json!({"mode": {"type": "string", "description": "'plan' or 'execute'."}});
        let definitions = compiled(&[
            declare(SET, "Changes the mode.", &mode, &["mode"], false),
            declare("mode_get", "Returns the current mode.", &json!({}), &[], false),
        ])?;
        Ok(Self { initial: Mode::Plan, allowed: Arc::default(), definitions })
    }

    /// Sets the mode in which sessions begin.
    #[must_use]
    pub fn beginning_with(mut self, mode: Mode) -> Self {
        self.initial = mode;
        self
    }

    /// Lets a tool run in the plan mode although it does not declare itself read-only.
    #[must_use]
    pub fn allow(mut self, tool: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.allowed).insert(tool.into());
        self
    }

    /// Removes the tool `mode_set`, so that only the program changes the mode.
    #[must_use]
    pub fn without_switch(mut self) -> Self {
        let others = self.definitions.iter().filter(|tool| tool.name.as_str() != SET);
        self.definitions = others.cloned().collect();
        self
    }

    /// Returns the mode of a session.
    #[must_use]
    pub fn of(&self, session: &Session) -> Mode {
        self.stored(&session.part(SOURCE_ID))
    }

    /// Changes the mode of a session. A running call is not stopped; the next run tells the model.
    pub fn set(session: &Session, mode: Mode) {
        session.update_part(SOURCE_ID, |state| {
            announcement::set_members(state, [(SOURCE_ID.to_owned(), mode.as_str().into())]);
        });
    }

    fn stored(&self, state: &Value) -> Mode {
        let word = state.get(SOURCE_ID).and_then(Value::as_str);
        word.and_then(|word| word.parse().ok()).unwrap_or(self.initial)
    }
}

impl Mode {
    /// Returns the word for the mode: `plan` or `execute`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Execute => "execute",
        }
    }
}

impl FromStr for Mode {
    type Err = InvalidMode;

    fn from_str(word: &str) -> Result<Self, InvalidMode> {
        let modes = [Self::Plan, Self::Execute];
        let named = modes.into_iter().find(|mode| mode.as_str().eq_ignore_ascii_case(word.trim()));
        named.ok_or_else(|| InvalidMode(word.trim().to_owned()))
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[async_trait]
impl ContextProvider for PlanMode {
    fn source_id(&self) -> &str {
        SOURCE_ID
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    async fn before_run(&self, run: &mut BeforeRun<'_>) -> Result<(), BoxError> {
        run.add_instructions(INSTRUCTIONS);
        let description = described(self.stored(run.state));
        announcement::announce(run, &description, false);
        let session = run.session.cloned().unwrap_or_default();
        let (mode, of_run) = (self.clone(), session.clone());
        run.deny_tools(move |tool| {
            let is_safe = tool.annotations.read_only == Some(true)
                || mode.allowed.contains(tool.name.as_str());
            (!is_safe && mode.of(&of_run) == Mode::Plan).then(|| DENIED.to_owned())
        });
        SessionTools::new(SOURCE_ID, &self.definitions, self.clone(), session).add_to(run);
        Ok(())
    }

    async fn after_run(&self, run: &mut AfterRun<'_>) -> Result<(), BoxError> {
        let description = described(self.stored(run.state));
        announcement::note(run, &description);
        Ok(())
    }
}

fn described(mode: Mode) -> String {
    format!("[Mode: {mode}]")
}

#[async_trait]
impl SessionFunctions for PlanMode {
    async fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        session: &Session,
    ) -> Result<Value, String> {
        if tool != SET {
            return Ok(json!({"mode": self.of(session).as_str()}));
        }
        let word = arguments.get("mode").and_then(Value::as_str).unwrap_or_default();
        let mode: Mode = word.parse().map_err(|error: InvalidMode| error.to_string())?;
        Self::set(session, mode);
        Ok(json!({"mode": mode.as_str(), "message": format!("Mode changed to '{mode}'.")}))
    }

    /// Leaving the plan mode must not be the idea of untrusted data.
    fn labels(&self, tool: &str) -> StatedLabels {
        StatedLabels { accepts_untrusted: Some(tool != SET), ..StatedLabels::default() }
    }

    /// Requires approval to leave the plan mode.
    fn needs_approval(&self, tool: &str, arguments: Option<&Map<String, Value>>) -> bool {
        let Some(arguments) = arguments else { return tool == SET };
        let word = arguments.get("mode").and_then(Value::as_str).unwrap_or_default();
        tool == SET && word.parse() == Ok(Mode::Execute)
    }
}
