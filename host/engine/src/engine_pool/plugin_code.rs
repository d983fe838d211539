//! Code of one plugin in the engines of the pool.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::runtime::Handle;
use tokio::sync::OnceCell;

use super::Code;
use super::EnginePool;

/// Code of one plugin: in the first engine once it is needed, and in another one when calls would
/// otherwise share the first.
pub(crate) struct PluginCode {
    first: OnceCell<Code>,
    others: Box<[Arc<CodeCopy>]>,
    /// True if the plugin was granted a socket connection.
    has_sockets: bool,
}

/// Copy of the code in an engine other than the first.
#[derive(Default)]
struct CodeCopy {
    code: OnceLock<Code>,
    /// True once loading has started, even if it fails.
    is_requested: AtomicBool,
}

impl PluginCode {
    /// Creates the code of a plugin for a pool of `engines`, empty or with already loaded code.
    pub(crate) fn new(first: Option<Code>, engines: usize, has_sockets: bool) -> Self {
        let others = (1..engines).map(|_| Arc::default()).collect();
        Self { first: OnceCell::new_with(first), others, has_sockets }
    }

    /// Returns the code in the first engine.
    pub(crate) fn first(&self) -> &OnceCell<Code> {
        &self.first
    }

    /// Returns the number of engines that hold the code.
    pub(crate) fn loaded_copies(&self) -> usize {
        let others = self.others.iter().filter(|other| other.code.get().is_some()).count();
        usize::from(self.first.initialized()) + others
    }

    /// Returns the code that a call of this thread runs: the copy in the thread's engine if it is
    /// loaded there, and `first` otherwise. If other calls are running in the first engine in that
    /// case, loads a copy into the thread's engine in the background.
    pub(crate) fn for_this_thread<'a>(
        &'a self,
        first: &'a Code,
        pool: &Arc<EnginePool>,
    ) -> &'a Code {
        let index = pool.index_of_this_thread();
        let Some(copy) = index.checked_sub(1).and_then(|other| self.others.get(other)) else {
            return first;
        };
        if let Some(code) = copy.code.get() {
            return code;
        }
        if first.wasm_engine.ticker.is_ticking() && !copy.is_requested.swap(true, Ordering::Relaxed)
        {
            load(Arc::clone(copy), index, first.clone(), Arc::clone(pool), self.has_sockets);
        }
        first
    }
}

/// Loads a copy of `first` into the engine at `index`. If that fails, calls continue in the first
/// engine.
fn load(copy: Arc<CodeCopy>, index: usize, first: Code, pool: Arc<EnginePool>, has_sockets: bool) {
    let Ok(tokio) = Handle::try_current() else { return };
    tokio.spawn_blocking(move || {
        let Some(engine) = pool.get(index) else { return };
        let loaded =
            engine.map_err(Into::into).and_then(|engine| first.copied_into(engine, has_sockets));
        match loaded {
            // `is_requested` admits one loader.
            Ok(code) => drop(copy.code.set(code)),
            Err(error) => {
                tracing::warn!(%error, "calls of several threads share one instance pool")
            }
        }
    });
}
