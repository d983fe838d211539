//! Arbitrary changes of a log are found, and arbitrary bytes are no panic.

use proptest::prelude::*;

use super::*;

/// Copies the sample, so that a case costs no signatures.
fn copy(log: &TestLog) -> (tempfile::TempDir, std::path::PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("log");
    LogDirectory::create(&path).unwrap();
    for entry in std::fs::read_dir(log.path()).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), path.join(entry.file_name())).unwrap();
        }
    }
    (root, path)
}

#[derive(Debug, Clone)]
enum Tampering {
    Flip(prop::sample::Index, u8),
    Drop(prop::sample::Index),
    Swap(prop::sample::Index, prop::sample::Index),
    Insert(prop::sample::Index, Vec<u8>),
    Cut(prop::sample::Index),
    Delete,
}

fn tampering() -> impl Strategy<Value = Tampering> {
    use prop::sample::Index;
    prop_oneof![
        (any::<Index>(), 0..8_u8).prop_map(|(at, bit)| Tampering::Flip(at, bit)),
        any::<Index>().prop_map(Tampering::Drop),
        (any::<Index>(), any::<Index>()).prop_map(|(a, b)| Tampering::Swap(a, b)),
        (any::<Index>(), prop::collection::vec(any::<u8>(), 1..40))
            .prop_map(|(at, bytes)| Tampering::Insert(at, bytes)),
        any::<Index>().prop_map(Tampering::Cut),
        Just(Tampering::Delete),
    ]
}

fn tamper(bytes: &[u8], tampering: &Tampering) -> Option<Vec<u8>> {
    let mut lines = lines(bytes);
    let mut bytes = bytes.to_vec();
    match tampering {
        Tampering::Flip(at, bit) => {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            return Some(bytes);
        }
        Tampering::Drop(at) => {
            let at = at.index(lines.len());
            lines.remove(at);
        }
        Tampering::Swap(a, b) => {
            let (a, b) = (a.index(lines.len()), b.index(lines.len()));
            lines.swap(a, b);
        }
        Tampering::Insert(at, text) => {
            let at = at.index(bytes.len());
            bytes.splice(at..at, text.iter().copied());
            return Some(bytes);
        }
        Tampering::Cut(at) => {
            bytes.truncate(at.index(bytes.len()));
            return Some(bytes);
        }
        Tampering::Delete => return None,
    }
    Some(lines.concat())
}

#[test]
fn tampering_is_found_without_the_key_and_behind_a_kept_checkpoint_with_it() {
    let (log, names) = sample();
    let report = check(&log, &[]);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(160) };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let cases = (0..names.len(), tampering(), any::<bool>());
    runner
        .run(&cases, |(segment, tampering, has_key)| {
            let (_root, path) = copy(&log);
            let file = path.join(format!("{}.jsonl", names[segment]));
            let before = std::fs::read(&file).unwrap();
            match tamper(&before, &tampering) {
                Some(after) if after == before => return Ok(()),
                Some(after) => std::fs::write(&file, after).unwrap(),
                None => std::fs::remove_file(&file).unwrap(),
            }
            if has_key {
                let _ = std::fs::remove_file(path.join(format!("{}.checkpoint", names[segment])));
                seal_again(&path, &names[segment], &file);
            }
            let kept = if has_key { report.frontier.as_slice() } else { &[] };
            let found = verify(&path, kept, None).unwrap();
            prop_assert!(!found.is_intact(), "{tampering:?} of {segment}");
            Ok(())
        })
        .unwrap();
}

/// Signs a changed segment, like an attacker who has the key.
fn seal_again(path: &Path, segment: &str, file: &Path) {
    let Ok(bytes) = std::fs::read(file) else { return };
    let directory = LogDirectory::open(path).unwrap();
    let key = std::sync::Arc::new(SigningKey::load(&directory).unwrap().unwrap());
    let mut sealer = crate::sealer::Sealer::new(&directory, segment, key);
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        if let Some(line) = line.strip_suffix(b"\n") {
            sealer.append(line);
        }
    }
    sealer.checkpoint().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_bytes_in_any_file_are_no_panic(
        which in 0..5_usize, bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let log = TestLog::new();
        let segment = log.closed(0, 1, 2, 1);
        let file = match which {
            0 => log.file(&segment),
            1 => log.path().join(format!("{segment}.jsonl.gz")),
            2 => log.checkpoint_file(&segment),
            3 => log.path().join("pruned"),
            _ => log.path().join("signing-key"),
        };
        std::fs::write(&file, &bytes).unwrap();
        let _ = verify(&log.path(), &[], None);
        let _ = verify(&log.path(), &[String::from_utf8_lossy(&bytes).into_owned()], None);
    }
}
