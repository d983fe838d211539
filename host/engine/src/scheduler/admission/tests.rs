use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const MIB: u64 = 1 << 20;

fn budget() -> ProcessBudget {
    ProcessBudget {
        memory_bytes_max: 800 * MIB,
        waiting_calls_per_plugin_max: 20,
        waiting_calls_max: 32,
    }
}

fn name(plugin: usize) -> PluginName {
    PluginName::new(format!("plugin-{plugin}")).unwrap()
}

/// Call of a plugin as its caller sees it.
enum Call {
    Running(CallPermit),
    Queued(Waiter),
}

impl Call {
    fn admit(admission: &Admission, plugin: usize) -> Result<Self, QueueFull> {
        Ok(match admission.admit(&name(plugin))? {
            AdmissionOutcome::Now(permit) => Self::Running(permit),
            AdmissionOutcome::Queued(waiter) => Self::Queued(waiter),
        })
    }

    /// Returns true if the call may run. Receives a permit that was sent.
    fn runs(&mut self) -> bool {
        if let Self::Queued(waiter) = self
            && let Ok(permit) = waiter.permit.try_recv()
        {
            *self = Self::Running(permit);
        }
        matches!(self, Self::Running(_))
    }
}

fn admit(admission: &Admission, plugin: usize, calls: usize) -> Vec<Call> {
    (0..calls).map(|_| Call::admit(admission, plugin).expect("the queue has room")).collect()
}

fn permit(admission: &Admission, plugin: usize) -> CallPermit {
    match admission.admit(&name(plugin)) {
        Ok(AdmissionOutcome::Now(permit)) => permit,
        _ => panic!("no permit is free"),
    }
}

fn running(calls: &mut [Call]) -> usize {
    calls.iter_mut().filter_map(|call| call.runs().then_some(())).count()
}

fn is_idle(admission: &Admission) -> bool {
    let state = admission.0.state.lock();
    state.plugins.is_empty() && (state.calls, state.memory_bytes, state.waiting) == (0, 0, 0)
}

#[test]
fn one_plugin_gets_all_but_a_reserve_and_a_second_one_finds_room() {
    let admission = Admission::new(64, budget());
    let mut first = admit(&admission, 0, 70);
    assert_eq!(running(&mut first), 56);
    let mut second = admit(&admission, 1, 8);
    assert_eq!(running(&mut second), 7);
    let mut third = admit(&admission, 2, 2);
    assert_eq!(running(&mut third), 1);
}

#[test]
fn a_pool_with_one_permit_is_usable() {
    let admission = Admission::new(1, budget());
    let mut calls = admit(&admission, 0, 2);
    assert_eq!(running(&mut calls), 1);
    calls.remove(0);
    assert_eq!(running(&mut calls), 1);
}

#[test]
fn a_permit_goes_to_the_plugin_that_holds_the_fewest() {
    let admission = Admission::new(8, budget());
    let mut many = admit(&admission, 0, 7);
    let mut few = admit(&admission, 1, 1);
    assert_eq!((running(&mut many), running(&mut few)), (7, 1));
    many.extend(admit(&admission, 0, 10));
    let mut late = admit(&admission, 2, 1);
    assert_eq!(running(&mut late), 0);
    many.remove(0);
    assert_eq!((running(&mut many), running(&mut late)), (6, 1));
}

#[test]
fn calls_of_one_plugin_run_in_order_of_arrival() {
    let admission = Admission::new(1, budget());
    let mut calls = admit(&admission, 0, 4);
    while !calls.is_empty() {
        assert_eq!(running(&mut calls), 1);
        assert!(calls[0].runs());
        calls.remove(0);
    }
    assert!(is_idle(&admission));
}

#[test]
fn a_flood_fills_its_own_queue_only() {
    let admission = Admission::new(1, budget());
    let flood: Vec<_> = std::iter::from_fn(|| Call::admit(&admission, 0).ok()).collect();
    assert_eq!(flood.len(), 1 + 20);
    let _other = admit(&admission, 1, 1);
    // Fewer than the maximum length, but the plugin's share of what 11 other entries leave.
    let second: Vec<_> = std::iter::from_fn(|| Call::admit(&admission, 2).ok()).collect();
    assert_eq!(second.len(), 9);
    assert!(Call::admit(&admission, 3).is_ok());
    assert_eq!(admission.0.state.lock().waiting, 20 + 1 + 9);
    drop((flood, second));
}

#[test]
fn a_call_that_stops_waiting_leaves_no_trace() {
    let admission = Admission::new(1, budget());
    let first = Call::admit(&admission, 0).unwrap();
    let second = Call::admit(&admission, 0).unwrap();
    let third = Call::admit(&admission, 1).unwrap();
    drop(second);
    // This sends a permit that the third call has not received yet.
    drop(first);
    drop(third);
    assert!(is_idle(&admission));
}

