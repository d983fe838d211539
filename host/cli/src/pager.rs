//! Pager for long results on a terminal, chosen as git does.
//!
//! `COFFERDAM_PAGER` or else `PAGER` names a command, which the shell runs; without either it is
//! `less`. An empty value or `cat` means none. The text is escaped before it gets here. A pager that
//! the user leaves early is no error, and one that does not start shows nothing: the caller prints
//! the text instead.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Pager of users who name none.
const DEFAULT: &str = "less";
/// Options of `less` for users who have set none, those of git: end if the text fits on the screen,
/// show colors, leave the text on the screen.
const LESS: &str = "FRX";
/// Exit codes of a shell that could not run a command.
const NOT_RUN: [i32; 2] = [126, 127];

/// Shows text in the pager, and waits until the user leaves it. Returns false if there is none.
pub(crate) fn show(text: &str) -> bool {
    let Some(mut command) = command() else { return false };
    // Ctrl-C is for the pager, which would otherwise be left without this process.
    #[cfg(unix)]
    let _interrupts = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt());
    let Ok(mut pager) = command.stdin(Stdio::piped()).spawn() else { return false };
    if let Some(mut input) = pager.stdin.take() {
        // Fails if the user leaves the pager before it has read everything.
        let _ = input.write_all(text.as_bytes()).and_then(|()| input.write_all(b"\n"));
    }
    let ended = pager.wait().ok().and_then(|status| status.code());
    !ended.is_some_and(|code| NOT_RUN.contains(&code))
}

/// Returns the command of the pager, if there is one. On Windows there is none: its shell has other
/// rules.
fn command() -> Option<Command> {
    if cfg!(windows) {
        return None;
    }
    let chosen = ["COFFERDAM_PAGER", "PAGER"].into_iter().find_map(std::env::var_os);
    let mut command = command_of(chosen)?;
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", LESS);
    }
    Some(command)
}

/// Returns the command that the user has chosen, or that of the default.
fn command_of(chosen: Option<OsString>) -> Option<Command> {
    let Some(chosen) = chosen else { return Some(Command::new(DEFAULT)) };
    if chosen.is_empty() || chosen == "cat" {
        return None;
    }
    let mut command = Command::new("sh");
    command.arg("-c").arg(chosen);
    Some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_runs_a_chosen_pager_and_cat_is_none() {
        let program = |chosen: Option<&str>| {
            let command = command_of(chosen.map(OsString::from))?;
            Some(format!("{command:?}"))
        };
        assert_eq!(program(None).as_deref(), Some(r#""less""#));
        assert_eq!(program(Some("more -d")).as_deref(), Some(r#""sh" "-c" "more -d""#));
        assert_eq!((program(Some("")), program(Some("cat"))), (None, None));
    }
}
