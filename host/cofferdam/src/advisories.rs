//! Security advisories about the plugins of a configuration.
//!
//! They come from files, directories and addresses that `[registry]` names. Addresses are read only
//! by the commands that look for new versions anyway; the copies in the user's state directory
//! serve all others. An advisory keeps a version from being accepted, and does not keep an accepted
//! one from running: the operator decides when to replace it. Advisories that the operator has
//! judged are ignored by their ids.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use cofferdam_registry::{
    ADVISORIES_BYTES_MAX, Advisory, AdvisoryMatch, AdvisorySet, ArtifactIdentity, Digest,
};
use serde::Serialize;
use url::Url;

use crate::artifacts::Origin;
use crate::config::edit::replace_private;
use crate::config::{AdvisoryLocation, ComponentLocation, ConfigFile, PluginConfig};
use crate::error::Context as _;
use crate::pins::Pins;
use crate::{Error, Operator, Result, directories};

/// Name of the directory of copies in the user's state directory.
const COPIES: &str = "advisories";
/// Extension of files with advisories.
const EXTENSION: &str = "json";

/// Sources of advisories that a configuration names.
#[derive(Debug, Default)]
pub(crate) struct AdvisorySources {
    /// Files and directories.
    paths: Vec<PathBuf>,
    /// Addresses on the web.
    pub(crate) addresses: Vec<Url>,
    /// Ids and aliases that are ignored.
    ignored: BTreeSet<String>,
}

/// Advisories that were read.
#[derive(Debug, Default)]
pub(crate) struct Advisories {
    set: AdvisorySet,
    ignored: BTreeSet<String>,
    /// Addresses without a copy on this machine.
    missing: Vec<Url>,
}

/// Result of [`audit`].
#[derive(Debug)]
pub struct AuditReport {
    /// Advisories that affect plugins, in the order of the plugins.
    pub findings: Vec<PluginAdvisory>,
    /// Plugins that were not compared, because the lock file does not have them.
    pub unlocked: Vec<String>,
}

/// Advisory that affects a plugin of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PluginAdvisory {
    /// Name of the plugin in the configuration.
    pub plugin: String,
    /// Location of the plugin.
    pub source: String,
    /// Version of the plugin, if it is known.
    pub version: Option<String>,
    /// Id of the advisory.
    pub id: String,
    /// Ids of the advisory in other databases.
    pub aliases: Vec<String>,
    /// Summary of one line. A third party wrote it.
    pub summary: String,
    /// Severity as the advisory rates it.
    pub severity: Option<String>,
    /// First later version that is not affected.
    pub fixed: Option<String>,
    /// Address of a page about it.
    pub reference: Option<String>,
    /// True if the configuration ignores the advisory.
    #[serde(rename = "ignored")]
    pub is_ignored: bool,
}

/// Plugin of a configuration with what the lock file knows about it.
struct LockedPlugin<'a> {
    name: &'a str,
    location: &'a ComponentLocation,
    version: Option<String>,
    identity: ArtifactIdentity<'a>,
}

/// Compares the locked plugins of a configuration with its advisories. Uses no network.
///
/// # Errors
/// Returns an error if the configuration names no advisories, they or the lock file cannot be read,
/// or those at an address were not downloaded yet.
pub fn audit(config: &ConfigFile) -> Result<AuditReport> {
    let sources = AdvisorySources::of(Some(config));
    if sources.is_empty() {
        return Err(Error::invalid(format!(
            "{} names no advisories; add `advisories = [\"DIRECTORY\"]` to [registry]",
            config.path.display()
        )));
    }
    let advisories = sources.read_ambient()?;
    if let Some(address) = advisories.missing.first() {
        return Err(Error::NotAccepted(format!(
            "the advisories of {address} are not on this machine; run `cofferdam audit` without \
             --offline"
        )));
    }
    let mut report = AuditReport { findings: Vec::new(), unlocked: Vec::new() };
    let pins = Pins::of_config_ambient(&config.path)?;
    for (name, plugin) in &config.config.plugins {
        match LockedPlugin::of(name, plugin, &pins) {
            Some(plugin) => report.findings.extend(advisories.findings(&plugin)),
            None => report.unlocked.push(name.clone()),
        }
    }
    Ok(report)
}

