use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn call(tool: &str, arguments: Value) -> ObservedCall {
    ObservedCall { tool: tool.to_owned(), arguments, failed: false }
}

/// Reads a case with these fields, beside a name and a prompt.
fn case(fields: Value) -> EvalCase {
    let mut case = json!({"name": "c", "prompt": "p"});
    let members = fields.as_object().unwrap().clone();
    case.as_object_mut().unwrap().extend(members);
    EvalCase::from_value(&case).unwrap_or_else(|error| panic!("{case}: {error}"))
}

/// Returns the calls `a`, `b`, … of a string, without arguments.
fn calls(names: &str) -> Vec<ObservedCall> {
    names.chars().map(|name| call(&name.to_string(), json!({}))).collect()
}

#[test]
fn arguments_are_compared_as_the_case_says() {
    let expected = json!({"n": 2, "of": {"a": 1}, "list": [1, {"b": 1}]});
    let rows = [
        (json!({"n": 2, "of": {"a": 1}, "list": [1, {"b": 1}]}), true, true),
        (json!({"list": [1, {"b": 1.0}], "of": {"a": 1}, "n": 2.0}), true, true),
        (json!({"n": 2, "of": {"a": 1, "x": 1}, "list": [1, {"b": 1}]}), true, false),
        (json!({"n": 2, "of": {"a": 1}, "list": [1, {"b": 1, "x": 1}], "y": 1}), true, false),
        (json!({"n": 2, "of": {"a": 1}, "list": [1, {"b": 1}, 2]}), false, false),
        (json!({"n": "2", "of": {"a": 1}, "list": [1, {"b": 1}]}), false, false),
        (json!({"n": 2, "list": [1, {"b": 1}]}), false, false),
        (json!([]), false, false),
        (json!("not JSON"), false, false),
    ];
    for (arguments, is_partial, is_exact) in rows {
        let made = [call("f", arguments.clone())];
        for (mode, is_match) in [("partial", is_partial), ("exact", is_exact)] {
            let expected = json!([{"tool": "f", "arguments": expected, "match": mode}]);
            let problems = problems(&case(json!({"calls": expected})), &made);
            assert_eq!(problems.is_empty(), is_match, "{mode} {arguments}: {problems:?}");
        }
        let any = case(json!({"calls": [{"tool": "f", "match": "ignore"}]}));
        assert!(problems(&any, &made).is_empty());
    }
}

#[test]
fn calls_are_counted_and_ordered() {
    let (a, b) = (json!({"tool": "a"}), json!({"tool": "b"}));
    let at_most_2 = json!({"tool": "a", "max": 2});
    let at_least_2 = json!({"tool": "a", "min": 2});
    let none_or_1 = json!({"tool": "a", "min": 0, "max": 1});
    // Fields of the case, calls that it accepts, and calls that it does not accept.
    let rows = [
        (json!({"calls": [a, b]}), vec!["ab", "ba", "aab", "cabc"], vec!["", "a", "b", "cc"]),
        (
            json!({"calls": [a, b], "order": "in-order"}),
            vec!["ab", "cacbc", "bab"],
            vec!["ba", "a"],
        ),
        (json!({"calls": [a, b], "order": "exact"}), vec!["ab"], vec!["ba", "abc", "aab", "a", ""]),
        (json!({"calls": [a, b], "extra": 1}), vec!["ab", "aba", "bac"], vec!["abcc", "aabb"]),
        (
            json!({"calls": [a, b], "extra": 1, "order": "in-order"}),
            vec!["ab", "bab", "acb"],
            vec!["bacb", "abba"],
        ),
        (json!({"calls": [at_most_2]}), vec!["a", "aa", "aac"], vec!["", "aaa", "acaa"]),
        (json!({"calls": [at_least_2]}), vec!["aa", "aaaaaa"], vec!["", "a", "ac"]),
        (
            json!({"calls": [at_least_2, b], "order": "exact"}),
            vec!["aab", "aaaab"],
            vec!["ab", "aba", "aabb"],
        ),
        (
            json!({"calls": [none_or_1, b], "order": "exact"}),
            vec!["ab", "b"],
            vec!["aab", "ba", "a"],
        ),
        (json!({"calls": [{"tool": "a", "max": 0}]}), vec!["", "b"], vec!["a", "ba"]),
        (json!({"forbidden": ["a", "b"]}), vec!["", "c"], vec!["a", "cb"]),
        (json!({"none": true}), vec![""], vec!["a"]),
        (json!({"extra": 0}), vec![""], vec!["a"]),
        (json!({}), vec!["", "abc"], vec![]),
    ];
    for (fields, accepted, refused) in rows {
        let case = case(fields.clone());
        for names in accepted {
            assert_eq!(problems(&case, &calls(names)), [""; 0], "{fields} {names}");
        }
        for names in refused {
            assert!(!problems(&case, &calls(names)).is_empty(), "{fields} {names}");
        }
    }
}

