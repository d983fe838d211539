//! Every word of the vocabulary has a fixture, even if no vendored row uses it.

use cofferdam_tests::root;
use cofferdam_tool::CallContext;

use super::{fixtures, world};

/// Ends of the situations of `guest` rows: an error type, or a word for other outcomes.
const ENDS: &[(&str, &str)] = &[
    ("a trap the table does not name", "Trap.Other"),
    ("aborts", "Trap.Unreachable"),
    ("blocks in a host call past the wall-clock limit", "Timeout"),
    ("calls exit", "GuestExit"),
    ("calls past the end of a table", "Trap.TableOutOfBounds"),
    ("cannot be compiled", "PluginUnavailable"),
    ("component imports something the host does not offer", "PluginUnavailable"),
    ("digest does not match", "PluginUnavailable"),
    ("divides by zero", "Trap.IntegerDivideByZero"),
    ("divides the smallest integer by -1", "Trap.IntegerOverflow"),
    ("executes unreachable", "Trap.Unreachable"),
    ("exits with code 0", "GuestExit"),
    ("exits with code 3", "GuestExit"),
    ("grows memory past the limit and aborts", "MemoryLimit"),
    ("indirect call through a null entry", "Trap.IndirectCallMismatch"),
    ("indirect call with another signature", "Trap.IndirectCallMismatch"),
    ("is refused a capability, handles it, returns \"ok\"", "ok"),
    ("is stopped at an ungranted capability", "CapabilityDenied"),
    ("loads past the end of memory", "Trap.MemoryOutOfBounds"),
    ("loops for ever", "CpuLimit"),
    ("memory growth refused, handles it, returns \"ok\"", "ok"),
    ("misaligned atomic", "Trap.HeapMisaligned"),
    ("opens more handles than allowed", "HandleLimit"),
    ("panics with the message secret", "Trap.Unreachable"),
    ("recurses without end", "Trap.StackOverflow"),
    ("remainder by zero", "Trap.IntegerDivideByZero"),
    ("result breaks the declared output schema", "InvalidResult"),
    ("result is exactly at the limit", "ok"),
    ("result is nested 129 levels deep", "InvalidResult"),
    ("result is not UTF-8", "InvalidResult"),
    ("result is one byte over the limit", "OutputLimit"),
    ("result text has a trailing comma", "InvalidResult"),
    ("returns more bytes than allowed", "OutputLimit"),
    ("returns text that is not JSON", "InvalidResult"),
    ("sleeps longer than the wall-clock limit", "Timeout"),
    ("stores past the end of memory", "Trap.MemoryOutOfBounds"),
    ("throws and does not catch", "Trap.UncaughtException"),
    ("times out", "Timeout"),
    ("traps", "Trap.Unreachable"),
    ("truncates NaN to an integer", "Trap.BadConversion"),
];

/// Returns the words under `does` of the area, from the vocabulary. Some contain a semicolon.
fn vocabulary() -> Vec<String> {
    let readme = std::fs::read_to_string(root().join("tests/conformance/README.md")).unwrap();
    let area =
        readme.split("### results\n").nth(1).and_then(|rest| rest.split("###").next()).unwrap();
    let list = area.lines().find_map(|line| line.strip_prefix("- `does`: ")).unwrap();
    let mut words: Vec<String> = Vec::new();
    for part in list.split("; ") {
        match words.last_mut() {
            Some(word) if part == "default" || part.ends_with(" retries") => {
                *word += &format!("; {part}")
            }
            _ => words.push(part.to_owned()),
        }
    }
    words
}

#[test]
fn every_situation_ends_as_its_words_say() {
    let world = world();
    for (word, expected) in ENDS {
        let completion = world.run(async {
            let fixture = fixtures::does(world, word).await.unwrap();
            fixture.call(&CallContext::new("word")).await
        });
        let record = &completion.record;
        assert_eq!(
            record.error_type.as_deref().unwrap_or(record.outcome),
            *expected,
            "{word}: {record:?}"
        );
    }
}

#[test]
fn every_word_of_the_vocabulary_is_known() {
    let words = vocabulary();
    assert!(words.len() > 40, "only {} words found", words.len());
    for word in &words {
        let known = if word.contains("; ") {
            world().run(async { fixtures::retried(world(), word).await.is_ok() })
        } else {
            word.starts_with("caller ") || ENDS.iter().any(|(known, _)| known == word)
        };
        assert!(known, "`{word}`");
    }
}
