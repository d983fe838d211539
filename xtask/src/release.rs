//! Prepares a release: sets the version in all files that contain it, closes the section
//! `Unreleased` of the changelog, and compares the interfaces of the published crates with those of
//! an earlier version. Commits, tags and publishes nothing.

mod changelog;
mod interfaces;

use std::fs;

use anyhow::{Context, bail};
use semver::Version;

use crate::run::{command, root, section};

/// Version of the workspace.
const CURRENT: &str = env!("CARGO_PKG_VERSION");
/// File with the changes of each version.
const CHANGELOG: &str = "CHANGELOG.md";

/// Files with the version, and the start of the lines that contain it after trimming. The packages
/// of all languages have the same version.
const FILES: [(&str, &[&str]); 4] = [
    ("Cargo.toml", &["version = ", "cofferdam"]),
    ("host/clients/python/pyproject.toml", &["version = ", "native = "]),
    ("host/clients/node/package.json", &["\"version\": "]),
    ("guest-sdk/javascript/package.json", &["\"version\": "]),
];

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Version to release, such as 1.2.0
    #[arg(required_unless_present = "interfaces")]
    version: Option<Version>,
    /// Only compare the interfaces of the published crates with those of this commit, such as the
    /// last tag; needs cargo-semver-checks
    #[arg(long, value_name = "COMMIT", conflicts_with = "version")]
    interfaces: Option<String>,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    match (&options.version, &options.interfaces) {
        (Some(version), _) => prepare(version),
        (None, Some(commit)) => interfaces::compare(commit),
        (None, None) => bail!("expected a version or --interfaces"),
    }
}

/// Writes the version and the changelog.
fn prepare(version: &Version) -> anyhow::Result<()> {
    let current: Version = CURRENT.parse()?;
    if *version <= current {
        bail!("expected a version above {current}, found {version}");
    }
    let status = git(&["status", "--porcelain"])?;
    if !status.is_empty() {
        bail!("the working tree has changes; commit or stash them first:\n{status}");
    }
    let date = git(&["log", "-1", "--format=%cs"])?;
    let changelog = read(CHANGELOG)?;
    let changelog = changelog::close(&changelog, &version.to_string(), &date)?;
    let mut files = vec![(CHANGELOG, changelog)];
    for (path, starts) in FILES {
        let text = read(path)?;
        let changed = with_version(&text, starts, CURRENT, &version.to_string());
        if changed == text {
            bail!("expected the version {current} in {path}, found none; correct it first");
        }
        files.push((path, changed));
    }
    for (path, text) in files {
        fs::write(root().join(path), text).with_context(|| format!("cannot write {path}"))?;
    }
    section("updating the lock files");
    for lock_file in git(&["ls-files", "*Cargo.lock"])?.lines() {
        if !read(lock_file)?.contains("name = \"cofferdam-sdk\"") {
            continue;
        }
        let folder = root().join(lock_file.trim_end_matches("Cargo.lock"));
        command("cargo", &["metadata", "--format-version", "1"]).quiet().run(&folder)?;
    }
    section(&format!("version {version} is prepared; after a look at the changes:"));
    section(&format!(
        "cargo xtask ci && git commit --all --message 'release: {version}' && git tag v{version} \
         && cargo xtask dist --check"
    ));
    Ok(())
}

/// Replaces the version at the end of strings, in lines that begin with one of `starts`.
fn with_version(text: &str, starts: &[&str], current: &str, version: &str) -> String {
    let (from, to) = (format!("{current}\""), format!("{version}\""));
    let mut changed = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let has_version = starts.iter().any(|start| line.trim_start().starts_with(start));
        match has_version {
            true => changed.push_str(&line.replace(&from, &to)),
            false => changed.push_str(line),
        }
    }
    changed
}

fn read(path: &str) -> anyhow::Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| format!("cannot read {path}"))
}

fn git(arguments: &[&str]) -> anyhow::Result<String> {
    let output = command("git", arguments).output(&root())?;
    Ok(String::from_utf8(output)?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_have_the_version_of_the_workspace() {
        for (path, starts) in FILES {
            let text = read(path).unwrap();
            assert_ne!(with_version(&text, starts, CURRENT, "999.0.0"), text, "{path}");
        }
        // Every crate of the repository, and no other.
        let text = with_version(&read("Cargo.toml").unwrap(), FILES[0].1, CURRENT, "999.0.0");
        let ours = text.lines().filter(|line| line.contains("path = \""));
        let (released, others): (Vec<_>, Vec<_>) =
            ours.partition(|line| line.contains("version = \"999.0.0\""));
        assert!(released.len() > 15, "{released:?}");
        let others = others.iter().filter(|line| line.contains("version"));
        assert_eq!(others.collect::<Vec<_>>(), [&""; 0]);
        let all = text.matches("999.0.0").count();
        assert_eq!(all, released.len() + 1, "dependencies of others are not changed");
    }
}
