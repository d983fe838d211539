//! Errors of building an engine and of loading a component.
//!
//! These errors are for the person who runs the host: they name files. None of them is ever shown
//! to a model.

use std::path::PathBuf;

use cofferdam_tool::ToolError;
use cofferdam_tool::declaration::DeclarationError;
use cofferdam_tool::redact::UnfitSecret;

use crate::CompileError;
use crate::cache::CacheError;
use crate::guest::TOOLS_EXPORT;
use crate::manifest::{EmbeddedManifestError, ManifestError};
use crate::screen::ScreenError;
use crate::typed::UnfitFunction;

/// Longest part of an import's name that is quoted, in characters.
const NAME_CHARS_MAX: usize = 120;

/// Error of building an [`Engine`](crate::Engine).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The cache directory cannot be used safely.
    #[error("the cache cannot be used")]
    Cache(#[from] CacheError),
    /// The WebAssembly engine refuses the configuration, or the machine has no room for the pool.
    #[error("the WebAssembly engine does not start: {reason}")]
    Runtime {
        /// The engine's own words.
        reason: String,
    },
    /// The thread that ends overdue calls cannot be started.
    #[error("the thread that watches deadlines does not start")]
    Ticker(#[source] std::io::Error),
    /// The HTTP client for requests of guests cannot be set up.
    #[error("HTTP for plugins cannot be set up")]
    Network(#[source] cofferdam_network::ClientError),
}

/// Error of loading a component as a plugin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Read(std::io::Error),
    /// The path is not that of a regular file.
    #[error("is not a regular file")]
    NotAFile,
    /// The file is too large to be looked at.
    #[error("is {bytes} bytes long; a component may have {bytes_max}")]
    TooLarge {
        /// Length of the file.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The structural screen refuses the bytes.
    #[error(transparent)]
    Screen(#[from] ScreenError),
    /// The component imports something that does not exist here.
    #[error("imports {}, which Cofferdam does not offer{}", names(.imports), hint(.imports))]
    UnknownImports {
        /// The imports as written in the component.
        imports: Vec<String>,
    },
    /// The part of the engine that counts instructions does not start.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The component has no tools.
    #[error(
        "exports neither `{expected}` nor a function of its own; build it with a Cofferdam SDK, or export plain \
         functions from its WIT world"
    )]
    NoTools {
        /// The export that was looked for.
        expected: &'static str,
    },
    /// An exported function has a type that no tool can have.
    #[error(transparent)]
    UnfitFunction(UnfitFunction),
    /// A manifest, inside or beside the component, breaks a rule.
    #[error("has a manifest that is not accepted: line {0}")]
    Manifest(#[from] ManifestError),
    /// The manifest beside the component cannot be read.
    #[error("has a manifest beside it that {0}")]
    ManifestUnreadable(Box<LoadError>),
    /// The manifest inside of the component cannot be read.
    #[error("has a manifest inside that cannot be read: {0}")]
    EmbeddedManifest(EmbeddedManifestError),
    /// A text file is not UTF-8.
    #[error("is not UTF-8 text")]
    NotText,
    /// Compiling failed or hit a limit.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// An import or export has another type than the host's.
    #[error("does not fit the plugin interface: {reason}")]
    Interface {
        /// The engine's own words.
        reason: String,
    },
    /// Asking for the definitions ended in an error.
    #[error("did not list its tools: {0}")]
    Describe(ToolError),
    /// A definition breaks a rule (`ARG-38` to `ARG-43`).
    #[error(transparent)]
    Declaration(#[from] DeclarationError),
    /// A file store would expose the host's own files.
    #[error(
        "the mount `{mount}` would give a plugin access to Cofferdam's own cache at {}; \
         mount another directory, or move the cache with --cache-dir",
        .cache.display()
    )]
    MountExposesCache {
        /// The mount.
        mount: String,
        /// The directory that has to stay out of reach.
        cache: PathBuf,
    },
    /// A secret that could not be kept out of texts.
    #[error("is granted a secret that cannot be used: {0}")]
    UnfitSecret(#[from] UnfitSecret),
    /// The file is not the one that was installed.
    #[error("has changed since it was loaded")]
    Changed,
    /// The build that the plugin waits for has failed.
    #[error(transparent)]
    Build(Box<dyn std::error::Error + Send + Sync>),
    /// Work in the background was stopped.
    #[error("loading was interrupted")]
    Interrupted,
}

impl LoadError {
    pub(crate) fn no_tools() -> Self {
        Self::NoTools { expected: TOOLS_EXPORT }
    }
}

/// Formats a message of wasmtime without line breaks.
pub(crate) fn one_line(error: &wasmtime::Error) -> String {
    format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn names(imports: &[String]) -> String {
    let quoted: Vec<_> =
        imports.iter().take(5).map(|name| format!("`{}`", shortened(name))).collect();
    let more = imports.len().saturating_sub(quoted.len());
    match more {
        0 => quoted.join(", "),
        more => format!("{} and {more} more", quoted.join(", ")),
    }
}

/// A name of the component as far as anybody would read it. The format allows 100,000 characters.
fn shortened(name: &str) -> String {
    let mut shown: String = name.chars().take(NAME_CHARS_MAX).collect();
    if shown.len() < name.len() {
        shown.push('…');
    }
    shown
}

fn hint(imports: &[String]) -> &'static str {
    if imports.iter().any(|name| name.starts_with("wasi:") && name.contains("@0.3")) {
        "; WASI 0.3 is not supported yet, build for WASI 0.2"
    } else if imports.iter().any(|name| name.starts_with("wasi_snapshot_preview1")) {
        "; adapt the module with the WASI preview 1 adapter, or build for wasm32-wasip2"
    } else {
        ""
    }
}
