//! Admission of calls: permits for concurrent calls, and the memory that all calls of the process
//! share.
//!
//! # Policy
//!
//! * **A share leaves room for others.** A plugin may hold at most [`SHARE`] times as much as
//!   remains free, of permits, of memory and of queue entries. A single plugin gets seven eighths,
//!   a second one seven eighths of the rest, and so on, so that every newcomer finds something.
//!   While anything is free, each plugin can have one permit and one queue entry.
//! * **The plugin that holds the fewest permits is served first**; among equals, the one that was
//!   served longest ago. Calls of one plugin are served in order of arrival.
//! * **A call is rejected only because of its own plugin's queue**: if that has reached its maximum
//!   length, or its share of all entries.
//! * **Dropping releases**: a [`CallPermit`] and the memory that was reserved through it, and the
//!   queue entry of a [`Waiter`] or the permit that it was just given.
//!
//! Listing the tools of a plugin that is being loaded counts as a call.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use cofferdam_tool::PluginName;
use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::ProcessBudget;
use crate::usage::EngineUsage;

/// Maximum ratio of what a plugin holds to what remains free.
const SHARE: u64 = 7;

/// Admits the calls of one engine. Clones share state.
#[derive(Clone)]
pub(crate) struct Admission(Arc<AdmissionShared>);

struct AdmissionShared {
    calls_max: u64,
    budget: ProcessBudget,
    state: Mutex<AdmissionState>,
}

#[derive(Default)]
struct AdmissionState {
    /// Usage by plugin, for plugins with calls.
    plugins: HashMap<PluginName, PluginUsage>,
    /// Totals of `plugins`.
    calls: u64,
    memory_bytes: u64,
    waiting: u64,
    /// Counts arrivals and grants of permits: numbers waiters, and orders plugins by the time of
    /// their last permit.
    clock: u64,
}

#[derive(Default)]
struct PluginUsage {
    calls: u64,
    memory_bytes: u64,
    waiters: VecDeque<QueuedCall>,
    /// Value of the clock when the plugin last received a permit.
    served_at: u64,
}

struct QueuedCall {
    number: u64,
    permit: oneshot::Sender<CallPermit>,
}

/// Permission to run one call, and the memory that is reserved for it.
pub(crate) struct CallPermit {
    shared: Arc<AdmissionShared>,
    plugin: PluginName,
    memory_bytes: AtomicU64,
}

/// Entry in a plugin's queue. Resolves to a permit.
pub(crate) struct Waiter {
    shared: Arc<AdmissionShared>,
    plugin: PluginName,
    number: u64,
    permit: oneshot::Receiver<CallPermit>,
}

/// Outcome of [`Admission::admit`]: a permit now, or an entry in the queue.
pub(crate) enum AdmissionOutcome {
    Now(CallPermit),
    Queued(Waiter),
}

/// Error returned when the plugin's queue is full.
#[derive(Debug, thiserror::Error)]
#[error("{waiting} calls of the plugin are waiting already, which is the maximum")]
pub(crate) struct QueueFull {
    waiting: usize,
}

impl Admission {
    /// Creates the admission of an engine that runs at most `calls_max` calls at a time.
    pub(crate) fn new(calls_max: u32, budget: ProcessBudget) -> Self {
        let shared =
            AdmissionShared { calls_max: u64::from(calls_max), budget, state: Mutex::default() };
        Self(Arc::new(shared))
    }

    /// Returns the calls and the memory that are in use now.
    pub(crate) fn usage(&self) -> EngineUsage {
        let AdmissionShared { calls_max, budget, .. } = &*self.0;
        let state = self.0.state.lock();
        EngineUsage {
            calls: state.calls,
            calls_max: *calls_max,
            waiting: state.waiting,
            waiting_max: u64::from(budget.waiting_calls_max),
            memory_bytes: state.memory_bytes,
            memory_bytes_max: budget.memory_bytes_max,
        }
    }

    /// Admits a call of `plugin`, or queues it.
    ///
    /// # Errors
    /// [`QueueFull`] if too many calls of the plugin are waiting.
    pub(crate) fn admit(&self, plugin: &PluginName) -> Result<AdmissionOutcome, QueueFull> {
        let shared = &self.0;
        let mut state = shared.state.lock();
        if state.admit_now(plugin, shared.calls_max) {
            return Ok(AdmissionOutcome::Now(shared.permit(plugin.clone())));
        }
        let number = state.tick();
        let (sender, permit) = oneshot::channel();
        state.enqueue(plugin, QueuedCall { number, permit: sender }, &shared.budget)?;
        drop(state);
        Ok(AdmissionOutcome::Queued(Waiter {
            shared: Arc::clone(shared),
            plugin: plugin.clone(),
            number,
            permit,
        }))
    }
}

impl AdmissionShared {
    fn permit(self: &Arc<Self>, plugin: PluginName) -> CallPermit {
        CallPermit { shared: Arc::clone(self), plugin, memory_bytes: AtomicU64::new(0) }
    }

    /// Takes back one permit of `plugin` and grants all free ones. A canceled waiter drops its
    /// permit at once, which calls this function again, so permits are sent after the lock is
    /// released.
    fn release(self: &Arc<Self>, plugin: &PluginName, memory_bytes: u64) {
        let mut state = self.state.lock();
        state.release(plugin, memory_bytes);
        let granted: Vec<_> = std::iter::from_fn(|| state.next(self.calls_max)).collect();
        drop(state);
        for (plugin, call) in granted {
            let _ = call.permit.send(self.permit(plugin));
        }
    }
}

impl AdmissionState {
    fn tick(&mut self) -> u64 {
        self.clock = self.clock.wrapping_add(1);
        self.clock
    }

