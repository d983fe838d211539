//! Files that packages contain besides the binary.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context;

use super::files::FileTree;
use super::{Binary, dependencies, licenses, output_of};
use crate::packages::text;
use crate::run::root;

/// Name of the file with the licences of third parties.
pub(super) const NOTICES: &str = "THIRD-PARTY-NOTICES.txt";

/// Files besides the binary.
pub(super) struct Contents {
    pub(super) license: Vec<u8>,
    pub(super) readme: Vec<u8>,
    pub(super) changelog: Vec<u8>,
    /// Licences of everything that the binary is built of.
    pub(super) notices: String,
    pub(super) completions: Vec<(Shell, Vec<u8>)>,
    /// Manual pages by their file names.
    pub(super) manual: BTreeMap<String, Vec<u8>>,
}

/// Shell that completions are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shell {
    Bash,
    Zsh,
    Fish,
    /// PowerShell.
    Power,
}

impl Shell {
    const ALL: [Self; 4] = [Self::Bash, Self::Zsh, Self::Fish, Self::Power];

    fn id(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
            Self::Power => "powershell",
        }
    }

    /// Returns the file name that the shell expects.
    pub(super) fn file_name(self) -> &'static str {
        match self {
            Self::Bash => "cofferdam.bash",
            Self::Zsh => "_cofferdam",
            Self::Fish => "cofferdam.fish",
            Self::Power => "_cofferdam.ps1",
        }
    }
}

impl Contents {
    /// Collects the files for a binary. `generator` is a binary that runs on this machine.
    pub(super) fn new(binary: &Binary, generator: &Path) -> anyhow::Result<Self> {
        let read =
            |name: &str| fs::read(root().join(name)).with_context(|| format!("cannot read {name}"));
        let completions = Shell::ALL.into_iter().map(|shell| {
            output_of(generator, &["completions", shell.id()]).map(|script| (shell, script))
        });
        let crates = dependencies::linked(&binary.platform, dependencies::ROOT_PACKAGE)?;
        Ok(Self {
            license: read("LICENSE")?,
            readme: read("README.md")?,
            changelog: read("CHANGELOG.md")?,
            notices: licenses::notices(&crates)?,
            completions: completions.collect::<anyhow::Result<_>>()?,
            manual: manual(generator)?,
        })
    }

    /// Returns the texts that each package contains.
    pub(super) fn documents(&self) -> FileTree {
        let mut files = self.legal();
        files.add("README.md", &*self.readme);
        files
    }

    /// Returns the licences.
    pub(super) fn legal(&self) -> FileTree {
        let mut files = FileTree::default();
        files.add("LICENSE", &*self.license);
        files.add(NOTICES, &*self.notices);
        files
    }
}

/// Returns the manual pages by their file names.
fn manual(generator: &Path) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let folder = tempfile::tempdir()?;
    output_of(generator, &["man", "--dir", text(folder.path())?])?;
    let mut pages = BTreeMap::new();
    for entry in fs::read_dir(folder.path())? {
        let entry = entry?;
        let name = entry.file_name().into_string().ok().context("a page has a name in UTF-8")?;
        pages.insert(name, fs::read(entry.path())?);
    }
    Ok(pages)
}