/// Notes each locked plugin of a configuration that an advisory affects. Advisories that cannot be
/// read are noted as well: plugins run with or without them.
pub(crate) fn note(config: Option<&ConfigFile>, operator: &Operator) {
    let sources = AdvisorySources::of(config);
    let (Some(config), false) = (config, sources.is_empty()) else { return };
    match notes(config, &sources) {
        Ok(notes) => notes.iter().for_each(|note| operator.note(note)),
        Err(error) => operator.note(&format!("warning: advisories are not checked: {error:#}")),
    }
}

fn notes(config: &ConfigFile, sources: &AdvisorySources) -> Result<Vec<String>> {
    let advisories = sources.read_ambient()?;
    let pins = Pins::of_config_ambient(&config.path)?;
    let plugins = config.config.plugins.iter();
    let locked = plugins.filter_map(|(name, plugin)| LockedPlugin::of(name, plugin, &pins));
    let affected = locked.filter_map(|plugin| {
        let named = named(&advisories.matches(&plugin.identity))?;
        let (name, config) = (plugin.name, config.path.display());
        Some(format!(
            "warning: the plugin `{name}` is affected by {named}; `cofferdam audit --config \
             {config}` shows more"
        ))
    });
    Ok(advisories.notes().chain(affected).collect())
}

impl AdvisorySources {
    /// Returns the sources of a configuration.
    pub(crate) fn of(config: Option<&ConfigFile>) -> Self {
        let mut sources = Self::default();
        let Some(file) = config else { return sources };
        let table = &file.config.registry;
        sources.ignored.extend(table.ignored_advisories.iter().cloned());
        for location in &table.advisories {
            match location {
                AdvisoryLocation::Path(path) => sources.paths.push(file.resolve(path)),
                AdvisoryLocation::Web(address) => sources.addresses.push(address.clone()),
            }
        }
        sources
    }

    fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.addresses.is_empty()
    }

    /// Reads the files, and the copies of what is at addresses.
    ///
    /// # Errors
    /// Returns an error that names the file that is missing or invalid.
    pub(crate) fn read_ambient(&self) -> Result<Advisories> {
        let mut advisories = Advisories { ignored: self.ignored.clone(), ..Advisories::default() };
        for path in &self.paths {
            let files = files_ambient(path).map_err(|error| unusable(path, error))?;
            for file in files {
                let json = cofferdam_files::read_named_ambient(&file, ADVISORIES_BYTES_MAX);
                let json = json.map_err(|error| unusable(&file, error))?;
                advisories.set.add(&json).map_err(|error| unusable(&file, error))?;
            }
        }
        for address in &self.addresses {
            let path = copy_path(address)?;
            match cofferdam_files::read_named_ambient(&path, ADVISORIES_BYTES_MAX) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    advisories.missing.push(address.clone());
                }
                read => {
                    let json = read.map_err(|error| unusable(&path, error))?;
                    advisories.set.add(&json).map_err(|error| unusable(&path, error))?;
                }
            }
        }
        Ok(advisories)
    }
}

