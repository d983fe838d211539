//! `cofferdam check`: reports everything that is invalid or weak about a plugin to its author.
//!
//! Loading stops at the first error, but an author needs all of them. Also, a plugin that loads can
//! still be of little use to a model.

use std::fmt::Write;

use cofferdam_engine::{CompileError, LoadError};
use cofferdam_tool::declaration::{DeclarationError, Remark, Review, review};
use serde_json::{Value, json};

use crate::args::{CheckArgs, Global};
use crate::exit::Exit;
use crate::{host, print};
use cofferdam::compose;

pub(crate) async fn run(global: &Global, args: CheckArgs) -> anyhow::Result<Exit> {
    let engine = host::engine(global)?;
    let report = match compose::examine(&engine, &args.component, &host::operator()).await {
        Ok(examined) => {
            CheckReport::new(examined.declarations.len(), review(&examined.declarations))
        }
        Err(error) => CheckReport::of_error(error)?,
    };
    if args.json {
        print::result(&report.json(&args).to_string())?;
    } else {
        print::result(&report.text(&args))?;
    }
    Ok(report.exit(&args))
}

struct CheckReport {
    /// Error that prevented the component from declaring its tools.
    refused: Option<String>,
    tools: usize,
    review: Review,
}

impl CheckReport {
    fn new(tools: usize, mut review: Review) -> Self {
        if tools == 0 {
            review.advice.push(Remark::of_plugin("no-tools", "the plugin offers no tools"));
        }
        Self { refused: None, tools, review }
    }

    /// Reports an error that the component causes. Returns other errors unchanged.
    fn of_error(error: cofferdam::Error) -> anyhow::Result<Self> {
        let cause = match &error {
            cofferdam::Error::Plugin(failed) => Some(failed.cause()),
            _ => None,
        };
        match cause {
            None
            | Some(
                LoadError::Read(_)
                | LoadError::Interrupted
                | LoadError::Engine(_)
                | LoadError::Compile(CompileError::Child(_)),
            ) => Err(error.into()),
            Some(cause) => {
                Ok(Self { refused: Some(cause.to_string()), tools: 0, review: Review::default() })
            }
        }
    }

    fn refusals(&self) -> usize {
        self.review.refusals.len() + usize::from(self.refused.is_some())
    }

    fn exit(&self, args: &CheckArgs) -> Exit {
        let is_bad = self.refusals() > 0 || (args.strict && !self.review.advice.is_empty());
        if is_bad { Exit::Plugin } else { Exit::Ok }
    }

    fn json(&self, args: &CheckArgs) -> Value {
        let remarks = |remarks: &[Remark]| remarks.iter().map(remark).collect::<Vec<_>>();
        let whole = self
            .refused
            .iter()
            .map(|message| json!({"tool": null, "pointer": null, "message": message}));
        let refusals: Vec<_> = whole.chain(self.review.refusals.iter().map(refusal)).collect();
        json!({
            "ok": self.exit(args) == Exit::Ok,
            "tools": self.tools,
            "refusals": refusals,
            "notes": remarks(&self.review.notes),
            "advice": remarks(&self.review.advice),
        })
    }

    fn text(&self, args: &CheckArgs) -> String {
        let mut text = String::new();
        let refusals = self.refused.iter().cloned();
        let refusals = refusals.chain(self.review.refusals.iter().map(ToString::to_string));
        list(&mut text, "Refused: the plugin does not load", refusals);
        remarks(&mut text, "Notes", &self.review.notes);
        remarks(&mut text, "Advice", &self.review.advice);
        let (refusals, notes, advice) =
            (self.refusals(), self.review.notes.len(), self.review.advice.len());
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "{}: {}, {}, {}, {advice} advice",
            args.component.display(),
            print::counted(self.tools, "tool"),
            print::counted(refusals, "refusal"),
            print::counted(notes, "note"),
        );
        text
    }
}

fn list(text: &mut String, heading: &str, lines: impl Iterator<Item = String>) {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return;
    }
    let _ = writeln!(text, "{heading}");
    for line in lines {
        let _ = writeln!(text, "  {line}");
    }
    let _ = writeln!(text);
}

/// Prints remarks, grouped by tool.
fn remarks(text: &mut String, heading: &str, remarks: &[Remark]) {
    let mut about = None;
    list(
        text,
        heading,
        remarks.iter().map(|remark| {
            let tool = if remark.tool.is_empty() { "the plugin" } else { &remark.tool };
            let header = if about == Some(tool) { String::new() } else { format!("{tool}\n  ") };
            about = Some(tool);
            let at = if remark.pointer.is_empty() {
                String::new()
            } else {
                format!("{}: ", remark.pointer)
            };
            format!("{header}  {at}{}", remark.message)
        }),
    );
}

fn refusal(error: &DeclarationError) -> Value {
    let (tool, pointer) = match error {
        DeclarationError::Tool { tool, pointer, .. } => (Some(tool), Some(pointer)),
        _ => (None, None),
    };
    json!({"tool": tool, "pointer": pointer, "message": error.to_string()})
}

fn remark(remark: &Remark) -> Value {
    json!({"rule": remark.rule, "tool": remark.tool, "pointer": remark.pointer, "message": remark.message})
}
