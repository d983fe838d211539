//! Parses the arguments of `#[tool(…)]` on functions and parameters.

use proc_macro2::TokenStream;
use syn::meta::ParseNestedMeta;
use syn::parse::Parser as _;
use syn::{Expr, LitBool, LitStr, Result, Token};

/// Hints about a call, named as in `cofferdam_sdk::Annotations`.
const HINTS: [&str; 5] = ["read_only", "destructive", "idempotent", "open_world", "long_running"];

/// Options of `#[tool(…)]` on a function.
#[derive(Default)]
pub(crate) struct ToolOptions {
    /// Name of the tool, instead of the function's name.
    pub(crate) name: Option<LitStr>,
    /// Display name for users.
    pub(crate) title: Option<LitStr>,
    /// Group that the tool belongs to.
    pub(crate) group: Option<LitStr>,
    /// True if the schema of the return value is published.
    pub(crate) output_schema: bool,
    /// The hints that are present.
    pub(crate) hints: Vec<(syn::Ident, bool)>,
}

impl ToolOptions {
    pub(crate) fn parse(attribute: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        syn::meta::parser(|meta| options.option(&meta)).parse2(attribute)?;
        Ok(options)
    }

    fn option(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let key = meta.path.require_ident()?.clone();
        if key == "name" {
            once(meta, self.name.is_some())?;
            self.name = Some(meta.value()?.parse()?);
        } else if key == "title" {
            once(meta, self.title.is_some())?;
            self.title = Some(meta.value()?.parse()?);
        } else if key == "group" {
            once(meta, self.group.is_some())?;
            self.group = Some(group(meta.value()?.parse()?)?);
        } else if key == "output_schema" {
            once(meta, self.output_schema)?;
            self.output_schema = true;
        } else if HINTS.iter().any(|hint| key == hint) {
            once(meta, self.hints.iter().any(|(hint, _)| *hint == key))?;
            self.hints.push((key, flag(meta)?));
        } else {
            return Err(meta.error(format!(
                "unknown option `{key}`; expected one of `name`, `title`, `group`, `output_schema`, \
                 `{}`",
                HINTS.join("`, `")
            )));
        }
        Ok(())
    }
}

/// Default of a parameter.
pub(crate) enum Default {
    /// `#[tool(default)]`: the default of the type.
    OfType,
    /// `#[tool(default = …)]`.
    Value(Box<Expr>),
}

/// Parses `#[tool(…)]` on a parameter. Returns its default.
pub(crate) fn parse_default(attribute: &syn::Attribute) -> Result<Option<Default>> {
    let mut default = None;
    attribute.parse_nested_meta(|meta| {
        if !meta.path.is_ident("default") {
            return Err(
                meta.error("unknown option; a parameter can have `default` or `default = …`")
            );
        }
        once(&meta, default.is_some())?;
        default = Some(match meta.input.peek(Token![=]) {
            true => Default::Value(meta.value()?.parse()?),
            false => Default::OfType,
        });
        Ok(())
    })?;
    Ok(default)
}

/// Parses the value of a hint. Without a value it is `true`.
fn flag(meta: &ParseNestedMeta<'_>) -> Result<bool> {
    match meta.input.peek(Token![=]) {
        true => meta.value()?.parse::<LitBool>().map(|flag| flag.value),
        false => Ok(true),
    }
}

/// Checks the name of a group.
fn group(name: LitStr) -> Result<LitStr> {
    let text = name.value();
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if (1..=64).contains(&text.len()) && text.chars().all(is_allowed) {
        return Ok(name);
    }
    Err(syn::Error::new(
        name.span(),
        "a group is named with 1 to 64 characters from `A-Z a-z 0-9 _ . -`",
    ))
}

fn once(meta: &ParseNestedMeta<'_>, seen: bool) -> Result<()> {
    match seen {
        true => Err(meta.error("this option is given twice")),
        false => Ok(()),
    }
}
