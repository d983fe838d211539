//! Errors of the host.

use std::error::Error as StdError;
use std::fmt;

use cofferdam_engine::EngineError;

use crate::config::ConfigError;
use crate::loading::PluginError;
#[cfg(feature = "mcp")]
use crate::servers::Unreachable;

/// Result of the host's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Reason why something cannot be built, loaded or changed. `{:#}` shows all causes in one line.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The program has not called [`init`](crate::init).
    NotInitialized,
    /// An argument or option is invalid.
    Invalid(String),
    /// A configuration is invalid.
    Config(ConfigError),
    /// A plugin cannot be loaded.
    Plugin(Box<PluginError>),
    /// The operator has not consented to something.
    NotAccepted(String),
    /// A server cannot be reached.
    #[cfg(feature = "mcp")]
    Unreachable(Unreachable),
    /// The host itself failed.
    Failed {
        /// Description of the error.
        message: String,
        /// Cause of the error.
        source: Option<BoxError>,
    },
}

/// Cause of an error.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// Kind of an [`Error`], determined from its causes as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument or a configuration is invalid.
    Invalid,
    /// A plugin cannot be loaded, a server cannot be reached, or the operator has not consented.
    Unavailable,
    /// The host itself failed.
    Failed,
}

impl Error {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// Returns the error as one of the operator's input, such as a path that does not exist.
    pub(crate) fn into_invalid(self) -> Self {
        Self::Invalid(format!("{self:#}"))
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), source: None }
    }

    /// Returns the kind of the error, or of the first cause that has another kind than
    /// [`ErrorKind::Failed`].
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid(_) | Self::Config(_) | Self::NotInitialized => ErrorKind::Invalid,
            Self::Plugin(_) | Self::NotAccepted(_) => ErrorKind::Unavailable,
            #[cfg(feature = "mcp")]
            Self::Unreachable(_) => ErrorKind::Unavailable,
            Self::Failed { source, .. } => {
                let cause = source.as_deref().and_then(|source| source.downcast_ref::<Self>());
                cause.map_or(ErrorKind::Failed, Self::kind)
            }
        }
    }

    /// Wraps the error in a message that describes the failed operation.
    #[must_use]
    pub fn context(self, message: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), source: Some(Box::new(self)) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInitialized => f.write_str(
                "call `cofferdam::init()` first thing in `main`: plugins are compiled in a child process, which is this \
                 program again and would otherwise start a second copy of it",
            )?,
            Self::Invalid(message) | Self::NotAccepted(message) | Self::Failed { message, .. } => {
                f.write_str(message)?;
            }
            Self::Config(error) => error.fmt(f)?,
            Self::Plugin(error) => error.fmt(f)?,
            #[cfg(feature = "mcp")]
            Self::Unreachable(error) => error.fmt(f)?,
        }
        if f.alternate() {
            let mut cause = self.source();
            while let Some(error) = cause {
                write!(f, ": {error}")?;
                cause = error.source();
            }
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::NotInitialized | Self::Invalid(_) | Self::NotAccepted(_) => None,
            Self::Config(error) => error.source(),
            Self::Plugin(error) => error.source(),
            #[cfg(feature = "mcp")]
            Self::Unreachable(error) => error.source(),
            Self::Failed { source, .. } => source.as_deref().map(|source| source as _),
        }
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<PluginError> for Error {
    fn from(error: PluginError) -> Self {
        Self::Plugin(Box::new(error))
    }
}

#[cfg(feature = "mcp")]
impl From<Unreachable> for Error {
    fn from(error: Unreachable) -> Self {
        Self::Unreachable(error)
    }
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Self {
        Self::Failed {
            message: "cannot start the engine".to_owned(),
            source: Some(Box::new(error)),
        }
    }
}

/// Adds a message to an error.
pub(crate) trait Context<T> {
    /// Wraps the error in a message.
    fn context(self, message: impl Into<String>) -> Result<T>;

    /// Wraps the error in a message that is created only if it is needed.
    fn with_context<M: Into<String>>(self, message: impl FnOnce() -> M) -> Result<T>;
}

impl<T, E: Into<BoxError>> Context<T> for std::result::Result<T, E> {
    fn context(self, message: impl Into<String>) -> Result<T> {
        self.with_context(|| message)
    }

    fn with_context<M: Into<String>>(self, message: impl FnOnce() -> M) -> Result<T> {
        self.map_err(|error| Error::Failed {
            message: message().into(),
            source: Some(error.into()),
        })
    }
}

impl<T> Context<T> for Option<T> {
    fn context(self, message: impl Into<String>) -> Result<T> {
        self.with_context(|| message)
    }

    fn with_context<M: Into<String>>(self, message: impl FnOnce() -> M) -> Result<T> {
        self.ok_or_else(|| Error::failed(message()))
    }
}
