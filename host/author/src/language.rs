//! The languages of plugin projects.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A language with an SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// Built with cargo, for `wasm32-wasip2`.
    Rust,
    /// Built with componentize-py, which puts `CPython` into the component.
    Python,
    /// Built with componentize-qjs, which puts `QuickJS` into the component.
    JavaScript,
    /// Built like JavaScript; esbuild removes the types.
    TypeScript,
    /// Built with Go's own compiler.
    Go,
    /// Built with clang and the C library of WASI.
    C,
    /// Built with clang and the C and C++ libraries of WASI.
    Cpp,
    /// Built with Zig's own compiler.
    Zig,
}

impl Language {
    /// All languages, in the order of help texts and lists.
    pub const ALL: [Self; 8] = [
        Self::Rust,
        Self::Python,
        Self::JavaScript,
        Self::TypeScript,
        Self::Go,
        Self::C,
        Self::Cpp,
        Self::Zig,
    ];

    /// Returns the name of the language on the command line.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::TypeScript => "typescript",
            Self::Go => "go",
            Self::C => "c",
            Self::Cpp => "cpp",
            Self::Zig => "zig",
        }
    }

    /// Returns the commands that a new project needs once before its first build, in order. Empty
    /// for toolchains that need no setup.
    #[must_use]
    pub const fn setup_commands(self) -> &'static [&'static str] {
        match self {
            Self::JavaScript | Self::TypeScript => &["npm install"],
            Self::Python => &crate::languages::python::SETUP_COMMANDS,
            Self::Rust | Self::Go | Self::C | Self::Cpp | Self::Zig => &[],
        }
    }

    /// Detects the language of a project by its files. Project files come before source files: a
    /// `main.py` beside a `Cargo.toml` is a script of a Rust project.
    pub(crate) fn of_directory(directory: &Path) -> Option<Self> {
        let has = |name: &str| directory.join(name).is_file();
        if has("Cargo.toml") {
            return Some(Self::Rust);
        }
        if has("go.mod") {
            return Some(Self::Go);
        }
        if has("build.zig") {
            return Some(Self::Zig);
        }
        if has("package.json") {
            return Some(if has("tsconfig.json") { Self::TypeScript } else { Self::JavaScript });
        }
        if has("pyproject.toml") || has("requirements.txt") {
            return Some(Self::Python);
        }
        let mut by_ending =
            [Self::Zig, Self::Cpp, Self::C, Self::Python].map(|language| (language, false));
        for folder in [directory.to_owned(), directory.join("src")] {
            for entry in folder.read_dir().into_iter().flatten().flatten() {
                let path = entry.path();
                let language = match path.extension().and_then(|ending| ending.to_str()) {
                    Some("zig") => Self::Zig,
                    Some("cpp" | "cc" | "cxx") => Self::Cpp,
                    Some("c") => Self::C,
                    Some("py") => Self::Python,
                    _ => continue,
                };
                for (found, is_there) in &mut by_ending {
                    *is_there |= *found == language;
                }
            }
        }
        by_ending.into_iter().find_map(|(language, is_there)| is_there.then_some(language))
    }
}

impl fmt::Display for Language {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Rust => "Rust",
            Self::Python => "Python",
            Self::JavaScript => "JavaScript",
            Self::TypeScript => "TypeScript",
            Self::Go => "Go",
            Self::C => "C",
            Self::Cpp => "C++",
            Self::Zig => "Zig",
        })
    }
}

/// Error returned for the name of a language without an SDK.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no SDK for `{0}`; there are rust, python, javascript, typescript, go, c, cpp and zig, and every language with a \
     toolchain for components works through the interface in `wit/`"
)]
pub struct UnknownLanguage(String);

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.to_ascii_lowercase().as_str() {
            "rust" | "rs" => Ok(Self::Rust),
            "python" | "py" => Ok(Self::Python),
            "javascript" | "js" => Ok(Self::JavaScript),
            "typescript" | "ts" => Ok(Self::TypeScript),
            "go" | "golang" => Ok(Self::Go),
            "c" => Ok(Self::C),
            "cpp" | "c++" | "cxx" => Ok(Self::Cpp),
            "zig" => Ok(Self::Zig),
            _ => Err(UnknownLanguage(text.to_owned())),
        }
    }
}
