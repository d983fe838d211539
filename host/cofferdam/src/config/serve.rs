//! `[serve]` and `[toolsets.NAME]`: what MCP clients are offered, and who may call over HTTP.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use toml::Spanned;
use url::Url;

/// `[serve]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct ServeTable {
    /// Names by which the server may be addressed, beside the loopback ones.
    pub(crate) hosts: Vec<String>,
    /// Web pages that may call.
    pub(crate) origins: Vec<Spanned<String>>,
    /// Requests per second of one caller.
    pub(crate) rate: Option<Spanned<RateTable>>,
    /// Callers with a token of the server's own, by name.
    pub(crate) tokens: BTreeMap<String, TokenTable>,
    /// An authorization server whose tokens are taken.
    pub(crate) oauth: Option<Spanned<OAuthTable>>,
    /// Stores whose files are resources.
    pub(crate) stores: Vec<Spanned<String>>,
    /// Tools that run as a task or not at all.
    pub(crate) only_as_task: BTreeSet<String>,
    /// Tools that make prompts, by the prompt's name.
    pub(crate) prompts: BTreeMap<String, Spanned<PromptTable>>,
    /// Tools that make resources, by address.
    pub(crate) resources: BTreeMap<String, Spanned<ResourceTable>>,
}

/// `[toolsets.NAME]`: some of the tools.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct ToolsetTable {
    /// Tools by name.
    pub(crate) tools: Vec<Spanned<String>>,
    /// All tools of these plugins.
    pub(crate) plugins: Vec<Spanned<String>>,
    /// All tools of these remote servers.
    pub(crate) servers: Vec<Spanned<String>>,
}

/// `rate = { per-second = 20, burst = 100 }`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RateTable {
    pub(crate) per_second: f64,
    pub(crate) burst: f64,
}

/// `[serve.tokens.NAME]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct TokenTable {
    /// `sha256:` and 64 hexadecimal digits, as `cofferdam mcp token` prints it.
    pub(crate) digest: Spanned<String>,
    /// The plugins, stores and servers whose tools may be used; all if it is left out.
    #[serde(default)]
    pub(crate) sources: Option<BTreeSet<String>>,
    /// The tools that may be used, by name, with `*` for any characters; all of the sources if it
    /// is left out.
    #[serde(default)]
    pub(crate) tools: Option<Vec<Spanned<String>>>,
}

/// `[serve.oauth]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OAuthTable {
    pub(crate) issuer: Url,
    pub(crate) resource: Url,
    #[serde(default)]
    pub(crate) keys: Option<Url>,
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    /// Sources for callers that are not in `subjects`; none if missing.
    #[serde(default)]
    pub(crate) sources: BTreeSet<String>,
    /// Sources of single subjects.
    #[serde(default)]
    pub(crate) subjects: BTreeMap<String, BTreeSet<String>>,
}

/// `[serve.prompts.NAME]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct PromptTable {
    pub(crate) tool: String,
}

/// `[serve.resources."URI"]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ResourceTable {
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) media_type: Option<String>,
}