#[test]
fn a_call_makes_room_for_another() {
    // The first call has to go to the second entry, although the first entry accepts it as well.
    let case = case(json!({"calls": [
        {"tool": "a", "match": "ignore"},
        {"tool": "a", "arguments": {"x": 1}},
    ]}));
    let made = [call("a", json!({"x": 1})), call("a", json!({"x": 2}))];
    assert_eq!(problems(&case, &made), [""; 0]);
}

#[test]
fn calls_of_the_search_for_tools_are_not_extra_calls() {
    let made = [call(SEARCH_TOOL, json!({})), call(LOAD_TOOL, json!({}))];
    assert_eq!(problems(&case(json!({"none": true})), &made), [""; 0]);
    let forbidden = case(json!({"forbidden": [LOAD_TOOL]}));
    assert_eq!(problems(&forbidden, &made).len(), 1);
}

#[test]
fn reasons_say_what_was_expected_and_what_was_found() {
    let counted = json!({"tool": "word_count", "arguments": {"text": "a b"}});
    let rows = [
        (
            json!({"calls": [counted]}),
            vec![],
            "expected a call of `word_count` with {\"text\":\"a b\"}, found none \
             (the model called no tool)",
        ),
        (
            json!({"calls": [counted]}),
            vec![call("word_count", json!({"text": "a"}))],
            "expected a call of `word_count` with {\"text\":\"a b\"}, found none, but a call of \
             `word_count` with {\"text\":\"a\"}",
        ),
        (
            json!({"calls": [{"tool": "a", "min": 2, "match": "ignore"}]}),
            calls("abb"),
            "expected at least 2 calls of `a`, found 1 (the model called `a`, `b` (2 times))",
        ),
        (
            json!({"calls": [{"tool": "a", "max": 1}]}),
            calls("aaa"),
            "expected at most 1 call of `a`, found 3",
        ),
        (
            json!({"extra": 1}),
            calls("abb"),
            "expected at most 1 extra call, found 3: `a`, `b` (2 times)",
        ),
        (json!({"none": true}), calls("a"), "expected no calls, found 1: `a`"),
        (
            json!({"forbidden": ["a"]}),
            calls("aa"),
            "expected no call of `a`, which is forbidden, found 2, the first with {}",
        ),
        (
            json!({"calls": [{"tool": "a"}, {"tool": "b"}], "order": "in-order"}),
            calls("ba"),
            "expected the calls in this order: `a`, `b`; found `b` with {}, `a` with {}",
        ),
        (
            json!({"calls": [{"tool": "a"}, {"tool": "b"}], "order": "exact"}),
            calls("abc"),
            "expected no extra calls, found 1: `c`",
        ),
    ];
    for (fields, made, reason) in rows {
        assert_eq!(problems(&case(fields), &made), [reason]);
    }
}

#[test]
fn a_run_with_too_many_calls_fails_without_being_compared() {
    let made = calls(&"a".repeat(COMPARED_CALLS_MAX + 1));
    assert_eq!(problems(&case(json!({})), &made), ["expected at most 1000 calls, found 1001"]);
}

/// An expected call of the property tests: tool, value of an argument, minimum, and maximum.
type Entry = (char, Option<u32>, u32, Option<u32>);

