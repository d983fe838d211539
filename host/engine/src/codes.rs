//! The code of one plugin in the wasmtime engines in which it is called.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::runtime::Handle;
use tokio::sync::OnceCell;

use crate::engine::EngineInner;
use crate::load::Code;

/// The code of one plugin: in the first engine once it is needed, and in another when calls would otherwise share the first.
pub(crate) struct Codes {
    first: OnceCell<Code>,
    others: Box<[Arc<Other>]>,
    /// Whether the plugin was granted a connection.
    has_sockets: bool,
}

/// The code in another engine than the first.
#[derive(Default)]
struct Other {
    code: OnceLock<Code>,
    /// Whether somebody loads it, or has tried.
    is_asked_for: AtomicBool,
}

impl Codes {
    /// Nothing yet, or what was loaded already.
    pub(crate) fn new(first: Option<Code>, engines: usize, has_sockets: bool) -> Self {
        let others = (1..engines).map(|_| Arc::default()).collect();
        Self { first: OnceCell::new_with(first), others, has_sockets }
    }

    /// The code in the first engine.
    pub(crate) fn first(&self) -> &OnceCell<Code> {
        &self.first
    }

    /// In how many engines the code is.
    pub(crate) fn engines(&self) -> usize {
        let others = self.others.iter().filter(|other| other.code.get().is_some()).count();
        usize::from(self.first.initialized()) + others
    }

    /// The code that a call of this thread runs, when `first` is there: in the thread's engine if it is there too. If not, and
    /// other calls run in the first engine, it is loaded beside the calls.
    pub(crate) fn nearest<'a>(&'a self, first: &'a Code, engine: &Arc<EngineInner>) -> &'a Code {
        let runtimes = engine.runtimes(first.runtime.metering);
        let number = runtimes.of_this_thread();
        let Some(other) = number.checked_sub(1).and_then(|place| self.others.get(place)) else {
            return first;
        };
        if let Some(code) = other.code.get() {
            return code;
        }
        if first.runtime.ticker.is_ticking() && !other.is_asked_for.swap(true, Ordering::Relaxed) {
            load(Arc::clone(other), number, first.clone(), Arc::clone(engine), self.has_sockets);
        }
        first
    }
}

/// Loads code into another engine. If that cannot be done, calls go on in the first.
fn load(other: Arc<Other>, number: usize, first: Code, engine: Arc<EngineInner>, has_sockets: bool) {
    let Ok(tokio) = Handle::try_current() else { return };
    tokio.spawn_blocking(move || {
        let Some(runtime) = engine.runtimes(first.runtime.metering).numbered(number) else { return };
        let loaded = runtime.map_err(Into::into).and_then(|runtime| first.copied_into(runtime, has_sockets));
        match loaded {
            // Nobody else loads it.
            Ok(code) => drop(other.code.set(code)),
            Err(error) => tracing::warn!(%error, "calls that run side by side share one pool"),
        }
    });
}
