//! `[serve]`: the offer for MCP clients, and access over HTTP.

use std::collections::{BTreeMap, BTreeSet};

use cofferdam_tool::pattern::ToolPattern;
use serde::Deserialize;
use toml::Spanned;
use url::Url;

/// `[serve]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a table")]
pub struct ServeTable {
    /// Host names of the server, in addition to the loopback ones.
    pub(crate) hosts: Vec<String>,
    /// Origins of web pages that may call.
    pub(crate) origins: Vec<Spanned<String>>,
    /// Maximum rate of requests of one caller.
    pub(crate) rate: Option<Spanned<RateTable>>,
    /// Callers with a token of this server, by name.
    pub(crate) tokens: BTreeMap<String, TokenTable>,
    /// Authorization server whose tokens are accepted.
    pub(crate) oauth: Option<Spanned<OAuthTable>>,
    /// Stores whose files are resources.
    pub(crate) stores: Vec<Spanned<String>>,
    /// Tools that run only as tasks.
    pub(crate) only_as_task: BTreeSet<String>,
    /// Patterns for the names of tools that clients see beside the two of a search.
    pub(crate) always_load: Vec<ToolPattern>,
    /// Tools that produce prompts, by the prompt's name.
    pub(crate) prompts: BTreeMap<String, Spanned<PromptTable>>,
    /// Tools that produce resources, by URI.
    pub(crate) resources: BTreeMap<String, Spanned<ResourceTable>>,
}

/// `rate = { per-second = 20, burst = 100 }`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub(crate) struct RateTable {
    pub(crate) per_second: f64,
    pub(crate) burst: f64,
}

/// `[serve.tokens.NAME]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub(crate) struct TokenTable {
    /// `sha256:` and 64 hexadecimal digits, as `cofferdam mcp token` prints it.
    pub(crate) digest: Spanned<String>,
    /// Plugins, stores and servers whose tools may be used; all if omitted.
    #[serde(default)]
    pub(crate) sources: Option<BTreeSet<String>>,
    /// Tools that may be used, by name, with `*` for any characters; all tools of the sources if
    /// omitted.
    #[serde(default)]
    pub(crate) tools: Option<Vec<Spanned<String>>>,
}

/// `[serve.oauth]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct OAuthTable {
    pub(crate) issuer: Url,
    pub(crate) resource: Url,
    #[serde(default)]
    pub(crate) keys: Option<Url>,
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    /// Sources for callers that are not in `subjects`; none if omitted.
    #[serde(default)]
    pub(crate) sources: BTreeSet<String>,
    /// Sources by subject.
    #[serde(default)]
    pub(crate) subjects: BTreeMap<String, BTreeSet<String>>,
}

/// `[serve.prompts.NAME]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub(crate) struct PromptTable {
    pub(crate) tool: String,
}

/// `[serve.resources."URI"]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub(crate) struct ResourceTable {
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) media_type: Option<String>,
}
