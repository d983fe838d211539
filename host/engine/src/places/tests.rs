use std::collections::BTreeMap;

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
    fn arrive(places: &Arc<Places>, plugin: usize) -> Result<Self, QueueFull> {
        Ok(match places.arrive(&name(plugin))? {
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

fn arrive(places: &Arc<Places>, plugin: usize, calls: usize) -> Vec<Call> {
    (0..calls).map(|_| Call::arrive(places, plugin).expect("the queue has room")).collect()
}

fn running(calls: &mut [Call]) -> usize {
    calls.iter_mut().filter_map(|call| call.runs().then_some(())).count()
}

fn is_empty(places: &Places) -> bool {
    let books = places.lock();
    books.plugins.is_empty() && (books.calls, books.memory_bytes, books.waiting) == (0, 0, 0)
}

#[test]
fn one_plugin_gets_all_but_a_reserve_and_a_second_one_finds_room() {
    let places = Places::new(64, budget());
    let mut first = arrive(&places, 0, 70);
    assert_eq!(running(&mut first), 56);
    let mut second = arrive(&places, 1, 8);
    assert_eq!(running(&mut second), 7);
    let mut third = arrive(&places, 2, 2);
    assert_eq!(running(&mut third), 1);
}

#[test]
fn a_pool_with_one_place_is_usable() {
    let places = Places::new(1, budget());
    let mut calls = arrive(&places, 0, 2);
    assert_eq!(running(&mut calls), 1);
    calls.remove(0);
    assert_eq!(running(&mut calls), 1);
}

#[test]
fn a_place_goes_to_the_plugin_that_holds_fewest() {
    let places = Places::new(8, budget());
    let mut many = arrive(&places, 0, 7);
    let mut few = arrive(&places, 1, 1);
    assert_eq!((running(&mut many), running(&mut few)), (7, 1));
    many.extend(arrive(&places, 0, 10));
    let mut late = arrive(&places, 2, 1);
    assert_eq!(running(&mut late), 0);
    many.remove(0);
    assert_eq!((running(&mut many), running(&mut late)), (6, 1));
}

#[test]
fn within_a_plugin_the_first_to_come_is_the_first_to_run() {
    let places = Places::new(1, budget());
    let mut calls = arrive(&places, 0, 4);
    while !calls.is_empty() {
        assert_eq!(running(&mut calls), 1);
        assert!(calls[0].runs());
        calls.remove(0);
    }
    assert!(is_empty(&places));
}

#[test]
fn a_flood_fills_its_own_queue_only() {
    let places = Places::new(1, budget());
    let flood: Vec<_> = std::iter::from_fn(|| Call::arrive(&places, 0).ok()).collect();
    assert_eq!(flood.len(), 1 + 20);
    let _other = arrive(&places, 1, 1);
    // Not at its own length yet, but at its share of what 11 other entries leave.
    let second: Vec<_> = std::iter::from_fn(|| Call::arrive(&places, 2).ok()).collect();
    assert_eq!(second.len(), 9);
    assert!(Call::arrive(&places, 3).is_ok());
    assert_eq!(places.lock().waiting, 20 + 1 + 9);
    drop((flood, second));
}

#[test]
fn a_call_that_stops_waiting_leaves_no_trace() {
    let places = Places::new(1, budget());
    let first = Call::arrive(&places, 0).unwrap();
    let second = Call::arrive(&places, 0).unwrap();
    let third = Call::arrive(&places, 1).unwrap();
    drop(second);
    // It has a place by then that it does not know of.
    drop(first);
    drop(third);
    assert!(is_empty(&places));
}

#[test]
fn memory_is_shared_fairly_and_comes_back_with_the_place() {
    let books = Mutex::default();
    let places = Arc::new(Places { calls_max: 8, advance_bytes: 0, budget: budget(), books });
    let place = |plugin| match Call::arrive(&places, plugin) {
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
    assert!(is_empty(&places));
}

#[test]
fn a_place_comes_with_some_memory_unless_there_is_none_left() {
    let places = Places::new(100, budget());
    let reserved = || places.lock().memory_bytes;
    let place = |plugin| match Call::arrive(&places, plugin) {
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
    assert!(is_empty(&places));
}

#[derive(Debug, Clone)]
enum Step {
    Arrive {
        plugin: usize,
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
        4 => (0..4_usize).prop_map(|plugin| Step::Arrive { plugin }),
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
    let books = places.lock();
    assert_eq!((books.calls, books.waiting), (running, u64::try_from(waiting).unwrap()), "no place is lost");
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
    fn any_plan_keeps_the_promises(calls_max in 1..12_u32, plan in steps()) {
        let places = Places::new(calls_max, budget());
        let mut calls = Vec::<(usize, Call)>::new();
        for step in plan {
            let waited: Vec<_> = calls.iter_mut().map(|(_, call)| !call.runs()).collect();
            let calls_of = |plugin| places.lock().plugins.get(&name(plugin)).map_or(0, |account| account.calls);
            let mut held: Vec<_> = (0..4).map(calls_of).collect();
            match step {
                Step::Arrive { plugin } => match Call::arrive(&places, plugin) {
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
            check(&places, &mut calls);
        }
        drop(calls);
        prop_assert!(is_empty(&places));
    }
}
