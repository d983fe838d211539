//! Sets of plugins: one artifact that names several plugins with their digests, such as the tools
//! of a team.
//!
//! A set grants nothing. It says which permissions its author granted, and the operator decides.
//! The signer of a set vouches for the digests in it, so a plugin that no rule is about is accepted
//! from a set whose signer a rule trusts. A rule about the plugin itself holds as always.

use std::collections::BTreeMap;
use std::str::FromStr as _;

use cofferdam_registry::{Digest, DocumentArtifact, Manifest, Reference, Signer};
use cofferdam_tool::{Permission, PluginName, Policy};
use serde::{Deserialize, Serialize};

use super::{FetchedPlugin, PluginFetcher, SigningRequest, not_copied, unavailable};
use crate::config::{ComponentLocation, ConfigFile, UnsignedPolicy};
use crate::error::Context as _;
use crate::pins::Pins;
use crate::{Error, Result, granting};

/// Media type of a set.
const SET_TYPE: &str = "application/vnd.cofferdam.set.v1+json";
/// Maximum size of a set in bytes.
const SET_BYTES_MAX: u64 = 1024 * 1024;
/// Maximum number of plugins of a set. Each is downloaded and shown.
const PLUGINS_MAX: usize = 100;

/// Published set of plugins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginSet {
    plugins: BTreeMap<String, SetMember>,
}

/// Plugin of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetMember {
    /// Location as written in the configuration of the author.
    pub source: String,
    /// Digest of the manifest, for an artifact of a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Digest>,
    /// Digest of the component.
    pub layer: Digest,
    /// Size of the component in bytes.
    pub size: u64,
    /// Permissions that the author of the set granted. They are suggestions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<String>,
}

/// Set that was fetched, and whose signatures are checked.
#[derive(Debug)]
pub struct FetchedSet {
    /// Plugins by the names that they get.
    pub plugins: BTreeMap<PluginName, SetMember>,
    /// Digest of the manifest of the set.
    pub manifest: Digest,
    /// Signer of the set whom a rule of the configuration trusts.
    pub signer: Option<Signer>,
}

impl PluginSet {
    /// Creates a set of the plugins of a configuration, as the lock file pins them. Nothing else of
    /// the configuration is part of it.
    ///
    /// # Errors
    /// Returns an error if a plugin is a file or not in the lock file, or there is none.
    pub fn of_config_ambient(config: &ConfigFile) -> Result<Self> {
        let pins = Pins::of_config_ambient(&config.path)?;
        let mut plugins = BTreeMap::new();
        for (name, plugin) in &config.config.plugins {
            let location = plugin.component.get_ref();
            if let Some(path) = location.file() {
                return Err(Error::invalid(format!(
                    "the plugin `{name}` is the file {}; publish it, and name it by its reference",
                    path.display()
                )));
            }
            let origin = pins.origin_at(name, location).ok_or_else(|| {
                let lock = pins.path().display();
                Error::NotAccepted(format!("`{name}` is not in {lock}; run `cofferdam fetch`"))
            })?;
            let offered = granting::offered(config, plugin)?;
            let member = SetMember {
                source: origin.source.clone(),
                manifest: origin.manifest,
                layer: origin.layer,
                size: origin.size,
                grants: permissions(&offered.policy),
            };
            plugins.insert(name.clone(), member);
        }
        match plugins.len() {
            0 => Err(Error::invalid(format!("{} has no plugins", config.path.display()))),
            1..=PLUGINS_MAX => Ok(Self { plugins }),
            _ => Err(Error::invalid(format!("a set has at most {PLUGINS_MAX} plugins"))),
        }
    }

    /// Returns the number of plugins.
    #[must_use]
    pub fn size(&self) -> usize {
        self.plugins.len()
    }

    fn artifact(&self, annotations: BTreeMap<String, String>) -> Result<DocumentArtifact> {
        let content = serde_json::to_vec(self).context("the set cannot be written")?;
        Ok(DocumentArtifact::new(SET_TYPE, content, annotations))
    }

    /// Parses a set that a third party has written.
    fn parse(content: &[u8]) -> Result<BTreeMap<PluginName, SetMember>> {
        let set: Self = serde_json::from_slice(content).context("the set is invalid")?;
        if set.plugins.len() > PLUGINS_MAX {
            return Err(Error::invalid(format!("the set has more than {PLUGINS_MAX} plugins")));
        }
        let named = |(name, member): (String, SetMember)| -> Result<_> {
            let name = PluginName::new(name).context("a name in the set is invalid")?;
            Ok((name, member))
        };
        set.plugins.into_iter().map(named).collect()
    }
}

impl PluginFetcher {
    /// Pushes a set under the tag of `reference`, signed if there is a key. The tag is written
    /// last. Returns the digest of the manifest.
    ///
    /// # Errors
    /// Returns an error if the registry cannot be reached or rejects the set.
    pub async fn publish_set(
        &self,
        reference: &Reference,
        set: &PluginSet,
        annotations: BTreeMap<String, String>,
        signing: Option<SigningRequest>,
    ) -> Result<Digest> {
        let artifact = set.artifact(annotations)?;
        if let Some(request) = signing {
            let pinned = reference.with_digest(artifact.digest());
            self.client.push_document(&pinned, &artifact).await.map_err(unavailable)?;
            self.sign(&pinned, request).await?;
        }
        self.client.push_document(reference, &artifact).await.map_err(unavailable)?;
        Ok(artifact.digest())
    }