#[test]
fn memory_is_shared_fairly_and_released_with_the_permit() {
    let admission = Admission::new(8, budget());
    let (one, two, other) = (permit(&admission, 0), permit(&admission, 0), permit(&admission, 1));
    assert!(one.reserve(600 * MIB));
    assert!(!two.reserve(101 * MIB), "700 MiB are seven times the 100 MiB that are left");
    assert!(two.reserve(100 * MIB));
    assert!(other.reserve(87 * MIB));
    assert!(!other.reserve(MIB));
    assert!(!other.reserve(u64::MAX));
    drop(one);
    assert!(other.reserve(MIB));
    drop((two, other));
    assert!(is_idle(&admission));
}

#[derive(Debug, Clone)]
enum Step {
    Admit {
        plugin: usize,
    },
    /// Ends or cancels the call at this index.
    Leave {
        call: prop::sample::Index,
    },
    /// Reserves memory for the call if it runs.
    Grow {
        call: prop::sample::Index,
        mebibytes: u64,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..4_usize).prop_map(|plugin| Step::Admit { plugin }),
        3 => any::<prop::sample::Index>().prop_map(|call| Step::Leave { call }),
        1 => (any::<prop::sample::Index>(), 1..300_u64).prop_map(|(call, mebibytes)| Step::Grow { call, mebibytes }),
    ];
    prop::collection::vec(step, 1..120)
}

/// Checks the invariants.
fn check(admission: &Admission, calls: &mut [(usize, Call)]) {
    let mut runs = BTreeMap::<usize, u64>::new();
    let mut first_waiting = BTreeMap::<usize, usize>::new();
    for (at, (plugin, call)) in calls.iter_mut().enumerate() {
        if call.runs() {
            *runs.entry(*plugin).or_default() += 1;
            assert!(
                !first_waiting.contains_key(plugin),
                "call {at} has overtaken another of its plugin"
            );
        } else {
            first_waiting.entry(*plugin).or_insert(at);
        }
    }
    let running: u64 = runs.values().sum();
    let waiting = calls.len() - usize::try_from(running).unwrap();
    let shared = &admission.0;
    let state = shared.state.lock();
    assert_eq!(
        (state.calls, state.waiting),
        (running, u64::try_from(waiting).unwrap()),
        "no permit is lost"
    );
    assert!(state.calls <= shared.calls_max);
    assert!(state.memory_bytes <= shared.budget.memory_bytes_max);
    for plugin in first_waiting.keys() {
        let usage = &state.plugins[&name(*plugin)];
        let free = shared.calls_max.saturating_sub(state.calls);
        assert!(!usage.has_room(free), "plugin {plugin} waits for a permit that is free");
    }
}

proptest! {
    #[test]
    fn any_plan_keeps_the_promises(calls_max in 1..12_u32, plan in steps()) {
        let admission = Admission::new(calls_max, budget());
        let mut calls = Vec::<(usize, Call)>::new();
        for step in plan {
            let waited: Vec<_> = calls.iter_mut().map(|(_, call)| !call.runs()).collect();
            let calls_of = |plugin| admission.0.state.lock().plugins.get(&name(plugin)).map_or(0, |usage| usage.calls);
            let mut held: Vec<_> = (0..4).map(calls_of).collect();
            match step {
                Step::Admit { plugin } => match Call::admit(&admission, plugin) {
                    Ok(call) => calls.push((plugin, call)),
                    Err(full) => {
                        let own = |(of, call): &&(usize, Call)| *of == plugin && matches!(call, Call::Queued(_));
                        prop_assert_eq!(full.waiting, calls.iter().filter(own).count());
                        prop_assert!(full.waiting > 0, "a plugin without waiting calls was \
                            refused");
                    }
                },
                Step::Leave { call } if !calls.is_empty() => {
                    let gone = call.index(calls.len());
                    let (plugin, _) = calls.remove(gone);
                    held[plugin] -= u64::from(!waited[gone]);
                    // A plugin that received a permit here held no more permits than any plugin
                    // that is still waiting.
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
                        prop_assert!(given <= still, "{} got a permit, {} waits", given, still);
                    }
                }
                Step::Grow { call, mebibytes } if !calls.is_empty() => {
                    let at = call.index(calls.len());
                    if let (_, Call::Running(permit)) = &calls[at] {
                        permit.reserve(mebibytes * MIB);
                    }
                }
                Step::Leave { .. } | Step::Grow { .. } => {}
            }
            check(&admission, &mut calls);
        }
        drop(calls);
        prop_assert!(is_idle(&admission));
    }
}
