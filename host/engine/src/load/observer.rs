//! Events of a load, for an operator who waits for it.

use crate::Confinement;

/// Event of a load that takes time, or that the operator should know of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadEvent {
    /// The component is not in the cache and is being compiled.
    Compiling {
        /// Size of the component in bytes.
        component_bytes: u64,
    },
    /// Compilation has succeeded.
    Compiled {
        /// Size of the machine code in bytes.
        artifact_bytes: u64,
    },
    /// The process that compiled was confined less than fully, and no minimum is configured
    /// ([`EngineConfig::confinement_min`](crate::EngineConfig::confinement_min)).
    Unconfined {
        /// Level that the system has reached.
        level: Confinement,
    },
    /// A cache entry was not authentic and has been removed.
    CacheRejected,
    /// The compiled code cannot be stored for the next start.
    CacheUnwritable,
}

/// Receiver of the events of a load.
pub trait LoadObserver: Send + Sync {
    /// Receives one event. Must not block.
    fn on_event(&self, event: LoadEvent);
}

impl LoadObserver for () {
    fn on_event(&self, _event: LoadEvent) {}
}
