//! Trusted configurations: files that the operator has accepted once, and that commands then use
//! without a flag.
//!
//! A configuration of an untrusted repository could load any plugin and grant it anything, so a
//! file is trusted by its path and its content. An edit by another program ends the trust; an edit
//! by this one keeps it. The list lies beside the remembered grants, where no plugin and no file
//! tool may write.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cofferdam_files::read_named_ambient;
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::config::{CONFIG_BYTES_MAX, ConfigFile};
use crate::error::Context as _;
use crate::folder_lock::FolderLock;
use crate::{Error, directories, state_file};

/// Name of a configuration that commands look for.
pub const CONFIG_FILE: &str = "cofferdam.toml";
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Name of the list in the user's state directory.
const FILE: &str = "trusted.json";
/// What to do with a list that cannot be read.
const REMEDY: &str = "remove it to end the trust in all files";

/// Configuration that was found in a directory or above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundConfig {
    /// Path of the file, in a folder without symbolic links.
    pub path: PathBuf,
    /// Trust in the file.
    pub trust: Trust,
}

/// Trust in a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The operator trusts this content.
    Trusted,
    /// The operator has trusted an earlier content.
    Changed,
    /// The operator has not trusted the file.
    Unknown,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustFile {
    /// SHA-256 of the trusted content, by path.
    files: BTreeMap<PathBuf, String>,
}

/// Finds the configuration of `directory`: `cofferdam.toml` in it, or else in the nearest directory
/// above it.
///
/// # Errors
/// Returns an error if the list of trusted files cannot be read.
pub fn find_ambient(directory: &Path) -> crate::Result<Option<FoundConfig>> {
    let found = directory.ancestors().map(|above| above.join(CONFIG_FILE)).find(|it| it.is_file());
    let Some(path) = found.and_then(|path| in_folder(&path).ok()) else { return Ok(None) };
    let trust = match (read()?.files.get(&path), digest(&path)) {
        (Some(trusted), Ok(digest)) if *trusted == digest => Trust::Trusted,
        (Some(_), _) => Trust::Changed,
        (None, _) => Trust::Unknown,
    };
    Ok(Some(FoundConfig { path, trust }))
}

/// Trusts a configuration with the content that was read. Returns the path that is trusted.
///
/// # Errors
/// Returns an error if the folder of the file cannot be resolved, or the home directory is not
/// known.
pub fn trust_ambient(file: &ConfigFile) -> crate::Result<PathBuf> {
    let (digest, path) = (hash(file.text.as_bytes()), &file.path);
    let path = in_folder(path)
        .map_err(|error| Error::Invalid(format!("{} cannot be read: {error}", path.display())))?;
    change(|file| drop(file.files.insert(path.clone(), digest)))?;
    Ok(path)
}

/// Ends the trust in a configuration. Returns whether it was trusted.
///
/// # Errors
/// Returns an error if the list cannot be written.
pub fn distrust_ambient(path: &Path) -> crate::Result<bool> {
    // The file may have been deleted since.
    let absolute = std::path::absolute(path).context("the working directory is not known")?;
    let resolved = in_folder(path).unwrap_or(absolute);
    let mut was_trusted = false;
    change(|file| was_trusted = file.files.remove(&resolved).is_some())?;
    Ok(was_trusted)
}

/// Lists the trusted configurations.
///
/// # Errors
/// Returns an error if the list cannot be read.
pub fn list_ambient() -> crate::Result<Vec<FoundConfig>> {
    let files = read()?.files.into_iter();
    let entry = |(path, trusted): (PathBuf, String)| {
        let is_same = digest(&path).is_ok_and(|digest| digest == trusted);
        FoundConfig { path, trust: if is_same { Trust::Trusted } else { Trust::Changed } }
    };
    Ok(files.map(entry).collect())
}

/// Keeps the trust in a configuration that this program has edited: `before` is the content that it
/// has read, and `after` the content that it has written.
pub(crate) fn follow_edit(path: &Path, before: &str, after: &str) {
    // Without a list, nothing is trusted. If it cannot be written, the operator is asked again.
    let is_trusted = read().is_ok_and(|file| {
        file.files.get(path).is_some_and(|trusted| *trusted == hash(before.as_bytes()))
    });
    if is_trusted {
        let after = hash(after.as_bytes());
        let _ = change(|file| drop(file.files.insert(path.to_owned(), after)));
    }
}

/// Returns the path of a configuration in its folder without symbolic links. A link that is the
/// file itself stays, because the paths in a configuration are relative to the folder in which it
/// is named.
pub(crate) fn in_folder(path: &Path) -> std::io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    match (absolute.parent(), absolute.file_name()) {
        (Some(folder), Some(name)) => Ok(folder.canonicalize()?.join(name)),
        _ => absolute.canonicalize(),
    }
}

fn digest(path: &Path) -> crate::Result<String> {
    let bytes = read_named_ambient(path, CONFIG_BYTES_MAX);
    let bytes = bytes
        .map_err(|error| Error::Invalid(format!("{} cannot be read: {error}", path.display())))?;
    Ok(hash(&bytes))
}

/// Returns the digest of a configuration, the same with and without a byte order mark: a reader
/// removes it, and an edit keeps it.
fn hash(bytes: &[u8]) -> String {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    HEXLOWER.encode(&Sha256::digest(bytes))
}

fn read() -> crate::Result<TrustFile> {
    // Without a home directory, nothing was ever trusted.
    let Ok(directory) = directories::state() else { return Ok(TrustFile::default()) };
    state_file::read(&directory.join(FILE), REMEDY)
}

fn change(change: impl FnOnce(&mut TrustFile)) -> crate::Result<()> {
    let directory = directories::state()?;
    let path = directory.join(FILE);
    // The lock is on the directory.
    directories::make_private(&directory)
        .with_context(|| format!("{} cannot be written", path.display()))?;
    let _lock = FolderLock::take(&path)?;
    let mut file = state_file::read(&path, REMEDY)?;
    change(&mut file);
    state_file::save(&path, &file)
}