    /// Reads the set of a manifest.
    pub(super) async fn fetch_set(
        &self,
        reference: &Reference,
        manifest: &Manifest,
        signer: Option<Signer>,
    ) -> Result<FetchedSet> {
        let content = match &self.copy {
            Some(copy) => {
                let document = copy.document(manifest, SET_BYTES_MAX);
                document.map_err(|error| not_copied(reference, &error))?
            }
            None => {
                let content =
                    self.client.pull_document(reference, manifest, &self.store, SET_BYTES_MAX);
                content.await.map_err(unavailable)?
            }
        };
        let plugins = PluginSet::parse(&content);
        let plugins = plugins.with_context(|| format!("{reference} cannot be used"))?;
        Ok(FetchedSet { plugins, manifest: manifest.digest, signer })
    }

    /// Fetches a plugin of a set: the bytes that the set names, or none.
    ///
    /// # Errors
    /// Returns an error if the policy of the configuration refuses the plugin, or it cannot be
    /// fetched.
    pub async fn fetch_member(
        &self,
        set: &FetchedSet,
        member: &SetMember,
    ) -> Result<FetchedPlugin> {
        let location = ComponentLocation::from_str(&member.source);
        let location = location.with_context(|| "the set contains an invalid location")?;
        let unsigned = match set.signer {
            Some(_) => UnsignedPolicy::Allow,
            None => self.policy.unsigned,
        };
        let mut fetched = match (&location, member.manifest) {
            (ComponentLocation::Registry(reference), Some(manifest)) => {
                let pinned = ComponentLocation::Registry(reference.with_digest(manifest));
                self.fetch_with(&pinned, unsigned).await?
            }
            _ => self.fetch_with(&location, unsigned).await?,
        };
        if fetched.origin.layer != member.layer {
            let (source, found, expected) = (&member.source, fetched.origin.layer, member.layer);
            return Err(Error::NotAccepted(format!(
                "{source} has the digest {found}; the set has {expected}"
            )));
        }
        // The configuration names the plugin as the set does, so that `update` resolves its tag.
        if let ComponentLocation::Registry(reference) = &location {
            fetched.origin.version = Some(reference.version().to_string());
        }
        fetched.origin.source = location.to_string();
        Ok(fetched)
    }
}

/// Returns whether a manifest is that of a set.
pub(super) fn is_set(manifest: &Manifest) -> bool {
    manifest.artifact_type.as_deref() == Some(SET_TYPE)
}

/// Returns the permissions of a policy, without values and without headers of requests.
fn permissions(policy: &Policy) -> Vec<String> {
    let Policy { files, http, sockets, env, config, secrets, clock, random, tools, ask, limits: _ } =
        policy.clone();
    // Not what every plugin is offered.
    let offered = Policy::default();
    let clock = (clock != offered.clock).then_some(Permission::Clock(clock));
    let random = (random && !offered.random).then_some(Permission::Random);
    let all = files
        .into_iter()
        .map(|(name, access)| Permission::Files(Some(name), access))
        .chain(http.into_iter().map(|grant| Permission::Http(grant.rule)))
        .chain(sockets.into_iter().map(Permission::Socket))
        .chain(env.into_iter().map(Permission::Env))
        .chain(config.into_iter().map(Permission::Config))
        .chain(secrets.into_iter().map(Permission::Secret))
        .chain(clock)
        .chain(random)
        .chain(tools.into_iter().map(Permission::Tool))
        .chain(ask.into_iter().map(Permission::Ask));
    all.map(|permission| permission.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(source: &str) -> SetMember {
        let layer = Digest::of(b"component");
        SetMember { source: source.to_owned(), manifest: None, layer, size: 9, grants: Vec::new() }
    }

    #[test]
    fn a_set_reads_back_and_is_limited() {
        let set = |count: usize| {
            let plugins = (0..count).map(|number| (format!("p{number}"), member("oci://a.b/c")));
            serde_json::to_vec(&PluginSet { plugins: plugins.collect() }).unwrap()
        };
        assert_eq!(PluginSet::parse(&set(PLUGINS_MAX)).unwrap().len(), PLUGINS_MAX);
        let many = PluginSet::parse(&set(PLUGINS_MAX + 1)).unwrap_err().to_string();
        assert_eq!(many, "the set has more than 100 plugins");
        let invalid = r#"{"plugins": {"a b": {"source": "x", "layer": "sha256:0", "size": 1}}}"#;
        PluginSet::parse(invalid.as_bytes()).unwrap_err();
        for invalid in [&br#"{"plugins": {}, "grants": {}}"#[..], b"{}", b"", b"\xff"] {
            PluginSet::parse(invalid).unwrap_err();
        }
    }

    #[test]
    fn grants_are_suggested_without_values() {
        let mut policy = Policy::default();
        policy.env.insert("LANG".to_owned());
        policy.secrets.insert("github".to_owned());
        assert_eq!(permissions(&policy), ["env:LANG", "secret:github"]);
        assert!(permissions(&Policy::default()).is_empty());
    }
}
