//! Exit codes: one meaning each, the same for every command.

use cofferdam::ErrorKind;
use cofferdam::config::ConfigError;
use cofferdam_engine::LoadError;
use cofferdam_tool::Outcome;

/// Exit code of the process. `docs/cli.md` and `cofferdam --help` list the same table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command did what was asked; a tool returned a value.
    Ok = 0,
    /// The tool reported a failure of its own.
    ToolFailure = 1,
    /// Bad usage: flags, an unknown tool, arguments that do not decode, a configuration with
    /// errors.
    Usage = 2,
    /// The call ended in an error: a trap, a limit, a denied capability, an invalid result.
    ToolError = 3,
    /// A plugin cannot be loaded or has changed without consent, a server or the service behind a
    /// file store cannot be reached, a call was not approved, or `check --strict` has advice.
    Plugin = 4,
    /// The host itself failed, for example because a file cannot be written.
    Internal = 5,
    /// Interrupted by Ctrl-C.
    Interrupted = 130,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl Exit {
    /// The code for how a call ended.
    pub(crate) fn of_outcome(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Ok(_) => Self::Ok,
            Outcome::Failure(_) => Self::ToolFailure,
            Outcome::Cancelled => Self::Interrupted,
            _ => Self::ToolError,
        }
    }
}

/// The input of the operator is at fault.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// A plugin is not used, or a call not made, because the operator has not agreed to it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ConsentError(pub(crate) String);

/// The code for an error that ended a command.
pub(crate) fn of(error: &anyhow::Error) -> Exit {
    if error.is::<UsageError>() || error.is::<ConfigError>() {
        return Exit::Usage;
    }
    if error.is::<LoadError>() || error.is::<ConsentError>() {
        return Exit::Plugin;
    }
    match error.downcast_ref::<cofferdam::Error>().map(cofferdam::Error::kind) {
        Some(ErrorKind::Invalid) => Exit::Usage,
        Some(ErrorKind::Unavailable) => Exit::Plugin,
        _ => Exit::Internal,
    }
}
