//! Who may run now: the places for concurrent calls and the memory that all calls of the process share, given out fairly
//! over plugins.
//!
//! # Policy
//!
//! * **A share leaves room.** A plugin may have [`SHARE`] times as much as is left when it has it, of places, of memory and
//!   of the queue. Alone it gets seven eighths; a second one gets seven eighths of the rest, and so on. So whoever comes
//!   finds something, whatever the others do. One place and one entry in the queue are always given if there are any.
//! * **The one who has least goes first.** A place that becomes free goes to the waiting plugin that holds the fewest,
//!   and among equals to the one that was served longest ago. Within one plugin, calls are served as they came.
//! * **Only a plugin's own queue refuses.** It is full at its length, or at its share of all entries.
//! * **Everything is given back by dropping**: a [`Place`] with the memory that was reserved through it, and a
//!   [`Ticket`] with its entry in the queue or, if it came meanwhile, its place.
//!
//! A plugin is known here by its name, from its first call that is under way to its last. Listing tools counts as a call of
//! the plugin that is being loaded.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use cofferdam_tool::PluginName;
use tokio::sync::oneshot;

use crate::ProcessBudget;

/// How many times what is left a plugin may have.
const SHARE: u64 = 7;

/// Most memory that comes with a place, in bytes: what a small tool needs.
const ADVANCE_BYTES_MAX: u64 = 2 << 20;
/// All advances together are at most the memory of the process divided by this.
const ADVANCES_PART: u64 = 4;

/// The places and the memory of one engine.
pub(crate) struct Places {
    calls_max: u64,
    /// What a call is given of the memory together with its place, so that a small one need not ask again: all cores ask at one place.
    advance_bytes: u64,
    budget: ProcessBudget,
    books: Mutex<Books>,
}

/// What is taken, by plugin. A plugin without calls has no entry.
#[derive(Default)]
struct Books {
    plugins: HashMap<PluginName, Account>,
    calls: u64,
    memory_bytes: u64,
    waiting: u64,
    /// Counts arrivals and grants: names waiting calls, and orders who was served when.
    clock: u64,
}

#[derive(Default)]
struct Account {
    calls: u64,
    memory_bytes: u64,
    waiting: VecDeque<Waiting>,
    /// When this plugin was last given a place.
    served: u64,
}

struct Waiting {
    number: u64,
    grant: oneshot::Sender<Place>,
}

/// The right to run one call.
pub(crate) struct Place {
    places: Arc<Places>,
    plugin: PluginName,
    /// What the call has reserved.
    memory_bytes: AtomicU64,
    /// What of that it has not used yet.
    unused_bytes: AtomicU64,
}

/// A place in the queue. Ready when the call may run.
pub(crate) struct Ticket {
    places: Arc<Places>,
    plugin: PluginName,
    number: u64,
    granted: oneshot::Receiver<Place>,
}

/// What a call gets that arrives.
pub(crate) enum Arrival {
    /// It may run.
    Place(Place),
    /// It has to wait.
    Ticket(Ticket),
}

/// So many calls of the plugin wait already that one more is refused.
#[derive(Debug, thiserror::Error)]
#[error("{waiting} calls of the plugin wait for a place already")]
pub(crate) struct QueueFull {
    waiting: usize,
}

/// Whether a plugin may have `has` of something of which `left` is left then.
fn leaves_room(has: u64, left: u64) -> bool {
    has <= left.saturating_mul(SHARE)
}

impl Places {
    pub(crate) fn new(calls_max: u32, budget: ProcessBudget) -> Arc<Self> {
        let calls_max = u64::from(calls_max);
        let share = budget.memory_bytes_max / calls_max.max(1) / ADVANCES_PART;
        let advance_bytes = share.min(ADVANCE_BYTES_MAX);
        Arc::new(Self { calls_max, advance_bytes, budget, books: Mutex::default() })
    }

