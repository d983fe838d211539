//! `[cluster]`: versions of the tools of workers that a gateway offers.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

/// `[cluster]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a table")]
pub(crate) struct ClusterTable {
    /// Versions by the name of the plugin or server.
    pub(crate) versions: BTreeMap<String, VersionTable>,
}

/// `[cluster.versions.NAME]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub(crate) struct VersionTable {
    /// Version that is offered.
    pub(crate) pin: Spanned<String>,
    /// Version that a share of the callers is offered instead.
    #[serde(default)]
    pub(crate) canary: Option<Spanned<String>>,
    /// Share of these callers in percent.
    #[serde(default)]
    pub(crate) canary_percent: Option<Spanned<u8>>,
}
