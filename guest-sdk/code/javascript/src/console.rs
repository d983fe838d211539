//! `console`: what a program prints becomes the logs of its result.

use std::fmt::Write as _;
use std::rc::Rc;

use rquickjs::{Ctx, Function, Object, Value};

use crate::convert::{self, Mode};
use crate::engine::Arguments;
use crate::raw;
use crate::run::with_run;

/// Maximum size of the logs.
const LOGS_BYTES_MAX: usize = 64 << 10;

/// Lines that a program has printed.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    text: String,
    /// Number of lines that did not fit.
    more: usize,
}

impl Logs {
    fn room(&self) -> usize {
        if self.more > 0 { 0 } else { LOGS_BYTES_MAX.saturating_sub(self.text.len()) }
    }

    /// Adds a message, which may have several lines.
    fn add(&mut self, message: &str) {
        for line in message.split('\n') {
            if line.len() < self.room() {
                self.text.push_str(line);
                self.text.push('\n');
            } else {
                self.more += 1;
            }
        }
    }

    /// Returns the text, without a line end.
    pub(crate) fn finish(&mut self) -> String {
        let mut text = std::mem::take(&mut self.text);
        match std::mem::take(&mut self.more) {
            0 => {}
            1 => text.push_str("… 1 more line"),
            more => {
                let _ = write!(text, "… {more} more lines");
            }
        }
        text.truncate(text.trim_end_matches('\n').len());
        text
    }
}

/// Installs `console`.
pub(crate) fn install(globals: &Object<'_>) -> rquickjs::Result<()> {
    let ctx = globals.ctx();
    let console = Object::new(ctx.clone())?;
    for name in ["log", "info", "warn", "error", "debug"] {
        console.set(name, Function::new(ctx.clone(), log)?.with_name(name)?)?;
    }
    globals.prop("console", rquickjs::object::Property::from(console).writable().configurable())
}

fn log<'js>(ctx: Ctx<'js>, values: Arguments<'js>) -> rquickjs::Result<()> {
    let room = with_run(|run| run.logs.room());
    if room == 0 {
        with_run(|run| run.logs.more += 1);
        return Ok(());
    }
    let mut message = String::new();
    for (index, value) in values.0.iter().enumerate() {
        if index > 0 {
            message.push(' ');
        }
        show(&ctx, value, room, &mut message)?;
    }
    with_run(|run| run.logs.add(&message));
    Ok(())
}

/// Appends a value as text. What is longer than `room` is cut.
fn show<'js>(
    ctx: &Ctx<'js>,
    value: &Value<'js>,
    room: usize,
    message: &mut String,
) -> rquickjs::Result<()> {
    if let Some(text) = value.as_string() {
        let shown = raw::with_text(text, |text| {
            let end = text.floor_char_boundary(room);
            message.push_str(text.get(..end).unwrap_or_default());
            if end < text.len() {
                message.push('…');
            }
        });
        return shown.ok_or(rquickjs::Error::Exception);
    }
    if value.is_undefined() {
        message.push_str("undefined");
        return Ok(());
    }
    if value.is_error() || !value.is_object() || value.is_function() {
        let text = raw::to_string(ctx, value)?;
        return show(ctx, text.as_value(), room, message);
    }
    let intrinsics = with_run(|run| Rc::clone(&run.saved)).restore(ctx)?;
    match convert::json(value, &intrinsics, room, Mode::Shown) {
        Ok(json) => message.push_str(&json),
        Err(convert::Unwritable::Thrown(error)) => return Err(error),
        Err(_) => message.push_str("[a value that is too long]"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_do_not_fit_are_counted() {
        let mut logs = Logs::default();
        logs.add("first");
        let long = "x".repeat(LOGS_BYTES_MAX);
        logs.add(&long);
        logs.add("a\nb");
        assert_eq!(logs.finish(), "first\n… 3 more lines");
    }
}
