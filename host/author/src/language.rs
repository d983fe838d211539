//! The languages that projects are made in.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A language with an SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// With cargo, for `wasm32-wasip2`.
    Rust,
    /// With componentize-py: `CPython` inside of the component.
    Python,
    /// With componentize-qjs: `QuickJS` inside of the component.
    JavaScript,
    /// As JavaScript, with esbuild taking the types away.
    TypeScript,
    /// With Go's own compiler.
    Go,
    /// With clang and the C library of WASI.
    C,
    /// With clang and the C and C++ libraries of WASI.
    Cpp,
}

impl Language {
    /// In the order in which users are shown them.
    pub const ALL: [Self; 7] = [
        Self::Rust,
        Self::Python,
        Self::JavaScript,
        Self::TypeScript,
        Self::Go,
        Self::C,
        Self::Cpp,
    ];

    /// As it is typed.
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
        }
    }

    /// Returns the commands that a new project needs once before its first build, in their order.
    /// Empty where the toolchain brings everything.
    #[must_use]
    pub const fn setup_commands(self) -> &'static [&'static str] {
        match self {
            Self::JavaScript | Self::TypeScript => &["npm install"],
            Self::Python => &crate::languages::python::SETUP_COMMANDS,
            Self::Rust | Self::Go | Self::C | Self::Cpp => &[],
        }
    }

    /// The language of a project by the files that its programmers have in every project, most
    /// telling first. A `main.py` beside a `Cargo.toml` is a script of a Rust project.
    pub(crate) fn of_directory(directory: &Path) -> Option<Self> {
        let has = |name: &str| directory.join(name).is_file();
        if has("Cargo.toml") {
            return Some(Self::Rust);
        }
        if has("go.mod") {
            return Some(Self::Go);
        }
        if has("package.json") {
            return Some(if has("tsconfig.json") { Self::TypeScript } else { Self::JavaScript });
        }
        if has("pyproject.toml") || has("requirements.txt") {
            return Some(Self::Python);
        }
        let mut by_ending = [(Self::Cpp, false), (Self::C, false), (Self::Python, false)];
        for folder in [directory.to_owned(), directory.join("src")] {
            for entry in folder.read_dir().into_iter().flatten().flatten() {
                let path = entry.path();
                let language = match path.extension().and_then(|ending| ending.to_str()) {
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
        })
    }
}

/// Error returned for a name that is no language with an SDK.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no SDK for `{0}`; there are rust, python, javascript, typescript, go, c and cpp, and every language with a \
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
            _ => Err(UnknownLanguage(text.to_owned())),
        }
    }
}
