//! Exit codes. Each code has one meaning, the same for every command.

use cofferdam::ErrorKind;
use cofferdam::config::ConfigError;
use cofferdam::record::OtlpError;
use cofferdam_engine::LoadError;
use cofferdam_tool::Outcome;

/// Exit code of the process. `docs/cli.md` and `cofferdam --help` list the same table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command succeeded; a tool returned a value.
    Ok = 0,
    /// The tool reported a failure.
    ToolFailure = 1,
    /// Usage error: invalid flags, an unknown tool, arguments that do not decode, or an invalid
    /// configuration.
    Usage = 2,
    /// The call ended in an error: a trap, a limit, a denied permission or an invalid result.
    ToolError = 3,
    /// Something is unavailable: a plugin cannot be loaded or has changed without consent, a server
    /// or the service behind a file store cannot be reached, a call was not approved, an advisory
    /// affects a plugin (`audit`), there is advice with `check --strict`, or `doctor` has found a
    /// problem.
    Plugin = 4,
    /// The host failed, for example because it cannot write a file.
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
    /// Returns the name of an error with this exit code in JSON.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolFailure => "tool_failure",
            Self::Usage => "usage",
            Self::ToolError => "tool_error",
            Self::Plugin => "unavailable",
            Self::Internal => "internal",
            Self::Interrupted => "interrupted",
        }
    }

    /// Returns the exit code for the outcome of a call.
    pub(crate) fn of_outcome(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Ok(_) => Self::Ok,
            Outcome::Failure(_) => Self::ToolFailure,
            Outcome::Cancelled => Self::Interrupted,
            _ => Self::ToolError,
        }
    }
}

/// Error in the operator's input.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// Error because the operator has not agreed to load a plugin or to run a call.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ConsentError(pub(crate) String);

/// Returns the exit code for an error that ended a command.
pub(crate) fn of(error: &anyhow::Error) -> Exit {
    if error.is::<UsageError>() || error.is::<ConfigError>() {
        return Exit::Usage;
    }
    if error.is::<LoadError>() || error.is::<ConsentError>() {
        return Exit::Plugin;
    }
    if let Some(OtlpError::Connection { .. }) = error.downcast_ref() {
        return Exit::Plugin;
    }
    let kind = error.downcast_ref::<cofferdam::Error>().map(cofferdam::Error::kind);
    of_kind(kind.unwrap_or(ErrorKind::Failed))
}

fn of_kind(kind: ErrorKind) -> Exit {
    match kind {
        ErrorKind::Invalid => Exit::Usage,
        ErrorKind::Unavailable => Exit::Plugin,
        _ => Exit::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_host_have_the_exit_codes_that_the_pipe_protocol_tells() {
        for kind in [ErrorKind::Invalid, ErrorKind::Unavailable, ErrorKind::Failed] {
            assert_eq!(kind.exit_code(), of_kind(kind) as u8);
        }
    }
}
