//! Events of a load, for the operator who waits for it.

/// An event of a load that takes time, or that the operator should know of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadEvent {
    /// The component is not in the cache and is being compiled.
    Compiling {
        /// Size of the component in bytes.
        component_bytes: u64,
    },
    /// Compiling has ended well.
    Compiled {
        /// Size of the machine code in bytes.
        artifact_bytes: u64,
    },
    /// An entry of the cache was not what this installation wrote and has been removed.
    CacheRejected,
    /// The compiled code cannot be kept for the next time.
    CacheUnwritable,
}

/// Receiver of the events of a load.
pub trait LoadObserver: Send + Sync {
    /// Takes one event. Must not block.
    fn on_event(&self, event: LoadEvent);
}

impl LoadObserver for () {
    fn on_event(&self, _event: LoadEvent) {}
}
