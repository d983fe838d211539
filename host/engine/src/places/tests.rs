use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;

use proptest::prelude::*;

use super::*;

const MIB: u64 = 1 << 20;

fn budget() -> ProcessBudget {
    ProcessBudget { memory_bytes_max: 800 * MIB, waiting_calls_per_plugin_max: 20, waiting_calls_max: 32 }
}

fn name(plugin: usize) -> PluginName {
    PluginName::new(format!("plugin-{plugin}")).unwrap()
}

/// A call of a plugin, as its caller has it.
enum Call {
    Runs(Place),
    Waits(Ticket),
}

impl Call {
    fn arrive(gates: &Gates, plugin: usize) -> Result<Self, QueueFull> {
        Self::arrive_at(gates, 0, plugin)
    }

    fn arrive_at(gates: &Gates, core: usize, plugin: usize) -> Result<Self, QueueFull> {
        Ok(match gates.at(core).arrive(&name(plugin))? {
            Arrival::Place(place) => Self::Runs(place),
            Arrival::Ticket(ticket) => Self::Waits(ticket),
        })
    }

    /// Whether the call may run; one that was given a place has it from here on.
    fn runs(&mut self) -> bool {
        if let Self::Waits(ticket) = self
            && let Ok(place) = ticket.granted.try_recv()
        {
            *self = Self::Runs(place);
        }
        matches!(self, Self::Runs(_))
    }
}

fn arrive(gates: &Gates, plugin: usize, calls: usize) -> Vec<Call> {
    (0..calls).map(|_| Call::arrive(gates, plugin).expect("the queue has room")).collect()
}

fn running(calls: &mut [Call]) -> usize {
    calls.iter_mut().filter_map(|call| call.runs().then_some(())).count()
}

/// Whether nothing is left but what cores keep.
fn is_empty(gates: &Gates) -> bool {
    let places = &gates.first.places;
    let mut books = places.lock();
    places.collect_kept(&mut books);
    places.kept.open_unless(false);
    books.plugins.is_empty() && (books.calls, books.memory_bytes, books.waiting) == (0, 0, 0)
}

#[test]
fn one_plugin_gets_all_but_a_reserve_and_a_second_one_finds_room() {
    let gates = Gates::new(1, 64, budget());
    let mut first = arrive(&gates, 0, 70);
    assert_eq!(running(&mut first), 56);
    let mut second = arrive(&gates, 1, 8);
    assert_eq!(running(&mut second), 7);
    let mut third = arrive(&gates, 2, 2);
    assert_eq!(running(&mut third), 1);
}

#[test]
fn a_pool_with_one_place_is_usable() {
    let gates = Gates::new(1, 1, budget());
    let mut calls = arrive(&gates, 0, 2);
    assert_eq!(running(&mut calls), 1);
    calls.remove(0);
    assert_eq!(running(&mut calls), 1);
}

#[test]
fn a_place_goes_to_the_plugin_that_holds_fewest() {
    let gates = Gates::new(1, 8, budget());
    let mut many = arrive(&gates, 0, 7);
    let mut few = arrive(&gates, 1, 1);
    assert_eq!((running(&mut many), running(&mut few)), (7, 1));
    many.extend(arrive(&gates, 0, 10));
    let mut late = arrive(&gates, 2, 1);
    assert_eq!(running(&mut late), 0);
    many.remove(0);
    assert_eq!((running(&mut many), running(&mut late)), (6, 1));
}

#[test]
fn within_a_plugin_the_first_to_come_is_the_first_to_run() {
    let gates = Gates::new(1, 1, budget());
    let mut calls = arrive(&gates, 0, 4);
    while !calls.is_empty() {
        assert_eq!(running(&mut calls), 1);
        assert!(calls[0].runs());
        calls.remove(0);
    }
    assert!(is_empty(&gates));
}

#[test]
fn a_flood_fills_its_own_queue_only() {
    let gates = Gates::new(1, 1, budget());
    let flood: Vec<_> = std::iter::from_fn(|| Call::arrive(&gates, 0).ok()).collect();
    assert_eq!(flood.len(), 1 + 20);
    let _other = arrive(&gates, 1, 1);
    // Not at its own length yet, but at its share of what 11 other entries leave.
    let second: Vec<_> = std::iter::from_fn(|| Call::arrive(&gates, 2).ok()).collect();
    assert_eq!(second.len(), 9);
    assert!(Call::arrive(&gates, 3).is_ok());
    assert_eq!(gates.first.places.lock().waiting, 20 + 1 + 9);
    drop((flood, second));
}

#[test]
fn a_call_that_stops_waiting_leaves_no_trace() {
    let gates = Gates::new(1, 1, budget());
    let first = Call::arrive(&gates, 0).unwrap();
    let second = Call::arrive(&gates, 0).unwrap();
    let third = Call::arrive(&gates, 1).unwrap();
    drop(second);
    // It has a place by then that it does not know of.
    drop(first);
    drop(third);
    assert!(is_empty(&gates));
}

