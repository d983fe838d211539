//! Reads doc comments as descriptions.

use syn::{Attribute, Error, Expr, ExprLit, Lit, Meta, Result};

/// Returns the text of the doc comments among `attributes`, with line breaks. Empty if there are
/// none.
pub(crate) fn text(attributes: &[Attribute]) -> Result<String> {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|attribute| is_doc(attribute)) {
        lines.push(line(attribute)?);
    }
    let text: Vec<&str> = lines.iter().flat_map(|line| line.lines().map(without_margin)).collect();
    Ok(text.join("\n").trim().to_owned())
}

pub(crate) fn is_doc(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc")
}

fn line(attribute: &Attribute) -> Result<String> {
    match &attribute.meta {
        Meta::NameValue(pair) => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text.value() + "\n"),
            other => Err(Error::new_spanned(other, "write the description as a doc comment")),
        },
        // `#[doc(hidden)]` and similar attributes contain no description.
        _ => Ok(String::new()),
    }
}

/// Removes the blank after `///`. Deeper indentation is part of the text.
fn without_margin(line: &str) -> &str {
    line.strip_prefix(' ').unwrap_or(line).trim_end()
}