    /// Gives a place to a call of `plugin`, or an entry in its queue.
    ///
    /// # Errors
    /// [`QueueFull`] when too many of its own calls wait.
    pub(crate) fn arrive(self: &Arc<Self>, plugin: &PluginName) -> Result<Arrival, QueueFull> {
        let mut books = self.lock();
        if books.take_place_at_once(plugin, self.calls_max) {
            let has_advance = books.reserve(plugin, self.advance_bytes, self.budget.memory_bytes_max);
            drop(books);
            return Ok(Arrival::Place(self.place(plugin, if has_advance { self.advance_bytes } else { 0 })));
        }
        let number = books.tick();
        let (grant, granted) = oneshot::channel();
        books.enqueue(plugin, Waiting { number, grant }, &self.budget)?;
        Ok(Arrival::Ticket(Ticket { places: Arc::clone(self), plugin: plugin.clone(), number, granted }))
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(self: &Arc<Self>, plugin: &PluginName, reserved_bytes: u64) -> Place {
        let [memory_bytes, unused_bytes] = [reserved_bytes; 2].map(AtomicU64::new);
        Place { places: Arc::clone(self), plugin: plugin.clone(), memory_bytes, unused_bytes }
    }

    /// Hands over every place that can be given now. A call that has stopped waiting gives its place back at once, which
    /// comes here again: so not under the lock.
    fn hand_out(self: &Arc<Self>, mut books: MutexGuard<'_, Books>) {
        let mut grants = Vec::new();
        while let Some((plugin, waiting)) = books.next(self.calls_max) {
            grants.push((waiting.grant, self.place(&plugin, 0)));
        }
        drop(books);
        for (grant, place) in grants {
            let _ = grant.send(place);
        }
    }
}

impl Books {
    fn tick(&mut self) -> u64 {
        self.clock = self.clock.wrapping_add(1);
        self.clock
    }

    /// Gives a place to a call that arrives, if it may run at once: if others of its plugin wait it does not overtake them.
    fn take_place_at_once(&mut self, plugin: &PluginName, calls_max: u64) -> bool {
        let free = calls_max.saturating_sub(self.calls);
        let served = self.clock.wrapping_add(1);
        match self.plugins.get_mut(plugin) {
            Some(account) => {
                if !(account.waiting.is_empty() && account.has_room(free)) {
                    return false;
                }
                account.take_place(served);
            }
            None if free == 0 => return false,
            None => {
                let account = Account { calls: 1, served, ..Account::default() };
                self.plugins.insert(plugin.clone(), account);
            }
        }
        (self.clock, self.calls) = (served, self.calls + 1);
        true
    }

    fn take_place(&mut self, plugin: &PluginName) {
        let served = self.tick();
        self.calls += 1;
        self.book(plugin, |account| account.take_place(served));
    }

    fn enqueue(
        &mut self,
        plugin: &PluginName,
        waiting: Waiting,
        budget: &ProcessBudget,
    ) -> Result<(), QueueFull> {
        let left = u64::from(budget.waiting_calls_max).saturating_sub(self.waiting);
        let queue = self.plugins.get(plugin).map_or(0, |account| account.waiting.len());
        let has = u64::try_from(queue).unwrap_or(u64::MAX).saturating_add(1);
        let fits_own = has <= u64::from(budget.waiting_calls_per_plugin_max);
        let fits_all = left > 0 && (has == 1 || leaves_room(has, left - 1));
        if !(fits_own && fits_all) {
            return Err(QueueFull { waiting: queue });
        }
        self.waiting += 1;
        self.book(plugin, |account| account.waiting.push_back(waiting));
        Ok(())
    }

    /// The next call that waits and may run now, with its place taken.
    fn next(&mut self, calls_max: u64) -> Option<(PluginName, Waiting)> {
        if self.waiting == 0 {
            return None;
        }
        let free = calls_max.saturating_sub(self.calls);
        let waits = |account: &Account| !account.waiting.is_empty() && account.has_room(free);
        let (plugin, _) = self
            .plugins
            .iter()
            .filter(|(_, account)| waits(account))
            .min_by_key(|(_, account)| (account.calls, account.served))?;
        let plugin = plugin.clone();
        let waiting = self.plugins.get_mut(&plugin)?.waiting.pop_front()?;
        self.waiting -= 1;
        self.take_place(&plugin);
        Some((plugin, waiting))
    }