#[test]
fn memory_is_shared_fairly_and_comes_back_with_the_place() {
    let mut places = Places::new(1, 8, budget());
    places.advance_bytes = 0;
    let first = Arc::new(Gate { places: Arc::new(places), core: 0 });
    let gates = Gates { first, others: Box::default() };
    let place = |plugin| match Call::arrive(&gates, plugin) {
        Ok(Call::Runs(place)) => place,
        _ => panic!("there is room"),
    };
    let (one, two, other) = (place(0), place(0), place(1));
    assert!(one.reserve(600 * MIB));
    assert!(!two.reserve(101 * MIB), "700 MiB are seven times the 100 MiB that are left");
    assert!(two.reserve(100 * MIB));
    assert!(other.reserve(87 * MIB));
    assert!(!other.reserve(MIB));
    assert!(!other.reserve(u64::MAX));
    drop(one);
    assert!(other.reserve(MIB));
    drop((two, other));
    assert!(is_empty(&gates));
}

#[test]
fn a_place_comes_with_some_memory_unless_there_is_none_left() {
    let gates = Gates::new(1, 100, budget());
    let reserved = || gates.first.places.lock().memory_bytes;
    let place = |plugin| match Call::arrive(&gates, plugin) {
        Ok(Call::Runs(place)) => place,
        _ => panic!("there is room"),
    };
    let one = place(0);
    assert_eq!(reserved(), 2 * MIB, "a hundredth of a quarter of 800 MiB");
    assert!(one.reserve(MIB) && one.reserve(MIB));
    assert_eq!(reserved(), 2 * MIB);
    assert!(one.reserve(MIB));
    assert_eq!(reserved(), 3 * MIB);
    assert!(one.reserve(697 * MIB));
    let other = place(1);
    assert!(other.reserve(87 * MIB));
    assert!(!place(2).reserve(13 * MIB), "what is left is 13 MiB, and seven eighths of it are less");
    assert!(place(2).reserve(11 * MIB));
    drop((one, other));
    assert!(is_empty(&gates));
}

#[test]
fn a_core_keeps_a_place_for_the_next_call_of_the_same_plugin() {
    let gates = Gates::new(2, 8, budget());
    let places = &gates.first.places;
    let books = || {
        let books = places.lock();
        (books.calls, books.memory_bytes, books.clock)
    };
    drop(Call::arrive_at(&gates, 1, 0).unwrap());
    let kept = books();
    assert_eq!((kept.0, kept.1), (1, 2 * MIB));
    drop(Call::arrive_at(&gates, 1, 0).unwrap());
    assert_eq!(books(), kept, "nobody has looked into the books");
    drop(Call::arrive_at(&gates, 0, 0).unwrap());
    assert_eq!((books().0, places.kept.count()), (2, 2), "the other core has its own");
    drop(Call::arrive_at(&gates, 1, 3).unwrap());
    assert_eq!((books().0, places.kept.count()), (2, 2), "another plugin takes its turn");
    assert!(is_empty(&gates));
}

#[test]
fn what_is_kept_is_there_for_whoever_needs_it() {
    let gates = Gates::new(3, 2, budget());
    (0..3).for_each(|core| drop(Call::arrive_at(&gates, core, core).unwrap()));
    let mut calls: Vec<_> = (0..3).map(|core| Call::arrive_at(&gates, core, 7 + core).unwrap()).collect();
    assert_eq!(running(&mut calls), 2);
    calls.remove(0);
    assert_eq!(running(&mut calls), 2, "while somebody waits nothing is kept");
    drop(calls);
    assert!(is_empty(&gates));

    // All the memory that one plugin may have while the other core keeps some for another.
    let gates = Gates::new(2, 2, budget());
    drop(Call::arrive_at(&gates, 1, 1).unwrap());
    let Ok(Call::Runs(place)) = Call::arrive_at(&gates, 0, 0) else { panic!("there is room") };
    assert!(place.reserve(700 * MIB));
    assert!(!place.reserve(MIB));
}