fn entry() -> impl Strategy<Value = Entry> {
    let tool = prop::sample::select(vec!['a', 'b']);
    (tool, prop::option::of(0..2_u32), 0..3_u32, prop::option::of(0..3_u32))
        .prop_map(|(tool, x, min, more)| (tool, x, min, more.map(|more| min + more)))
}

fn made() -> impl Strategy<Value = Vec<(char, u32)>> {
    prop::collection::vec((prop::sample::select(vec!['a', 'b', 'c']), 0..2_u32), 0..6)
}

fn written(entries: &[Entry]) -> Vec<Value> {
    let one = |(tool, x, min, max): &Entry| {
        let mut call = json!({"tool": tool.to_string(), "min": min});
        if let Some(x) = x {
            call["arguments"] = json!({"x": x});
        }
        if let Some(max) = max {
            call["max"] = json!(max);
        }
        call
    };
    entries.iter().map(one).collect()
}

/// Returns all ways to assign each call to an entry that it matches, or to none.
fn assignments(entries: &[Entry], made: &[(char, u32)]) -> Vec<Vec<Option<usize>>> {
    let mut all = vec![Vec::new()];
    for (tool, x) in made {
        let fits = |entry: &Entry| entry.0 == *tool && entry.1.is_none_or(|wanted| wanted == *x);
        let matching = entries.iter().enumerate().filter(|(_, entry)| fits(entry));
        let choices: Vec<_> = matching.map(|(index, _)| Some(index)).chain([None]).collect();
        all = all
            .iter()
            .flat_map(|one| choices.iter().map(move |choice| [&one[..], &[*choice]].concat()))
            .collect();
    }
    all
}

fn is_within(entries: &[Entry], assignment: &[Option<usize>]) -> bool {
    entries.iter().enumerate().all(|(index, (_, _, min, max))| {
        let count = assignment.iter().filter(|one| **one == Some(index)).count() as u32;
        count >= *min && max.is_none_or(|max| count <= max)
    })
}

fn observed(made: &[(char, u32)]) -> Vec<ObservedCall> {
    made.iter().map(|(tool, x)| call(&tool.to_string(), json!({"x": x}))).collect()
}

proptest! {
    #[test]
    fn any_order_accepts_what_some_assignment_allows(
        entries in prop::collection::vec(entry(), 0..4),
        made in made(),
        extra in 0..3_usize,
    ) {
        let case = case(json!({"calls": written(&entries), "extra": extra}));
        // A call beyond a maximum is refused, not extra.
        let has_max = |(tool, x): &(char, u32)| entries.iter().any(|entry| {
            entry.0 == *tool && entry.1.is_none_or(|wanted| wanted == *x) && entry.3.is_some()
        });
        let is_allowed = assignments(&entries, &made).into_iter().any(|one| {
            let left = made.iter().zip(&one).filter(|(_, entry)| entry.is_none());
            is_within(&entries, &one)
                && left.clone().count() <= extra
                && left.clone().all(|(call, _)| !has_max(call))
        });
        let problems = problems(&case, &observed(&made));
        prop_assert_eq!(problems.is_empty(), is_allowed, "{:?}", problems);
    }

    #[test]
    fn an_order_accepts_what_some_assignment_in_order_allows(
        entries in prop::collection::vec(entry(), 1..4),
        made in made(),
        is_exact in any::<bool>(),
    ) {
        let order = if is_exact { "exact" } else { "in-order" };
        let expected = written(&entries);
        let case = case(json!({"calls": expected, "order": order}));
        let made_calls = observed(&made);
        let references: Vec<_> = made_calls.iter().collect();
        let least = assignments(&entries, &made).into_iter().filter(|one| {
            is_within(&entries, one) && one.iter().flatten().is_sorted()
        }).map(|one| one.iter().filter(|entry| entry.is_none()).count()).min();
        prop_assert_eq!(sequence::extra(&case.calls, &references), least);
        if is_exact {
            let problems = problems(&case, &made_calls);
            prop_assert_eq!(problems.is_empty(), least == Some(0), "{:?}", problems);
        }
    }
}
