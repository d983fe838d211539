//! Errors of code mode.

use cofferdam_tool::DuplicateTool;
use cofferdam_tool::ToolName;
use cofferdam_tool::declaration::DeclarationError;

/// Error returned when code mode cannot be set up.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// Two tools would have the same name in a program.
    #[error(
        "the tools '{first}' and '{second}' would both be `tools.{identifier}` in a program; \
         rename one of them"
    )]
    SameIdentifier {
        /// First of the two tools.
        first: ToolName,
        /// Second of the two tools.
        second: ToolName,
        /// Identifier that both would have.
        identifier: String,
    },
    /// The interpreter has no tool `run_code`.
    #[error("`{name}` is not an interpreter: it has no tool `run_code`")]
    NoInterpreter {
        /// Name of the source.
        name: String,
    },
    /// The description of the tool exceeds a limit of declarations.
    #[error(transparent)]
    Declaration(#[from] DeclarationError),
    /// A tool has a name that programs use for something else.
    #[error(transparent)]
    TakenName(#[from] DuplicateTool),
}
