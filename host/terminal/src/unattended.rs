//! Replaces the terminal on systems where this crate cannot tell typed input from pasted input.
//! Every question is refused, as with `--no-input`.

use crate::{Input, InputKind};

/// Returns whether an operator can be asked, which is never the case.
#[must_use]
pub fn is_interactive() -> bool {
    false
}

/// Shows questions and prompts in bold from now on. There are none.
pub fn embolden_prompts() {}

/// Returns the end of the input.
#[must_use]
pub fn read_line_blocking(_question: &str, _kind: InputKind) -> Input {
    Input::End
}

/// Returns the end of the input.
pub async fn read_line(_question: &str, _kind: InputKind) -> Input {
    Input::End
}

/// Restores the settings that the terminal had before reading began. Nothing changes them.
pub fn restore() {}