impl Advisories {
    /// Returns a note for each address that was not downloaded yet.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        self.missing.iter().map(|address| {
            format!(
                "note: the advisories of {address} are not on this machine; `cofferdam audit` \
                 downloads them"
            )
        })
    }

    /// Returns the reason why a component that was fetched is not accepted.
    pub(crate) fn objection(
        &self,
        location: &ComponentLocation,
        origin: &Origin,
    ) -> Option<String> {
        let matches = self.matches(&identity(location, origin));
        let first = matches.first()?;
        let fixed = first.fixed.as_ref();
        let fixed = fixed.map(|version| format!("; version {version} is not")).unwrap_or_default();
        Some(format!(
            "{location} is affected by {}{fixed}; to use it nevertheless, add \"{}\" to \
             `ignored-advisories` in [registry]",
            named(&matches)?,
            first.advisory.id
        ))
    }

    /// Returns the advisories that affect an artifact and that are not ignored.
    fn matches(&self, artifact: &ArtifactIdentity<'_>) -> Vec<AdvisoryMatch<'_>> {
        let affecting = self.set.affecting(artifact).into_iter();
        affecting.filter(|matched| !self.is_ignored(matched.advisory)).collect()
    }

    fn is_ignored(&self, advisory: &Advisory) -> bool {
        let mut ids = std::iter::once(&advisory.id).chain(&advisory.aliases);
        ids.any(|id| self.ignored.contains(id))
    }

    /// Returns all advisories that affect a plugin.
    fn findings(&self, plugin: &LockedPlugin<'_>) -> impl Iterator<Item = PluginAdvisory> {
        self.set.affecting(&plugin.identity).into_iter().map(|AdvisoryMatch { advisory, fixed }| {
            let Advisory { id, aliases, summary, severity, reference, .. } = advisory.clone();
            PluginAdvisory {
                plugin: plugin.name.to_owned(),
                source: plugin.location.to_string(),
                version: plugin.version.clone(),
                id,
                aliases,
                summary,
                severity,
                fixed,
                reference,
                is_ignored: self.is_ignored(advisory),
            }
        })
    }
}

impl<'a> LockedPlugin<'a> {
    /// Returns the locked state of a plugin. That of a file is its digest, if it is pinned.
    fn of(name: &'a str, plugin: &'a PluginConfig, pins: &Pins) -> Option<Self> {
        let location = plugin.component.get_ref();
        if location.file().is_some() {
            let layer = pins.component(name).filter(|_| plugin.pin)?;
            let identity = ArtifactIdentity { reference: None, manifest: None, layer };
            return Some(Self { name, location, version: None, identity });
        }
        let origin = pins.origin_at(name, location)?;
        let identity = identity(location, origin);
        let tag = identity.reference.and_then(|reference| reference.tag());
        let version = tag.map(str::to_owned).or_else(|| origin.version.clone());
        Some(Self { name, location, version, identity })
    }
}

/// Returns the identity of a component that was fetched. One from the web has no version.
fn identity<'a>(location: &'a ComponentLocation, origin: &Origin) -> ArtifactIdentity<'a> {
    let reference = match location {
        ComponentLocation::Registry(reference) => Some(reference),
        ComponentLocation::File(_) | ComponentLocation::Web(_) => None,
    };
    ArtifactIdentity { reference, manifest: origin.manifest, layer: origin.layer }
}