    /// Takes a permit for a new call, which does not overtake waiting calls of its plugin. Returns
    /// false if it has to wait.
    fn admit_now(&mut self, plugin: &PluginName, calls_max: u64) -> bool {
        let free = calls_max.saturating_sub(self.calls);
        let served_at = self.tick();
        match self.plugins.get_mut(plugin) {
            Some(usage) if usage.waiters.is_empty() && usage.has_room(free) => {
                usage.take_permit(served_at)
            }
            None if free > 0 => {
                let usage = PluginUsage { calls: 1, served_at, ..PluginUsage::default() };
                self.plugins.insert(plugin.clone(), usage);
            }
            _ => return false,
        }
        self.calls += 1;
        true
    }

    fn enqueue(
        &mut self,
        plugin: &PluginName,
        call: QueuedCall,
        budget: &ProcessBudget,
    ) -> Result<(), QueueFull> {
        let free = u64::from(budget.waiting_calls_max).saturating_sub(self.waiting);
        let waiting = self.plugins.get(plugin).map_or(0, |usage| usage.waiters.len());
        let used = u64::try_from(waiting).unwrap_or(u64::MAX).saturating_add(1);
        let fits_plugin = used <= u64::from(budget.waiting_calls_per_plugin_max);
        let fits_all = free > 0 && (used == 1 || leaves_room(used, free - 1));
        if !(fits_plugin && fits_all) {
            return Err(QueueFull { waiting });
        }
        self.waiting += 1;
        self.plugins.entry(plugin.clone()).or_default().waiters.push_back(call);
        Ok(())
    }

    /// Takes a permit for the next waiting call that may run.
    fn next(&mut self, calls_max: u64) -> Option<(PluginName, QueuedCall)> {
        if self.waiting == 0 {
            return None;
        }
        let free = calls_max.saturating_sub(self.calls);
        let served_at = self.tick();
        let (plugin, usage) = self
            .plugins
            .iter_mut()
            .filter(|(_, usage)| !usage.waiters.is_empty() && usage.has_room(free))
            .min_by_key(|(_, usage)| (usage.calls, usage.served_at))?;
        let call = usage.waiters.pop_front()?;
        usage.take_permit(served_at);
        self.waiting -= 1;
        self.calls += 1;
        Some((plugin.clone(), call))
    }

    /// Takes back one permit and the memory that was reserved through it.
    fn release(&mut self, plugin: &PluginName, memory_bytes: u64) {
        self.calls = self.calls.saturating_sub(1);
        self.memory_bytes = self.memory_bytes.saturating_sub(memory_bytes);
        self.change(plugin, |usage| {
            usage.calls = usage.calls.saturating_sub(1);
            usage.memory_bytes = usage.memory_bytes.saturating_sub(memory_bytes);
        });
    }

    fn stop_waiting(&mut self, plugin: &PluginName, number: u64) {
        let mut removed = 0;
        self.change(plugin, |usage| {
            let before = usage.waiters.len();
            usage.waiters.retain(|call| call.number != number);
            removed = before - usage.waiters.len();
        });
        self.waiting = self.waiting.saturating_sub(u64::try_from(removed).unwrap_or(u64::MAX));
    }

    /// Reserves memory for `plugin`. Returns false if that exceeds its share.
    fn reserve(&mut self, plugin: &PluginName, bytes: u64, bytes_max: u64) -> bool {
        let Some(free) = bytes_max.checked_sub(self.memory_bytes.saturating_add(bytes)) else {
            return false;
        };
        let Some(usage) = self.plugins.get_mut(plugin) else { return false };
        let used = usage.memory_bytes.saturating_add(bytes);
        if !leaves_room(used, free) {
            return false;
        }
        usage.memory_bytes = used;
        self.memory_bytes += bytes;
        true
    }

    /// Changes the usage of a plugin, and forgets it if nothing is left.
    fn change(&mut self, plugin: &PluginName, change: impl FnOnce(&mut PluginUsage)) {
        let Some(usage) = self.plugins.get_mut(plugin) else { return };
        change(usage);
        if usage.calls == 0 && usage.waiters.is_empty() {
            self.plugins.remove(plugin);
        }
    }
}

impl PluginUsage {
    /// Returns true if the plugin may have one more permit when `free` are free.
    fn has_room(&self, free: u64) -> bool {
        free > 0 && (self.calls == 0 || leaves_room(self.calls + 1, free - 1))
    }

    fn take_permit(&mut self, served_at: u64) {
        self.calls += 1;
        self.served_at = served_at;
    }
}

/// Returns true if a plugin may hold `used` units when that leaves `free` for all others.
fn leaves_room(used: u64, free: u64) -> bool {
    used <= free.saturating_mul(SHARE)
}

impl CallPermit {
    /// Reserves `bytes` of the memory of the process until the permit is dropped. Returns false if
    /// they are not available.
    pub(crate) fn reserve(&self, bytes: u64) -> bool {
        let bytes_max = self.shared.budget.memory_bytes_max;
        let is_reserved = self.shared.state.lock().reserve(&self.plugin, bytes, bytes_max);
        if is_reserved {
            self.memory_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        is_reserved
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        self.shared.release(&self.plugin, *self.memory_bytes.get_mut());
    }
}

impl Future for Waiter {
    type Output = CallPermit;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CallPermit> {
        match Pin::new(&mut self.permit).poll(cx) {
            Poll::Ready(Ok(permit)) => Poll::Ready(permit),
            // The sender stays in the queue as long as the waiter exists, unless it has sent a
            // permit.
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.shared.state.lock().stop_waiting(&self.plugin, self.number);
    }
}

#[cfg(test)]
mod tests;