    /// Gives a place back with the memory that was reserved through it.
    fn give_back(&mut self, plugin: &PluginName, memory_bytes: u64) {
        self.calls = self.calls.saturating_sub(1);
        self.memory_bytes = self.memory_bytes.saturating_sub(memory_bytes);
        let Some(account) = self.plugins.get_mut(plugin) else { return };
        account.calls = account.calls.saturating_sub(1);
        account.memory_bytes = account.memory_bytes.saturating_sub(memory_bytes);
        if account.is_idle() {
            self.plugins.remove(plugin);
        }
    }

    fn stop_waiting(&mut self, plugin: &PluginName, number: u64) {
        let Some(account) = self.plugins.get_mut(plugin) else { return };
        let before = account.waiting.len();
        account.waiting.retain(|waiting| waiting.number != number);
        if account.waiting.len() < before {
            self.waiting -= 1;
        }
        if account.is_idle() {
            self.plugins.remove(plugin);
        }
    }

    /// Whether `bytes` more are there for `plugin`; if so they are its own now.
    fn reserve(&mut self, plugin: &PluginName, bytes: u64, bytes_max: u64) -> bool {
        let Some(left) = bytes_max.checked_sub(self.memory_bytes.saturating_add(bytes)) else { return false };
        let Some(account) = self.plugins.get_mut(plugin) else { return false };
        let has = account.memory_bytes.saturating_add(bytes);
        if !leaves_room(has, left) {
            return false;
        }
        account.memory_bytes = has;
        self.memory_bytes += bytes;
        true
    }

    /// Changes the account of `plugin`, and opens it if there is none.
    fn book(&mut self, plugin: &PluginName, change: impl FnOnce(&mut Account)) {
        if let Some(account) = self.plugins.get_mut(plugin) {
            return change(account);
        }
        let mut account = Account::default();
        change(&mut account);
        self.plugins.insert(plugin.clone(), account);
    }
}

impl Account {
    /// Whether there is one more place for this plugin when `free` are free.
    fn has_room(&self, free: u64) -> bool {
        free > 0 && (self.calls == 0 || leaves_room(self.calls + 1, free - 1))
    }

    fn take_place(&mut self, served: u64) {
        self.calls += 1;
        self.served = served;
    }

    fn is_idle(&self) -> bool {
        self.calls == 0 && self.waiting.is_empty()
    }
}

impl Place {
    /// Reserves `bytes` of the memory of the process for this call, until the place is dropped. Whether they are there. For
    /// the one thread that runs the call.
    pub(crate) fn reserve(&self, bytes: u64) -> bool {
        let unused = self.unused_bytes.load(Ordering::Relaxed);
        let missing = bytes.saturating_sub(unused);
        if missing > 0 {
            let bytes_max = self.places.budget.memory_bytes_max;
            if !self.places.lock().reserve(&self.plugin, missing, bytes_max) {
                return false;
            }
            self.memory_bytes.fetch_add(missing, Ordering::Relaxed);
        }
        self.unused_bytes.store(unused.saturating_sub(bytes), Ordering::Relaxed);
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut books = self.places.lock();
        books.give_back(&self.plugin, self.memory_bytes.load(Ordering::Relaxed));
        self.places.hand_out(books);
    }
}

impl Future for Ticket {
    type Output = Place;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Place> {
        match Pin::new(&mut self.granted).poll(cx) {
            Poll::Ready(Ok(place)) => Poll::Ready(place),
            // The other end is in the queue for as long as this ticket is there, or has sent a place.
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.places.lock().stop_waiting(&self.plugin, self.number);
    }
}

#[cfg(test)]
mod tests;
