//! Lasting grants to components that no configuration names. They are stored by the digest of the
//! component, in a file of the user.
//!
//! Only the exact component that received a grant gets it again. No plugin and no file tool may
//! write to the file, even if it does not exist yet.

use data_encoding::HEXLOWER;
use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::error::Context as _;
use cofferdam_engine::{Grants, Mount, Plugin, PluginOptions};
use cofferdam_tool::{FileAccess, MountName, Permission};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Error;
use crate::compose::PluginSpec;
use crate::config::edit::NewGrant;
use crate::folder_lock::FolderLock;
use crate::{compose, consent, directories, granting, policy_files, state_file};

/// Name of the file in the user's state directory.
const FILE: &str = "grants.json";
/// Prefix of a digest.
const SHA256: &str = "sha256:";
/// Minimum number of digits that identify a component.
const DIGITS_MIN: usize = 4;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GrantsFile {
    components: BTreeMap<String, Component>,
}

/// Grants of one component.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Component {
    /// Name of the plugin when the last grant was made, for lists.
    name: String,
    grants: Vec<Grant>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Grant {
    permission: String,
    /// Directory of the mount: absolute, without symbolic links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    directory: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<String>,
}

/// Returns the path of the file. Returns `None` if the user's directories are unknown; nothing is
/// remembered then.
pub(crate) fn path() -> Option<PathBuf> {
    Some(directories::state().ok()?.join(FILE))
}

/// Returns the options of `spec` with the grants that are remembered for its `plugin`, or `None` if
/// there are none to add.
pub(crate) fn widened(spec: &PluginSpec, plugin: &Plugin) -> crate::Result<Option<PluginOptions>> {
    if spec.config.is_some() {
        return Ok(None);
    }
    let Some(path) = path() else { return Ok(None) };
    let Some(component) = read(&path)?.components.remove(&*plugin.identity().digest) else {
        return Ok(None);
    };
    let mut options = spec.options.clone();
    let mut is_wider = false;
    for grant in &component.grants {
        let Some(grant) = grant.usable(&options.grants).with_context(|| {
            format!("{} cannot be read; remove it to forget all permanent grants", path.display())
        })?
        else {
            continue;
        };
        consent::widen(&mut options.grants, &mut options.limits, &grant)?;
        is_wider = true;
    }
    granting::check_mounts(
        &options.grants.mounts,
        &policy_files::locate(&compose::policy_files_beside(spec)),
    )?;
    Ok(is_wider.then_some(options))
}

/// Remembers grants for `plugin`, whose mounts are `mounts`. Returns those that cannot be
/// remembered because their store is not a directory.
pub(crate) fn remember(
    plugin: &Plugin,
    mounts: &[Mount],
    grants: &[NewGrant],
) -> crate::Result<Vec<NewGrant>> {
    let path = path().context("the home directory is not known, to remember grants in")?;
    let _lock = FolderLock::take(&path)?;
    let mut file = read(&path)?;
    let identity = plugin.identity();
    let component = file.components.entry(identity.digest.to_string()).or_default();
    component.name = identity.name.to_string();
    let mut forgotten = Vec::new();
    for grant in grants {
        let Some(new) = Grant::new(grant, mounts) else {
            forgotten.push(grant.clone());
            continue;
        };
        component.grants.retain(|old| !new.replaces(old));
        component.grants.push(new);
    }
    if forgotten.len() < grants.len() {
        state_file::save(&path, &file)?;
    }
    Ok(forgotten)
}

/// Forgets the grants of one component, which `named` identifies by its file or the first digits of
/// its digest. Returns the digest and the grants.
pub fn forget(named: &str) -> crate::Result<(String, Component)> {
    let path = path().context("the home directory is not known, and so nothing is remembered")?;
    let _lock = FolderLock::take(&path)?;
    let mut file = read(&path)?;
    let digest = found(named, &file)?;
    let component = file.components.remove(&digest).unwrap_or_default();
    state_file::save(&path, &file)?;
    Ok((digest, component))
}

/// Lists all remembered grants, by component.
pub fn list() -> crate::Result<String> {
    let Some(path) = path() else { return Ok(String::new()) };
    let mut text = String::new();
    for (digest, component) in read(&path)?.components {
        text.push_str(&format!("{digest}  {}\n", component.name));
        text.push_str(&component.text());
    }
    Ok(text)
}

impl Component {
    /// Returns the grants, one per line.
    pub fn text(&self) -> String {
        self.grants.iter().map(|grant| format!("  {}\n", grant.text())).collect()
    }
}

