//! Statements that are made for a component when it is published: what it is built of, and where
//! its sources are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cofferdam_files::read_named_text_ambient;
use cofferdam_registry::{
    ArtifactStatement, CYCLONEDX, PROVENANCE, ProvenanceFacts, README_BYTES_MAX, SourceCommit, sbom,
};

use super::publish::{Publication, SigningRequest};
use crate::{Error, Result};

/// Name of a README.
const README: &str = "README.md";
/// Name of the directory that `cofferdam build` writes components to.
const OUTPUT_DIRECTORY: &str = "dist";
/// Annotations that say name and version of a plugin.
const TITLE: &str = "org.opencontainers.image.title";
const VERSION: &str = "org.opencontainers.image.version";

impl Publication {
    /// Adds statements to what is signed: the list of what the component is built of, if the
    /// component contains that, and its provenance. One of the same type that is there stays
    /// instead.
    ///
    /// # Errors
    /// Returns an error if the component's list is invalid.
    pub fn add_statements(&mut self, facts: &ProvenanceFacts) -> Result<()> {
        let Some(signing) = &mut self.signing else { return Ok(()) };
        if !signing.has(CYCLONEDX) {
            let annotation = |name| self.annotations.get(name).map_or("", String::as_str);
            let (name, version) = (annotation(TITLE), annotation(VERSION));
            let list = sbom(&self.component, name, version).map_err(|error| {
                Error::invalid(format!(
                    "{error}; publish without statements, or sign a list of your own: \
                     --no-statements, or --attest cyclonedx=FILE"
                ))
            })?;
            signing.statements.extend(list);
        }
        if !signing.has(PROVENANCE) {
            signing.statements.push(facts.provenance());
        }
        Ok(())
    }

    /// Returns the types of the statements that are signed.
    #[must_use]
    pub fn statement_types(&self) -> Vec<String> {
        let statements = self.signing.iter().flat_map(|signing| &signing.statements);
        statements.map(|statement| statement.predicate_type.clone()).collect()
    }
}

impl SigningRequest {
    fn has(&self, predicate_type: &str) -> bool {
        let is = |statement: &ArtifactStatement| statement.predicate_type == predicate_type;
        self.statements.iter().any(is)
    }
}

/// Returns the commit of the work tree of git that contains a file, or `None` if it is in none.
/// Asks the program `git`.
#[must_use]
pub fn source_commit_ambient(file: &Path) -> Option<SourceCommit> {
    let directory = directory_of(file)?;
    let id = git(&directory, &["rev-parse", "--verify", "HEAD"])?;
    let id = id.trim().to_owned();
    let is_name = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let changes = git(&directory, &["status", "--porcelain"])?;
    is_name.then_some(SourceCommit { id, is_dirty: !changes.is_empty() })
}

/// Runs git in a directory. Returns its output, or `None` if it fails.
fn git(directory: &Path, arguments: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    // Neither writes the index nor starts a program that the repository names.
    git.args(["--no-optional-locks", "-c", "core.fsmonitor=false"]).args(arguments);
    git.current_dir(directory).stdin(Stdio::null()).stderr(Stdio::null());
    let output = git.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

/// Returns the README of a component file: beside it, or in the directory above `dist`.
#[must_use]
pub fn find_readme_ambient(component: &Path) -> Option<PathBuf> {
    let directory = directory_of(component)?;
    let is_output = directory.file_name().is_some_and(|name| name == OUTPUT_DIRECTORY);
    let above = directory.parent().filter(|_| is_output);
    let directories = [Some(directory.as_path()), above].into_iter().flatten();
    directories.map(|directory| directory.join(README)).find(|path| path.is_file())
}

/// Reads a README.
///
/// # Errors
/// Returns an error if the file cannot be read, is too large or is not UTF-8.
pub fn read_readme_ambient(path: &Path) -> Result<String> {
    let readme = read_named_text_ambient(path, README_BYTES_MAX);
    readme.map_err(|error| {
        let path = path.display();
        Error::invalid(format!(
            "{path} cannot be published: {error}; leave it out with --no-readme"
        ))
    })
}

/// Returns the directory of a file, with its full path.
fn directory_of(file: &Path) -> Option<PathBuf> {
    let directory = file.parent().filter(|directory| !directory.as_os_str().is_empty());
    directory.unwrap_or(Path::new(".")).canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_readme_is_beside_the_component_or_above_dist() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let found = |component: &str| find_readme_ambient(&root.join(component));
        for directory in ["dist", "other"] {
            std::fs::create_dir(root.join(directory)).unwrap();
        }
        assert_eq!(found("dist/csv.wasm"), None);
        std::fs::write(root.join(README), "# CSV").unwrap();
        assert_eq!(found("csv.wasm"), Some(root.join(README)));
        assert_eq!(found("dist/csv.wasm"), Some(root.join(README)));
        assert_eq!(found("other/csv.wasm"), None);
        assert_eq!(found("missing/csv.wasm"), None);
        std::fs::write(root.join("dist/README.md"), [0xff]).unwrap();
        let nearer = found("dist/csv.wasm").unwrap();
        assert_eq!(nearer, root.join("dist/README.md"));
        let invalid = format!("{:#}", read_readme_ambient(&nearer).unwrap_err());
        assert!(invalid.contains("leave it out with --no-readme"), "{invalid}");
    }
}
