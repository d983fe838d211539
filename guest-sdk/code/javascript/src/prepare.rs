//! Turns a program of a model into JavaScript that the engine can run: parses it, checks it and
//! removes types.

mod depth;

use oxc_allocator::Allocator;
use oxc_parser::{ParseOptions, Parser};
use oxc_span::SourceType;

use crate::catalog::Catalog;
use crate::checks::{self, Problem};
use crate::failure::Failure;
use crate::scan::{self, Facts};
use crate::source::{Changed, Position};

/// Start of the text that runs. The program's first line is the second one.
const BEFORE: &str = "(async () => {\n";
const AFTER: &str = "\n})()";

/// A program that can run.
pub(crate) struct Prepared {
    /// Its text and the way back to positions of the model's text.
    pub(crate) changed: Changed,
    /// Which tools it uses.
    pub(crate) tools: Tools,
}

/// Tools that a program can reach.
pub(crate) enum Tools {
    /// Those with these identifiers, possibly none.
    Named(Vec<String>),
    /// Any: the program computes names.
    All,
}

/// Prepares a program.
///
/// # Errors
/// A failure that names all problems.
pub(crate) fn prepare<'c>(
    code: &str,
    catalog: &dyn Fn() -> &'c Catalog,
) -> Result<Prepared, Failure> {
    if let Some(at) = depth::too_deep(code) {
        let text = "the program is nested too deeply; split it into functions and statements";
        return Err(Failure::syntax(text, Position::of(code, at)));
    }
    let allocator = Allocator::default();
    let options = ParseOptions {
        allow_return_outside_function: true,
        enable_ident_hashes: false,
        ..ParseOptions::default()
    };
    let parsed = Parser::new(&allocator, code, SourceType::ts()).with_options(options).parse();
    if let Some(error) = parsed.diagnostics.errors().next() {
        let at = error.labels.first().map_or(code.len(), |label| label.span().start as usize);
        let message = match &error.help {
            Some(help) => format!("{}; {help}", error.message),
            None => error.message.to_string(),
        };
        return Err(Failure::syntax(&message, Position::of(code, at)));
    }
    let facts = scan::scan(&parsed.program, code);
    let problems = checks::check(&facts, catalog);
    if !problems.is_empty() {
        return Err(not_run(&problems, code));
    }
    let tools = tools(&facts, code);
    Ok(Prepared { changed: facts.edits.apply(code, BEFORE, AFTER), tools })
}

fn tools(facts: &Facts, code: &str) -> Tools {
    let evaluates = facts
        .free
        .iter()
        .any(|(name, _)| matches!(name.as_str(), "eval" | "Function" | "globalThis"));
    if facts.is_dynamic || evaluates && code.contains(scan::TOOLS) {
        return Tools::All;
    }
    let mut names: Vec<_> = facts.tools.iter().map(|tool| tool.id.clone()).collect();
    names.sort_unstable();
    names.dedup();
    Tools::Named(names)
}

fn not_run(problems: &[Problem], code: &str) -> Failure {
    let positions: Vec<_> =
        problems.iter().map(|problem| Position::of(code, problem.at as usize)).collect();
    Failure::not_run(problems.iter().map(|problem| problem.message.as_str()).zip(positions))
}
