//! `[code]`: programs of the model that call tools.

use std::path::PathBuf;

use cofferdam_code::{CodeApproval, Language};
use cofferdam_tool::permission::RequestedLimits;
use serde::Deserialize;
use toml::Spanned;

use crate::code_mode::CodeOffer;

/// `[code]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a table")]
pub(crate) struct CodeTable {
    /// Offers `run_code`, with the other tools or instead of them.
    pub(crate) offer: Option<CodeOffer>,
    /// Language of programs.
    pub(crate) language: Option<Language>,
    /// Component of the interpreter, instead of the installed one.
    pub(crate) interpreter: Option<Spanned<PathBuf>>,
    /// Programs that a user must approve before they run.
    pub(crate) approval: CodeApproval,
    /// Limits of a program. Omitted keys have the values for programs.
    pub(crate) limits: RequestedLimits,
}