/// Returns the first advisory with its summary, and the number of the others.
fn named(matches: &[AdvisoryMatch<'_>]) -> Option<String> {
    let (first, others) = matches.split_first()?;
    let Advisory { id, summary, .. } = first.advisory;
    let summary = if summary.is_empty() { String::new() } else { format!(" ({summary})") };
    let others = match others.len() {
        0 => String::new(),
        1 => " and 1 other advisory".to_owned(),
        count => format!(" and {count} other advisories"),
    };
    Some(format!("{id}{summary}{others}"))
}

/// Returns the files with advisories of a directory, or the file itself.
fn files_ambient(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
    let mut files = entries.collect::<io::Result<Vec<_>>>()?;
    files.retain(|file| file.extension().is_some_and(|it| it == EXTENSION) && file.is_file());
    files.sort();
    Ok(files)
}

/// Stores the advisories that were downloaded from an address, if they are valid.
pub(crate) fn save_copy(address: &Url, json: &[u8]) -> Result<()> {
    AdvisorySet::default().add(json).map_err(|error| {
        Error::NotAccepted(format!("the advisories of {address} cannot be used: {error}"))
    })?;
    let path = copy_path(address)?;
    let unwritable = || format!("{} cannot be written", path.display());
    if let Some(directory) = path.parent() {
        directories::make_private(directory).with_context(unwritable)?;
    }
    replace_private(&path, json).with_context(unwritable)
}

/// Returns whether there is a copy of the advisories at an address.
pub(crate) fn has_copy(address: &Url) -> bool {
    copy_path(address).is_ok_and(|path| path.is_file())
}

fn copy_path(address: &Url) -> Result<PathBuf> {
    let name = Digest::of(address.as_str().as_bytes()).hex();
    Ok(directories::state()?.join(COPIES).join(name).with_extension(EXTENSION))
}

fn unusable(path: &Path, error: impl std::fmt::Display) -> Error {
    Error::invalid(format!("{} cannot be used: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYER: &[u8] = b"component";

    fn config(directory: &Path, table: &str) -> ConfigFile {
        let text = format!(
            "[registry]\n{table}\n\n[plugins.csv]\ncomponent = \"oci://ghcr.io/acme/csv:1.2.0\"\n"
        );
        ConfigFile::parse(&directory.join("cofferdam.toml"), &text).unwrap()
    }

    fn advisory(id: &str) -> String {
        let package = r#"{"ecosystem":"OCI","name":"ghcr.io/acme/csv"}"#;
        let events = r#"[{"introduced":"0"},{"fixed":"1.3.0"}]"#;
        format!(
            r#"{{"id":"{id}","aliases":["CVE-{id}"],"summary":"Reads too much","affected":[
            {{"package":{package},"ranges":[{{"type":"SEMVER","events":{events}}}]}}]}}"#
        )
    }

    fn objection(file: &ConfigFile) -> Result<Option<String>> {
        let location = file.config.plugins["csv"].component.get_ref();
        let origin = Origin {
            source: location.to_string(),
            version: Some("1.2.0".to_owned()),
            manifest: None,
            layer: Digest::of(LAYER),
            size: 9,
            signer: None,
            attested: Vec::new(),
        };
        let advisories = AdvisorySources::of(Some(file)).read_ambient()?;
        Ok(advisories.objection(location, &origin))
    }

    #[test]
    fn advisories_come_from_files_and_directories_without_those_below() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::create_dir_all(path("osv/below")).unwrap();
        std::fs::write(path("osv/a.json"), advisory("OSV-1")).unwrap();
        std::fs::write(path("osv/readme.txt"), "no advisory").unwrap();
        std::fs::write(path("osv/below/b.json"), "no advisory").unwrap();
        std::fs::write(path("all.json"), format!("[{}]", advisory("OSV-2"))).unwrap();
        let objection = |table: &str| objection(&config(directory.path(), table)).unwrap();
        assert_eq!(objection(""), None);
        assert_eq!(
            objection("advisories = [\"osv\"]").as_deref(),
            Some(
                "oci://ghcr.io/acme/csv:1.2.0 is affected by OSV-1 (Reads too much); version 1.3.0 \
                 is not; to use it nevertheless, add \"OSV-1\" to `ignored-advisories` in \
                 [registry]"
            )
        );
        let both = objection("advisories = [\"osv\", \"all.json\"]").unwrap();
        assert!(both.contains("OSV-1 (Reads too much) and 1 other advisory;"), "{both}");
        let by_id = "advisories = [\"osv\"]\nignored-advisories = [\"OSV-1\"]";
        let by_alias = "advisories = [\"osv\"]\nignored-advisories = [\"CVE-OSV-1\"]";
        assert_eq!((objection(by_id), objection(by_alias)), (None, None));
    }

    #[test]
    fn errors_name_the_file() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("bad.json"), "{}").unwrap();
        for (name, expected) in [("bad.json", "expected an `id`"), ("none.json", "No such file")] {
            let file = config(directory.path(), &format!("advisories = [\"{name}\"]"));
            let error = objection(&file).unwrap_err().to_string();
            assert!(error.contains(&format!("{name} cannot be used: ")), "{error}");
            assert!(error.contains(expected), "{error}");
        }
        let other = ConfigFile::parse(
            Path::new("cofferdam.toml"),
            "[registry]\nadvisories = [\"oci://ghcr.io/acme/osv\"]\n",
        );
        let error = other.unwrap_err().to_string();
        assert!(error.contains("expected a file, a directory or an https address"), "{error}");
    }
}