/// A place that is kept at the moment in which another core begins to wait for it: nobody else comes who would find it.
#[test]
fn a_place_is_not_kept_from_one_who_begins_to_wait() {
    const ROUNDS: usize = 2000;
    let gates = &Gates::new(2, 1, budget());
    let (leaving, arriving) = (&AtomicUsize::new(0), &AtomicUsize::new(0));
    // Threads that sleep would not meet in so short a moment; one that spins for long keeps the other from its turn.
    let reaches = |counter: &AtomicUsize, round| {
        let mut spins = 0;
        while counter.load(Ordering::SeqCst) < round {
            spins += 1;
            if spins < 10_000 { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for round in 1..=ROUNDS {
                let place = Call::arrive_at(gates, 0, 0).unwrap();
                assert!(matches!(place, Call::Runs(_)), "the other one has left");
                leaving.store(round, Ordering::SeqCst);
                (0..round % 200).for_each(|_| std::hint::spin_loop());
                drop(place);
                reaches(arriving, round);
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        for round in 1..=ROUNDS {
            reaches(leaving, round);
            if let Call::Waits(ticket) = Call::arrive_at(gates, 1, 1).unwrap() {
                let turn = async { tokio::time::timeout(std::time::Duration::from_secs(30), ticket).await };
                let turn = runtime.block_on(turn);
                // Even then, the other thread must come to its end.
                if turn.is_err() {
                    arriving.store(ROUNDS, Ordering::SeqCst);
                }
                assert!(turn.is_ok(), "a call waits for a place that nobody has, in round {round}");
            }
            arriving.store(round, Ordering::SeqCst);
        }
    });
    assert!(is_empty(gates));
}

#[derive(Debug, Clone)]
enum Step {
    Arrive {
        plugin: usize,
        core: usize,
    },
    /// Ends or cancels the call at this place of the list.
    Leave {
        call: prop::sample::Index,
    },
    /// Reserves memory in it, if it runs.
    Grow {
        call: prop::sample::Index,
        mebibytes: u64,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..4_usize, 0..3_usize).prop_map(|(plugin, core)| Step::Arrive { plugin, core }),
        3 => any::<prop::sample::Index>().prop_map(|call| Step::Leave { call }),
        1 => (any::<prop::sample::Index>(), 1..300_u64).prop_map(|(call, mebibytes)| Step::Grow { call, mebibytes }),
    ];
    prop::collection::vec(step, 1..120)
}

/// What every moment has to look like.
fn check(places: &Places, calls: &mut [(usize, Call)]) {
    let mut runs = BTreeMap::<usize, u64>::new();
    let mut first_waiting = BTreeMap::<usize, usize>::new();
    for (at, (plugin, call)) in calls.iter_mut().enumerate() {
        if call.runs() {
            *runs.entry(*plugin).or_default() += 1;
            assert!(!first_waiting.contains_key(plugin), "call {at} has overtaken another of its plugin");
        } else {
            first_waiting.entry(*plugin).or_insert(at);
        }
    }
    let running: u64 = runs.values().sum();
    let waiting = calls.len() - usize::try_from(running).unwrap();
    let kept = places.kept.count();
    assert!(waiting == 0 || kept == 0, "a place is kept that somebody waits for");
    let books = places.lock();
    let taken = running + u64::try_from(kept).unwrap();
    assert_eq!((books.calls, books.waiting), (taken, u64::try_from(waiting).unwrap()), "no place is lost");
    assert!(books.calls <= places.calls_max);
    assert!(books.memory_bytes <= places.budget.memory_bytes_max);
    for plugin in first_waiting.keys() {
        let account = &books.plugins[&name(*plugin)];
        assert!(
            !account.has_room(places.calls_max.saturating_sub(books.calls)),
            "plugin {plugin} waits for a place that is free"
        );
    }
}

proptest! {
    #[test]
    fn any_plan_keeps_the_promises(cores in 1..4_usize, calls_max in 1..12_u32, plan in steps()) {
        let gates = Gates::new(cores, calls_max, budget());
        let places = &*gates.first.places;
        let mut calls = Vec::<(usize, Call)>::new();
        for step in plan {
            let waited: Vec<_> = calls.iter_mut().map(|(_, call)| !call.runs()).collect();
            let calls_of = |plugin| places.lock().plugins.get(&name(plugin)).map_or(0, |account| account.calls);
            let mut held: Vec<_> = (0..4).map(calls_of).collect();
            match step {
                Step::Arrive { plugin, core } => match Call::arrive_at(&gates, core, plugin) {
                    Ok(call) => calls.push((plugin, call)),
                    Err(full) => {
                        let own = |(of, call): &&(usize, Call)| *of == plugin && matches!(call, Call::Waits(_));
                        prop_assert_eq!(full.waiting, calls.iter().filter(own).count());
                        prop_assert!(full.waiting > 0, "a plugin without waiting calls was refused");
                    }
                },
                Step::Leave { call } if !calls.is_empty() => {
                    let gone = call.index(calls.len());
                    let (plugin, _) = calls.remove(gone);
                    held[plugin] -= u64::from(!waited[gone]);
                    // Who was given a place by this held no more than anyone who goes on waiting.
                    let (mut given, mut still) = (Vec::new(), Vec::new());
                    let before = waited.iter().enumerate().filter(|(at, _)| *at != gone).map(|(_, waited)| waited);
                    for ((plugin, call), waited) in calls.iter_mut().zip(before) {
                        match (waited, call.runs()) {
                            (true, true) => given.push(held[*plugin]),
                            (true, false) => still.push(held[*plugin]),
                            (false, _) => {}
                        }
                    }
                    if let (Some(given), Some(still)) = (given.iter().max(), still.iter().min()) {
                        prop_assert!(given <= still, "{} got a place, {} waits", given, still);
                    }
                }
                Step::Grow { call, mebibytes } if !calls.is_empty() => {
                    let at = call.index(calls.len());
                    if let (_, Call::Runs(place)) = &calls[at] {
                        place.reserve(mebibytes * MIB);
                    }
                }
                Step::Leave { .. } | Step::Grow { .. } => {}
            }
            check(places, &mut calls);
        }
        drop(calls);
        prop_assert!(is_empty(&gates));
    }
}
