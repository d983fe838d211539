//! Creates projects from templates.

use std::fs;
use std::path::{Path, PathBuf};

use crate::project::is_name;
use crate::{Language, packed};

/// Placeholder for the project's name in templates and in the names of their files.
const NAME: &str = "{{name}}";
/// Placeholder for the project's name as an identifier, with `_` instead of `-`.
const IDENTIFIER: &str = "{{identifier}}";
/// Names that programs use for the SDK: in Rust, and in all other languages.
const SDK_NAMES: [&str; 2] = ["cofferdam-sdk", "cofferdam"];
/// Suffix of templates that the tools of this repository would otherwise read, such as
/// `Cargo.toml`.
const ENDING: &str = ".in";

/// Project that [`create`] has written.
#[derive(Debug)]
pub struct CreatedProject {
    /// Directory of the project.
    pub directory: PathBuf,
    /// Paths of its files relative to `directory`, sorted, without those of the SDK.
    pub files: Vec<String>,
}

/// Error returned by [`create`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The name is not allowed.
    #[error(
        "`{0}` cannot be the name of a plugin: use at most 64 letters, digits, `_` and `-`, the \
         first one a letter"
    )]
    Name(String),
    /// The name is that of the SDK in some language.
    #[error("`{0}` is what the SDK is called; choose another name")]
    NameOfSdk(&'static str),
    /// The path already exists.
    #[error("{} is there already; choose another name, or remove it", .0.display())]
    Exists(PathBuf),
    /// A file or directory cannot be written.
    #[error("{} cannot be written: {error}", path.display())]
    Write {
        /// Path.
        path: PathBuf,
        /// Cause.
        error: std::io::Error,
    },
}

/// Writes a new project into the directory `path`: sources that build, a test, editor settings, and
/// a copy of the SDK. The last component of `path` becomes the name of the plugin.
///
/// # Errors
/// [`CreateError`] if the name is not allowed, the path exists, or writing fails.
pub fn create(path: &Path, language: Language) -> Result<CreatedProject, CreateError> {
    // Paths such as `.` have no name.
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    if !is_name(&name) || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Err(CreateError::Name(name));
    }
    let folded = name.to_ascii_lowercase().replace('_', "-");
    if let Some(taken) = SDK_NAMES.into_iter().find(|taken| *taken == folded) {
        return Err(CreateError::NameOfSdk(taken));
    }
    let failed = |path: &Path, error| CreateError::Write { path: path.to_owned(), error };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|error| failed(parent, error))?;
    }
    // Creating the directory is atomic, so of two concurrent calls one fails.
    match fs::create_dir(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(CreateError::Exists(path.to_owned()));
        }
        made => made.map_err(|error| failed(path, error))?,
    }
    let mut files = Vec::new();
    let fill = |text: &str| {
        text.replace(IDENTIFIER, &name.replace('-', "_").to_lowercase()).replace(NAME, &name)
    };
    for (template, bytes) in templates(language) {
        let file = fill(template.strip_suffix(ENDING).unwrap_or(template));
        let text = std::str::from_utf8(bytes).map(|text| fill(text).into_bytes());
        write(&path.join(&file), &text.unwrap_or_else(|_| bytes.to_vec()))?;
        files.push(file);
    }
    let sdk = path.join("sdk");
    // Where an SDK reads files beside it, the copy has the folders of the repository.
    let folder = match language {
        Language::Rust => "guest-sdk/rust",
        Language::Zig => "zig",
        _ => "",
    };
    for (file, bytes) in packed::sdk(language) {
        write(&sdk.join(folder).join(file.strip_suffix(ENDING).unwrap_or(file)), bytes)?;
    }
    if language == Language::Zig {
        for (file, bytes) in packed::sdk(Language::C) {
            write(&sdk.join("c").join(file), bytes)?;
        }
    }
    if language == Language::Rust {
        // The crates inherit their versions from a workspace.
        write(&sdk.join("Cargo.toml"), packed::RUST_SDK_WORKSPACE.as_bytes())?;
    }
    files.sort();
    // A template of a language replaces the one in `all`.
    files.dedup();
    Ok(CreatedProject { directory: path.to_owned(), files })
}

/// Returns the templates of a language with their paths in the project: those in `all`, then its
/// own.
fn templates(language: Language) -> impl Iterator<Item = (&'static str, &'static [u8])> {
    let of = |folder: &'static str| {
        packed::TEMPLATES.iter().filter_map(move |(path, bytes)| {
            let path = path.strip_prefix(folder)?.strip_prefix('/')?;
            Some((path, *bytes))
        })
    };
    of("all").chain(of(language.id()))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), CreateError> {
    let failed = |error| CreateError::Write { path: path.to_owned(), error };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    fs::write(path, bytes).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_a_template_with_an_sdk() {
        for language in Language::ALL {
            let parent = tempfile::tempdir().unwrap();
            let created = create(&parent.path().join("a/first-try"), language).unwrap();
            for file in ["README.md", "cases.jsonl", "plugin.toml", ".gitignore"] {
                assert!(
                    created.files.iter().any(|there| there == file),
                    "{language}: {file} of {:?}",
                    created.files
                );
            }
            let mut once = created.files.clone();
            once.dedup();
            assert_eq!(once, created.files, "{language}");
            assert!(created.directory.join("sdk").read_dir().unwrap().count() > 1, "{language}");
            for file in &created.files {
                let text = fs::read_to_string(created.directory.join(file)).unwrap();
                assert!(!text.contains("{{"), "{language}: {file}");
            }
            let opened = crate::Project::open(&created.directory).unwrap();
            assert_eq!((opened.language(), opened.name()), (language, "first-try"));
        }
    }

    #[test]
    fn nothing_that_is_there_is_overwritten() {
        let parent = tempfile::tempdir().unwrap();
        assert!(matches!(
            create(parent.path(), Language::C),
            Err(CreateError::Name(_) | CreateError::Exists(_))
        ));
        let taken = parent.path().join("taken");
        fs::write(&taken, "mine").unwrap();
        assert!(matches!(create(&taken, Language::C), Err(CreateError::Exists(_))));
        assert_eq!(fs::read_to_string(&taken).unwrap(), "mine");
        for name in ["1st", "a b", "..", "ä"] {
            assert!(
                matches!(create(&parent.path().join(name), Language::C), Err(CreateError::Name(_))),
                "{name}"
            );
        }
    }

    /// The copy of the SDK uses the same dependency versions as the SDK in the repository.
    #[test]
    fn versions_are_those_of_the_repository() {
        let table = |text: &str| -> toml::Table {
            let whole: toml::Table = toml::from_str(text).unwrap();
            whole["workspace"]["dependencies"].as_table().unwrap().clone()
        };
        let ours = table(
            &fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml"))
                .unwrap(),
        );
        for (name, copied) in table(packed::RUST_SDK_WORKSPACE) {
            if name != "cofferdam-sdk-macros" {
                assert_eq!(Some(&copied), ours.get(&name), "{name}");
            }
        }
    }
}
