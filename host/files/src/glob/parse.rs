//! Parses the characters of a pattern into a [`Program`]. They are already lowercase, with `/`
//! instead of `\`.

use super::GlobError;
use super::program::{Instruction, Program};
use super::set;

/// Compiles a pattern.
pub(super) fn parse(pattern: &[char]) -> Result<Program, GlobError> {
    let mut program = Program::default();
    let mut rest = pattern;
    while let Some(after) =
        parse_braces(rest, &mut program)?.or_else(|| parse_one(rest, &mut program))
    {
        rest = after;
    }
    program.push(Instruction::End);
    Ok(program)
}

/// Compiles the first element of `pattern`, where a brace is an ordinary character, and returns the
/// rest.
fn parse_one<'p>(pattern: &'p [char], program: &mut Program) -> Option<&'p [char]> {
    if let Some((set, rest)) = set::parse(pattern) {
        program.push(Instruction::Set(set));
        return Some(rest);
    }
    let (first, rest) = pattern.split_first()?;
    program.push(match first {
        '*' => Instruction::Star,
        '?' => Instruction::One,
        '/' => Instruction::Separator,
        c => Instruction::Char(*c),
    });
    Some(rest)
}

/// Compiles the braces that `pattern` starts with, and returns the rest. Returns `None` if it does
/// not start with a `{` that has its `}` (`FILE-26`).
fn parse_braces<'p>(
    pattern: &'p [char],
    program: &mut Program,
) -> Result<Option<&'p [char]>, GlobError> {
    let ['{', body @ ..] = pattern else { return Ok(None) };
    let Some((braces, rest)) = read_braces(body) else { return Ok(None) };
    if braces.is_nested {
        return Err(GlobError::NestedBraces);
    }
    program.push_alternatives(&braces.alternatives, |mut alternative, program| {
        while let Some(rest) = parse_one(alternative, program) {
            alternative = rest;
        }
    });
    Ok(Some(rest))
}

/// Contents of a pair of braces.
struct Braces {
    alternatives: Vec<Vec<char>>,
    is_nested: bool,
}

/// Reads up to the first `}`. Commas and braces inside a set belong to the set.
fn read_braces(mut rest: &[char]) -> Option<(Braces, &[char])> {
    let mut braces = Braces { alternatives: Vec::new(), is_nested: false };
    let mut alternative = Vec::new();
    loop {
        let after = match set::parse(rest) {
            Some((_, after)) => after,
            None => rest.split_first()?.1,
        };
        match rest.first()? {
            '}' => {
                braces.alternatives.push(alternative);
                return Some((braces, after));
            }
            ',' => braces.alternatives.push(std::mem::take(&mut alternative)),
            first => {
                braces.is_nested |= *first == '{';
                let taken = rest.len().saturating_sub(after.len());
                alternative.extend(rest.iter().take(taken));
            }
        }
        rest = after;
    }
}
