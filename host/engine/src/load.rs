//! Loading: the steps from the bytes of a component to its code and its declarations.
//!
//! A component is read ([`component`]), screened, compiled by a child process with limits
//! ([`compile`]) or taken from the cache, and asked for its tools ([`loading`]). The [`index`]
//! stores the results for all components of a configuration, so that the next start does not need
//! to read them.

pub(crate) mod compile;
mod component;
pub(crate) mod index;
mod loading;
mod observer;
pub(crate) mod parallel;

pub use self::component::Component;
pub(crate) use self::loading::{
    CACHE_FORMAT, ComponentDescription, ComponentLoad, Description, ReadComponent,
};
pub use self::observer::{LoadEvent, LoadObserver};
use crate::LoadError;

/// Runs a step that reads, writes or computes for long on a thread that serves no calls.
async fn blocking<T: Send + 'static>(
    step: impl FnOnce() -> Result<T, LoadError> + Send + 'static,
) -> Result<T, LoadError> {
    tokio::task::spawn_blocking(step).await.map_err(|_| LoadError::Interrupted)?
}
