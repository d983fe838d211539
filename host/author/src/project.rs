//! Contents of a project directory.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::read::read_text;
use crate::{BuildError, Language};

/// File name of a plugin's manifest. Its table `[build]` is only for this crate and is not embedded
/// in the component.
pub(crate) const MANIFEST: &str = "plugin.toml";
/// Maximum length of a settings file.
pub(crate) const SETTINGS_BYTES_MAX: u64 = 262_144;

/// A directory with the sources of a plugin.
#[derive(Debug)]
pub struct Project {
    directory: PathBuf,
    name: String,
    language: Language,
    build: BuildTable,
    manifest: Option<String>,
}

/// The table `[build]` of `plugin.toml`: settings that the files of the project do not show.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct BuildTable {
    /// Name of the component, without extension.
    pub name: Option<String>,
    /// Language, as in `cofferdam new --lang`.
    pub language: Option<String>,
    /// Main file of a Python, JavaScript or Zig project, or package with `main` of a Go project,
    /// relative to the directory.
    pub entry: Option<PathBuf>,
    /// Source files of a C, C++ or Python project, as globs relative to the directory.
    pub sources: Vec<String>,
    /// Additional flags of a C, C++ or Zig compiler.
    pub flags: Vec<String>,
    /// False if a Go program starts anew in each call, instead of once while it is built. Defaults
    /// to true.
    pub snapshot: Option<bool>,
    /// Directory of the SDK, relative to the project.
    pub sdk: Option<PathBuf>,
}

/// Error returned for a directory that is not a project.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectError {
    /// The directory does not exist.
    #[error("{} is not a directory", .0.display())]
    NoDirectory(PathBuf),
    /// A file cannot be read.
    #[error("{} cannot be read: {error}", path.display())]
    Read {
        /// Path.
        path: PathBuf,
        /// Cause.
        error: std::io::Error,
    },
    /// A settings file is longer than the limit.
    #[error("{} is longer than {SETTINGS_BYTES_MAX} bytes", .0.display())]
    TooLong(PathBuf),
    /// A settings file is invalid.
    #[error("{}: {message}", path.display())]
    Settings {
        /// Path.
        path: PathBuf,
        /// Error message with its position.
        message: String,
    },
    /// No file shows the language of the project.
    #[error(
        "{} holds no project in a language with an SDK: there is no Cargo.toml, go.mod, build.zig, package.json, pyproject.toml, or \
         source file in Python, C, C++ or Zig. `cofferdam new NAME --lang …` starts one; `[build] language` \
         in plugin.toml says what cannot be \
         seen", .0.display()
    )]
    NoLanguage(PathBuf),
    /// The name of the component is not a valid file name on every system.
    #[error(
        "`{0}` cannot be the name of a component: use letters, digits, `_` and `-`, and set \
         `[build] name` in plugin.toml"
    )]
    Name(String),
}

impl Project {
    /// Opens the project in a directory: reads its settings and detects its language.
    ///
    /// # Errors
    /// [`ProjectError`] if the directory contains no project, or its settings are invalid.
    pub fn open(directory: &Path) -> Result<Self, ProjectError> {
        let directory = directory
            .canonicalize()
            .ok()
            .filter(|directory| directory.is_dir())
            .ok_or_else(|| ProjectError::NoDirectory(directory.to_owned()))?;
        let path = directory.join(MANIFEST);
        let (build, manifest) = match read(&path)? {
            Some(text) => {
                let wrong = |message| ProjectError::Settings { path: path.clone(), message };
                let (build, manifest) = split(&text).map_err(wrong)?;
                (build, Some(manifest))
            }
            None => (BuildTable::default(), None),
        };
        let language = match &build.language {
            Some(language) => language.parse().map_err(|error: crate::UnknownLanguage| {
                ProjectError::Settings { path, message: error.to_string() }
            })?,
            None => Language::of_directory(&directory)
                .ok_or_else(|| ProjectError::NoLanguage(directory.clone()))?,
        };
        let name = match &build.name {
            Some(name) => name.clone(),
            None => directory.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        };
        if !is_name(&name) {
            return Err(ProjectError::Name(name));
        }
        Ok(Self { directory, name, language, build, manifest })
    }

    /// Returns the directory, as an absolute path.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the name of the component, without extension.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the language.
    #[must_use]
    pub fn language(&self) -> Language {
        self.language
    }

    /// Returns the table `[build]` of `plugin.toml`.
    #[must_use]
    pub fn build(&self) -> &BuildTable {
        &self.build
    }

