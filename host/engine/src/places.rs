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
//! * **A core keeps the last place for the next call** (see [`kept`]), as long as nobody else needs it.
//!
//! A plugin is known here by its name, from its first call that is under way to its last. Listing tools counts as a call of
//! the plugin that is being loaded.

mod kept;

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use cofferdam_tool::PluginName;
use tokio::sync::oneshot;

use self::kept::{Held, KeptPlaces};
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
    kept: KeptPlaces,
}

/// A gate for each core.
pub(crate) struct Gates {
    first: Arc<Gate>,
    others: Box<[Arc<Gate>]>,
}

/// Where the calls of one core come in. They alone count its users, in memory of their own.
#[repr(align(128))]
pub(crate) struct Gate {
    places: Arc<Places>,
    core: usize,
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
    gate: Arc<Gate>,
    grant: oneshot::Sender<Place>,
}

/// The right to run one call.
pub(crate) struct Place {
    gate: Arc<Gate>,
    plugin: PluginName,
    /// What the call has reserved.
    memory_bytes: AtomicU64,
    /// What of that it has not used yet.
    unused_bytes: AtomicU64,
}

/// A place in the queue. Ready when the call may run.
pub(crate) struct Ticket {
    gate: Arc<Gate>,
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

impl Gates {
    /// Gates for so many cores, in front of `calls_max` places. One there is in any case.
    pub(crate) fn new(cores: usize, calls_max: u32, budget: ProcessBudget) -> Self {
        let places = Arc::new(Places::new(cores, calls_max, budget));
        let gate = |core| Arc::new(Gate { places: Arc::clone(&places), core });
        Self { first: gate(0), others: (1..cores).map(gate).collect() }
    }

    /// The gate of the core of that number.
    pub(crate) fn at(&self, core: usize) -> &Arc<Gate> {
        core.checked_sub(1).and_then(|other| self.others.get(other)).unwrap_or(&self.first)
    }
}

impl Gate {
    /// Gives a place to a call of `plugin`, or an entry in its queue.
    ///
    /// # Errors
    /// [`QueueFull`] when too many of its own calls wait.
    pub(crate) fn arrive(self: &Arc<Self>, plugin: &PluginName) -> Result<Arrival, QueueFull> {
        let places = &*self.places;
        let kept = places.kept.take(self.core);
        if let Some(held) = kept.as_ref().filter(|held| held.plugin == *plugin) {
            return Ok(Arrival::Place(self.place(plugin, held.memory_bytes)));
        }
        let mut books = places.lock();
        if let Some(held) = &kept {
            books.give_back(held);
        }
        let has_place = books.take_place_at_once(plugin, places.calls_max)
            || (places.collect_kept(&mut books) && books.take_place_at_once(plugin, places.calls_max));
        let arrival = if has_place {
            let has_advance = books.reserve(plugin, places.advance_bytes, places.budget.memory_bytes_max);
            Ok(Arrival::Place(self.place(plugin, if has_advance { places.advance_bytes } else { 0 })))
        } else {
            let number = books.tick();
            let (grant, granted) = oneshot::channel();
            let waiting = Waiting { number, gate: Arc::clone(self), grant };
            let enqueued = books.enqueue(plugin, waiting, &places.budget);
            enqueued.map(|()| {
                let (gate, plugin) = (Arc::clone(self), plugin.clone());
                Arrival::Ticket(Ticket { gate, plugin, number, granted })
            })
        };
        // What was given back is not for this plugin alone.
        places.hand_out(books);
        arrival
    }

    fn place(self: &Arc<Self>, plugin: &PluginName, reserved_bytes: u64) -> Place {
        let [memory_bytes, unused_bytes] = [reserved_bytes; 2].map(AtomicU64::new);
        Place { gate: Arc::clone(self), plugin: plugin.clone(), memory_bytes, unused_bytes }
    }
}

impl Places {
    fn new(cores: usize, calls_max: u32, budget: ProcessBudget) -> Self {
        let calls_max = u64::from(calls_max);
        let share = budget.memory_bytes_max / calls_max.max(1) / ADVANCES_PART;
        let advance_bytes = share.min(ADVANCE_BYTES_MAX);
        Self { calls_max, advance_bytes, budget, books: Mutex::default(), kept: KeptPlaces::new(cores) }
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives back what cores keep, because somebody needs it. Until [`Places::hand_out`] nothing is kept from here on. Whether there
    /// was anything.
    fn collect_kept(&self, books: &mut Books) -> bool {
        self.kept.close();
        let mut has_any = false;
        for held in self.kept.all() {
            books.give_back(&held);
            has_any = true;
        }
        has_any
    }

    /// Hands over every place that can be given now. A call that has stopped waiting gives its place back at once, which
    /// comes here again: so not under the lock.
    fn hand_out(&self, mut books: MutexGuard<'_, Books>) {
        let mut grants = Vec::new();
        while let Some((plugin, waiting)) = books.next(self.calls_max) {
            grants.push((waiting.grant, waiting.gate.place(&plugin, 0)));
        }
        self.kept.open_unless(books.waiting > 0);
        drop(books);
        for (grant, place) in grants {
            let _ = grant.send(place);
        }
    }

    /// Takes back what a call held.
    fn take_back(&self, held: &Held) {
        let mut books = self.lock();
        books.give_back(held);
        self.hand_out(books);
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
    fn give_back(&mut self, held: &Held) {
        let Held { plugin, memory_bytes } = held;
        self.calls = self.calls.saturating_sub(1);
        self.memory_bytes = self.memory_bytes.saturating_sub(*memory_bytes);
        let Some(account) = self.plugins.get_mut(plugin) else { return };
        account.calls = account.calls.saturating_sub(1);
        account.memory_bytes = account.memory_bytes.saturating_sub(*memory_bytes);
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
            let places = &*self.gate.places;
            let bytes_max = places.budget.memory_bytes_max;
            let mut books = places.lock();
            let mut is_reserved = books.reserve(&self.plugin, missing, bytes_max);
            if !is_reserved {
                places.collect_kept(&mut books);
                is_reserved = books.reserve(&self.plugin, missing, bytes_max);
                places.hand_out(books);
            }
            if !is_reserved {
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
        let Gate { places, core } = &*self.gate;
        let held = Held { plugin: self.plugin.clone(), memory_bytes: *self.memory_bytes.get_mut() };
        // More than came with the place is there for others.
        let left =
            if held.memory_bytes > places.advance_bytes { Some(held) } else { places.kept.keep(*core, held) };
        if let Some(held) = left {
            places.take_back(&held);
        }
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
        let places = &*self.gate.places;
        let mut books = places.lock();
        books.stop_waiting(&self.plugin, self.number);
        places.kept.open_unless(books.waiting > 0);
    }
}

#[cfg(test)]
mod tests;