impl Grant {
    fn new(grant: &NewGrant, mounts: &[Mount]) -> Option<Self> {
        let directory = match &grant.permission {
            Permission::Files(Some(name), _) => {
                Some(directory_of(name, mounts, grant.directory.as_deref())?)
            }
            _ => None,
        };
        Some(Self {
            permission: grant.permission.to_string(),
            directory,
            value: grant.value.clone(),
        })
    }

    /// Returns whether this grant replaces an older one: same permission or same mount.
    fn replaces(&self, old: &Self) -> bool {
        let mount = |grant: &Self| match grant.permission.parse() {
            Ok(Permission::Files(name, _)) => name,
            _ => None,
        };
        self.permission == old.permission || (mount(self).is_some() && mount(self) == mount(old))
    }

    /// Returns the grant if it can be added to `grants`. Returns `None` if the directory or
    /// variable no longer exists, the directory has become another one, or the access is already
    /// granted.
    fn usable(&self, grants: &Grants) -> crate::Result<Option<NewGrant>> {
        let permission: Permission = self
            .permission
            .parse()
            .with_context(|| format!("invalid permission `{}`", self.permission))?;
        let is_usable = match &permission {
            Permission::Files(Some(name), access) => {
                let is_there = self.directory.as_ref().is_some_and(|directory| {
                    directory.canonicalize().is_ok_and(|now| now == *directory && now.is_dir())
                });
                let known = grants.mounts.iter().find(|mount| mount.name == *name);
                let is_wider = known.is_none_or(|mount| {
                    directory_of(name, &grants.mounts, None) == self.directory
                        && mount.access != FileAccess::ReadWrite
                        && *access != FileAccess::ReadOnly
                });
                is_there && is_wider
            }
            Permission::Env(name) => std::env::var(name).is_ok(),
            Permission::Files(None, _) | Permission::Secret(_) => false,
            _ => true,
        };
        let (directory, value) = (self.directory.clone(), self.value.clone());
        Ok(is_usable.then_some(NewGrant { permission, directory, value }))
    }

    fn text(&self) -> String {
        let directory =
            self.directory.as_ref().map(|directory| format!(" in {}", directory.display()));
        let value = self.value.as_ref().map(|value| format!(" = {value}"));
        format!("{}{}{}", self.permission, directory.unwrap_or_default(), value.unwrap_or_default())
    }
}

/// Returns the directory of a mount, or else `typed`, with symbolic links resolved.
fn directory_of(name: &MountName, mounts: &[Mount], typed: Option<&Path>) -> Option<PathBuf> {
    let mount = mounts.iter().find(|mount| mount.name == *name);
    let directory = match mount {
        Some(mount) => mount.store.root_ambient()?,
        None => typed?,
    };
    directory.canonicalize().ok()
}

fn found(named: &str, file: &GrantsFile) -> crate::Result<String> {
    let as_file = Path::new(named);
    if as_file.is_file() {
        let digest = digest_of(as_file).with_context(|| format!("{named} cannot be read"))?;
        return match file.components.contains_key(&digest) {
            true => Ok(digest),
            false => Err(usage(format!("nothing is remembered for {named}, which is {digest}"))),
        };
    }
    let digits = named.strip_prefix(SHA256).unwrap_or(named).to_ascii_lowercase();
    if digits.len() < DIGITS_MIN || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let expected =
            format!("a component file or at least {DIGITS_MIN} hexadecimal digits of its digest");
        return Err(usage(format!(
            "expected {expected}, found `{named}`; `cofferdam grant --list` shows the digests"
        )));
    }
    let begins =
        |digest: &&String| digest.strip_prefix(SHA256).is_some_and(|its| its.starts_with(&digits));
    let mut matching = file.components.keys().filter(begins);
    match (matching.next(), matching.next()) {
        (Some(digest), None) => Ok(digest.clone()),
        (None, _) => Err(usage(format!(
            "nothing is remembered for `{named}`; `cofferdam grant --list` shows all"
        ))),
        (Some(_), Some(_)) => Err(usage(format!(
            "several digests begin with `{named}`; write more of the one that is meant"
        ))),
    }
}

/// Returns the digest of a file: `sha256:` and hexadecimal digits.
pub(crate) fn digest_of(path: &Path) -> io::Result<String> {
    let (mut file, mut digest) = (cofferdam_files::open_named_ambient(path)?, Sha256::new());
    let mut piece = [0; 8192];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            count => digest.update(piece.get(..count).unwrap_or_default()),
        }
    }
    Ok(format!("{SHA256}{}", HEXLOWER.encode(&digest.finalize())))
}

fn read(path: &Path) -> crate::Result<GrantsFile> {
    state_file::read(path, "remove it to forget all permanent grants")
}

fn usage(message: String) -> crate::Error {
    Error::Invalid(message)
}
