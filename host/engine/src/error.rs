//! Errors of building an engine and of loading a component.
//!
//! These errors are for the operator: they contain file names. They are never shown to a model.

use std::path::PathBuf;

use cofferdam_tool::ToolError;
use cofferdam_tool::declaration::DeclarationError;
use cofferdam_tool::redact::UnusableSecret;

use crate::CompileError;
use crate::cache::CacheError;
use crate::guest::TOOLS_EXPORT;
use crate::manifest::{EmbeddedManifestError, ManifestError};
use crate::screen::ScreenError;
use crate::typed::UnsupportedFunction;

/// Maximum number of characters that are quoted of what a component printed.
const PRINTED_CHARS_MAX: usize = 500;
/// Maximum number of characters that are quoted of an import's name.
const NAME_CHARS_MAX: usize = 120;

/// Error of building an [`Engine`](crate::Engine).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The cache directory cannot be used safely.
    #[error("the cache cannot be used")]
    Cache(#[from] CacheError),
    /// The WebAssembly engine rejects the configuration, or the machine has no room for the pool.
    #[error("cannot start the WebAssembly engine: {reason}")]
    Runtime {
        /// Message of the engine.
        reason: String,
    },
    /// The pool has no room for a call.
    #[error(
        "`concurrent_calls_max` of the pool is 0, so that every call would fail; it must be at least 1"
    )]
    NoCalls,
    /// The epoch thread, which ends overdue calls, cannot be started.
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
    /// The path is not a regular file.
    #[error("is not a regular file")]
    NotAFile,
    /// The file is too large to be read.
    #[error("is {bytes} bytes long; a component may have {bytes_max}")]
    TooLarge {
        /// Length of the file.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The structural screen rejects the component.
    #[error(transparent)]
    Screen(#[from] ScreenError),
    /// The component imports something that this host does not provide.
    #[error("imports {}, which Cofferdam does not offer{}", names(.imports), hint(.imports))]
    UnknownImports {
        /// Imports as written in the component.
        imports: Vec<String>,
    },
    /// The engine for code that counts instructions does not start.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The component has no tools.
    #[error(
        "exports neither `{expected}` nor a function of its own; build it with a Cofferdam SDK, or export plain \
         functions from its WIT world"
    )]
    NoTools {
        /// Export that was expected.
        expected: &'static str,
    },
    /// The component is a command, and its manifest declares no tools.
    #[error(
        "is a command (it exports `wasi:cli/run`) without tools; declare them with `cofferdam wrap`, or in \
         `[tools.NAME]` of a manifest beside it"
    )]
    CommandWithoutTools,
    /// The type of an exported function is not possible for a tool.
    #[error(transparent)]
    UnsupportedFunction(UnsupportedFunction),
    /// A manifest, inside or next to the component, breaks a rule.
    #[error("has a manifest that is not accepted: line {0}")]
    Manifest(ManifestError),
    /// The manifest next to the component cannot be read.
    #[error("has a manifest beside it that {0}")]
    ManifestUnreadable(Box<LoadError>),
    /// The manifest inside the component cannot be read.
    #[error("has a manifest inside that cannot be read: {0}")]
    EmbeddedManifest(EmbeddedManifestError),
    /// A text file is not UTF-8.
    #[error("is not UTF-8 text")]
    NotText,
    /// Compiling failed or hit a limit.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// An import or export has a different type than the host's.
    #[error("does not fit the plugin interface: {reason}")]
    Interface {
        /// Message of the engine.
        reason: String,
    },
    /// Listing the tools ended in an error.
    #[error("did not list its tools: {error}{}", what_it_printed(.printed))]
    Describe {
        /// Error of the call.
        error: ToolError,
        /// End of what the component printed to standard error.
        printed: String,
    },
    /// A definition breaks a rule (`ARG-38` to `ARG-43`).
    #[error(transparent)]
    Declaration(#[from] DeclarationError),
    /// A mount would expose the engine's own files.
    #[error(
        "the mount `{mount}` would give a plugin access to Cofferdam's own cache at {}; \
         mount another directory, or move the cache with --cache-dir",
        .cache.display()
    )]
    MountExposesCache {
        /// Name of the mount.
        mount: String,
        /// Directory that must stay out of reach.
        cache: PathBuf,
    },
    /// A secret cannot be redacted reliably.
    #[error("is granted a secret that cannot be used: {0}")]
    UnusableSecret(UnusableSecret),
    /// The component has another digest than the one that is required.
    #[error("has the digest {found}, which is not the one in the lock file")]
    Digest {
        /// Digest of the component.
        found: String,
    },
    /// The file is not the one that was installed.
    #[error("has changed since it was loaded")]
    Changed,
    /// The build that the plugin waits for has failed.
    #[error(transparent)]
    Build(Box<dyn std::error::Error + Send + Sync>),
    /// The background task was stopped.
    #[error("loading was interrupted")]
    Interrupted,
}

// Not as a source: the message contains it, and a report of all causes would repeat it.
impl From<ManifestError> for LoadError {
    fn from(error: ManifestError) -> Self {
        Self::Manifest(error)
    }
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

/// Returns the end of what a component printed, as a part of a message. An SDK prints the mistake
/// of the author there.
fn what_it_printed(text: &str) -> String {
    let text = text.trim();
    let skipped = text.chars().count().saturating_sub(PRINTED_CHARS_MAX);
    let (start, end) =
        (if skipped > 0 { "…" } else { "" }, text.chars().skip(skipped).collect::<String>());
    match text {
        "" => String::new(),
        _ => format!("; it printed: {start}{}", quoted_line(&end, PRINTED_CHARS_MAX)),
    }
}

/// Returns the beginning of `text` as one line without terminal control characters: it quotes what
/// the author of a component chose.
pub(crate) fn quoted_line(text: &str, chars_max: usize) -> String {
    let mut line = String::new();
    for character in text.chars().take(chars_max) {
        match character {
            '\n' => line.push_str(": "),
            '"' | '\'' | '\\' => line.push(character),
            other => line.extend(other.escape_debug()),
        }
    }
    if text.chars().nth(chars_max).is_some() {
        line.push('…');
    }
    line
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

/// Shortens a name of the component for display. The format allows 100,000 characters.
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

// Not `#[from]`: the message says the cause, which is no source to be shown again.
impl From<UnusableSecret> for LoadError {
    fn from(error: UnusableSecret) -> Self {
        Self::UnusableSecret(error)
    }
}
