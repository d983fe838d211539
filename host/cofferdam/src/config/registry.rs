//! `[registry]`: registries that plugins come from.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer};
use toml::Spanned;
use url::Url;

use super::{ComponentLocation, PluginIndex};

/// `[registry]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a table")]
pub(crate) struct RegistryTable {
    /// Files with certificates of further authorities, in PEM.
    pub(crate) authorities: Vec<Spanned<PathBuf>>,
    /// Hosts other than a registry that it may refer to with credentials, or at a private address.
    pub(crate) trusted_hosts: Vec<String>,
    /// Address of a proxy for all registries.
    pub(crate) proxy: Option<String>,
    /// Mirrors of registries.
    pub(crate) mirrors: Vec<MirrorTable>,
    /// File with credentials in the format of Docker, instead of the user's.
    pub(crate) credentials: Option<PathBuf>,
    /// Decision about plugins that no rule of `trust` is about.
    pub(crate) unsigned: UnsignedPolicy,
    /// File with the root of an instance of sigstore, instead of that of the public one.
    pub(crate) trusted_root: Option<Spanned<PathBuf>>,
    /// Rules about signatures.
    pub(crate) trust: Vec<TrustTable>,
    /// Indexes that are searched for plugins, instead of the public MCP registry.
    pub(crate) indexes: Vec<PluginIndex>,
    /// Sources of security advisories.
    pub(crate) advisories: Vec<AdvisoryLocation>,
    /// Ids and aliases of advisories that the operator has judged.
    pub(crate) ignored_advisories: Vec<String>,
    /// Logins by registry.
    pub(crate) logins: BTreeMap<String, LoginTable>,
}

/// Location of security advisories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AdvisoryLocation {
    /// File, or directory of files.
    Path(PathBuf),
    /// Document at an `https` address.
    Web(Url),
}

impl<'de> Deserialize<'de> for AdvisoryLocation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let string = String::deserialize(deserializer)?;
        match string.parse() {
            Ok(ComponentLocation::File(path)) => Ok(Self::Path(path)),
            Ok(ComponentLocation::Web(address)) => Ok(Self::Web(address)),
            Ok(ComponentLocation::Registry(_)) | Err(_) => Err(serde::de::Error::custom(format!(
                "`{string}` has no advisories: expected a file, a directory or an https address"
            ))),
        }
    }
}

/// Decision about plugins of registries and of the web that no rule about signatures is about.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnsignedPolicy {
    /// They are refused.
    #[default]
    Refuse,
    /// A person at a terminal decides.
    Ask,
    /// They are accepted like others.
    Allow,
}

/// `[[registry.mirrors]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub(crate) struct MirrorTable {
    /// Pattern of what the mirror has.
    pub(crate) of: Spanned<String>,
    /// Host and path that stand for the pattern without its `*`.
    pub(crate) at: Spanned<String>,
}

/// `[[registry.trust]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub(crate) struct TrustTable {
    /// Pattern of the artifacts that the rule is about.
    pub(crate) from: Spanned<String>,
    /// Files with public keys. One of them, or the identity, must have signed the artifacts.
    #[serde(default)]
    pub(crate) keys: Vec<Spanned<PathBuf>>,
    /// Identity of a login.
    pub(crate) identity: Option<Spanned<String>>,
    /// Address of the service where the login was made.
    pub(crate) issuer: Option<String>,
    /// Types of statements that must have been signed.
    #[serde(default)]
    pub(crate) attested: Vec<Spanned<String>>,
}

/// `[registry.logins."HOST"]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub(crate) struct LoginTable {
    /// User name.
    pub(crate) username: String,
    /// Name of the secret that is the password or a token.
    pub(crate) password: String,
}