    /// Returns the manifest for the component: `plugin.toml` without `[build]`.
    #[must_use]
    pub fn manifest(&self) -> Option<&str> {
        self.manifest.as_deref()
    }

    /// Returns the default path of the component.
    #[must_use]
    pub fn component(&self) -> PathBuf {
        self.directory.join("dist").join(format!("{}.wasm", self.name))
    }

    /// Returns the directory for intermediate files, after creating it with a `.gitignore` that
    /// excludes it from version control.
    ///
    /// # Errors
    /// [`BuildError::Write`] if it cannot be created.
    pub fn work(&self) -> Result<PathBuf, BuildError> {
        let work = self.directory.join(".cofferdam");
        let ignore = work.join(".gitignore");
        fs::create_dir_all(&work).map_err(|error| BuildError::write(&work, error))?;
        if !ignore.is_file() {
            fs::write(&ignore, "*\n").map_err(|error| BuildError::write(&ignore, error))?;
        }
        Ok(work)
    }

    /// Returns the directory of the SDK: the one that `[build] sdk` names, or `sdk`.
    ///
    /// # Errors
    /// [`BuildError::NoSdk`] if it is missing.
    pub fn sdk(&self) -> Result<PathBuf, BuildError> {
        let named = self.build.sdk.as_deref().unwrap_or(Path::new("sdk"));
        let sdk = self.directory.join(named);
        match sdk.canonicalize() {
            Ok(sdk) if sdk.is_dir() => Ok(sdk),
            _ => Err(BuildError::NoSdk { looked_for: sdk }),
        }
    }
}

/// Reads a settings file. Returns `None` if it is missing.
fn read(path: &Path) -> Result<Option<String>, ProjectError> {
    match read_text(path, SETTINGS_BYTES_MAX) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == ErrorKind::FileTooLarge => {
            Err(ProjectError::TooLong(path.to_owned()))
        }
        Err(error) => Err(ProjectError::Read { path: path.to_owned(), error }),
    }
}

/// Splits `plugin.toml` into the table `[build]` and the rest, which the host reads and checks as
/// the manifest.
fn split(text: &str) -> Result<(BuildTable, String), String> {
    let mut tables: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
    let Some(build) = tables.remove("build") else {
        return Ok((BuildTable::default(), text.to_owned()));
    };
    let build = build.try_into().map_err(|error| format!("[build]: {error}"))?;
    let manifest = toml::to_string(&tables).map_err(|error| error.to_string())?;
    Ok((build, manifest))
}

/// Returns whether a string can be the name of a plugin and a file name on every system.
pub(crate) fn is_name(text: &str) -> bool {
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    starts_well
        && text.len() <= 64
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(files: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for file in files {
            let path = directory.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        directory
    }

    #[test]
    fn the_language_is_seen_from_the_files() {
        for (files, language) in [
            (&["Cargo.toml", "build.py"][..], Language::Rust),
            (&["go.mod", "tools.c"], Language::Go),
            (&["package.json"], Language::JavaScript),
            (&["package.json", "tsconfig.json"], Language::TypeScript),
            (&["pyproject.toml"], Language::Python),
            (&["requirements.txt"], Language::Python),
            (&["tool.py"], Language::Python),
            (&["src/tool.c", "generate.py"], Language::C),
            (&["tool.cc", "old.c"], Language::Cpp),
            (&["build.zig", "package.json"], Language::Zig),
            (&["tool.zig", "fast.c"], Language::Zig),
        ] {
            let directory = directory(files);
            assert_eq!(Language::of_directory(directory.path()), Some(language), "{files:?}");
        }
        assert_eq!(Language::of_directory(directory(&["README.md"]).path()), None);
    }

    #[test]
    fn the_build_table_is_no_part_of_the_manifest() {
        let text = "# what it needs\n[permissions]\nrandom = false # none\n\n[build]\nname \
            = \"x\"\nflags = [\"-O2\"]\n";
        let (build, manifest) = split(text).unwrap();
        assert_eq!((build.name.as_deref(), build.flags), (Some("x"), vec!["-O2".to_owned()]));
        assert!(manifest.contains("random = false") && !manifest.contains("build"), "{manifest}");
        assert_eq!(split("a = 1\n").unwrap().1, "a = 1\n");
        assert!(split("[build]\nspeed = 1\n").unwrap_err().contains("speed"));
    }

    #[test]
    fn a_name_is_a_file_name_everywhere() {
        for name in ["a", "word-count", "Tool_2"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".", "-a", "_a", "a b", "a/b", "ä", "a.b", &"a".repeat(65)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
