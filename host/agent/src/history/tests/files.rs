use std::fs;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::history::HistoryError;
use crate::{MessageContent, Role};

#[tokio::test]
async fn a_file_has_one_record_per_line_and_belongs_to_the_user_alone() {
    let directory = tempfile::tempdir().unwrap();
    let files = open(&directory.path().join("made/here"));
    files.append("s1", &texts(&["hé\nllo \u{2028} x", "b"])).await.unwrap();
    files.append("s1", &[]).await.unwrap();
    files.append("none", &[]).await.unwrap();
    files.append("S1", &texts(&["other"])).await.unwrap();
    let path = directory.path().join("made/here/s1.jsonl");
    let written = fs::read_to_string(&path).unwrap();
    let first = r#"{"type":"message","role":"user","contents":[{"type":"text","text":"hé\nllo   x"}],"additional_properties":{}}"#;
    assert_eq!(written.split('\n').next().unwrap(), first.replace("  ", " \u{2028}"));
    assert_eq!(written.matches('\n').count(), 2);
    assert!(written.ends_with('\n'));
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 2);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!([mode(&path), mode(path.parent().unwrap())], [0o600, 0o700]);
    }
}

#[tokio::test]
async fn a_line_that_is_no_message_is_an_error_that_names_the_line_and_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let files = open(directory.path());
    let record = |text: &str| serde_json::to_string(&Message::user(text)).unwrap();
    let (a, b) = (record("a"), record("b"));
    let line = |line| Err(format!("Failed to deserialize history line {line} from 's1.jsonl'."));
    let mapping = |line| {
        Err(format!("History record {line} in 's1.jsonl' did not deserialize to a mapping."))
    };
    let shows = |texts: &[&str]| Ok(texts.iter().map(ToString::to_string).collect());
    let cases = [
        (String::new(), shows(&[])),
        ("\n \n\r\n\t\n".into(), shows(&[])),
        (format!("{a}\r\n\n  \n{b}"), shows(&["a", "b"])),
        (format!("  {a}  "), shows(&["a"])),
        (format!("{a}\n\n{{bad\n{b}\n"), line(3)),
        (format!("{a}\n[1]\n"), mapping(2)),
        ("null".into(), mapping(1)),
        ("\"{}\"\n".into(), mapping(1)),
        ("[1\n".into(), line(1)),
        ("{}\n".into(), line(1)),
        (format!("{a}{b}\n"), line(1)),
        (format!("{}1{}\n", "[".repeat(500), "]".repeat(500)), line(1)),
        (format!("{a}\u{2028}{b}\n"), line(1)),
    ];
    for (before, expected) in cases {
        fs::write(directory.path().join("s1.jsonl"), &before).unwrap();
        assert_eq!(shown(&files, "s1").await, expected, "{before:?}");
        assert_eq!(fs::read_to_string(directory.path().join("s1.jsonl")).unwrap(), before);
    }
    fs::write(directory.path().join("s1.jsonl"), [a.as_bytes(), b"\n\xff\n"].concat()).unwrap();
    assert_eq!(
        shown(&files, "s1").await.unwrap_err(),
        "History file 's1.jsonl' is not valid UTF-8."
    );
}

#[tokio::test]
async fn a_torn_last_line_is_an_error_unless_its_repair_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s1.jsonl");
    let repairing = FileHistoryOptions { repair_torn_end: true, ..FileHistoryOptions::default() };
    let a = serde_json::to_string(&Message::user("a")).unwrap();
    for torn in
        [r#"{"type":"mess"#.as_bytes(), b"\xc3", b"\0\0\0", b"{\"type\":\"message\",\"x\":\"\xc3"]
    {
        let _earlier = fs::remove_file(directory.path().join("s1.jsonl.torn"));
        let before = [a.as_bytes(), b"\n", torn].concat();
        for is_read_first in [true, false] {
            fs::write(&path, &before).unwrap();
            let files = open_with(directory.path(), repairing.clone());
            if is_read_first {
                assert_eq!(shown(&files, "s1").await.unwrap(), ["a"]);
                assert_eq!(fs::read_to_string(&path).unwrap(), format!("{a}\n"));
            }
            files.append("s1", &texts(&["b"])).await.unwrap();
            assert_eq!(shown(&open(directory.path()), "s1").await.unwrap(), ["a", "b"]);
        }
        let aside = fs::read(directory.path().join("s1.jsonl.torn")).unwrap();
        assert_eq!(aside, [torn, b"\n", torn, b"\n"].concat());

        fs::write(&path, &before).unwrap();
        let files = open(directory.path());
        assert!(shown(&files, "s1").await.is_err());
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(files.repair("s1").await.unwrap(), torn.len() as u64);
        assert_eq!(files.repair("s1").await.unwrap(), 0);
        assert_eq!(shown(&files, "s1").await.unwrap(), ["a"]);
    }
}

#[tokio::test]
async fn only_a_torn_end_is_repaired() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s1.jsonl");
    let repairing = FileHistoryOptions { repair_torn_end: true, ..FileHistoryOptions::default() };
    let files = open_with(directory.path(), repairing);
    let a = serde_json::to_string(&Message::user("a")).unwrap();
    let cases = [
        (format!("{a}\n{{bad\n"), 2),
        (format!("{{bad\n{a}\n{{torn"), 1),
        // Complete, but not written by this crate.
        (format!("{a}\n{{}}"), 2),
        (format!("{a}\n{{\"type\":\"session\"}}"), 2),
    ];
    for (before, error_line) in cases {
        fs::write(&path, &before).unwrap();
        let error = format!("Failed to deserialize history line {error_line} from 's1.jsonl'.");
        assert_eq!(shown(&files, "s1").await.unwrap_err(), error);
        assert_eq!(fs::read_to_string(&path).unwrap(), before);
    }
    // A complete record without a line feed is not torn.
    fs::write(&path, &a).unwrap();
    files.append("s1", &texts(&["b"])).await.unwrap();
    assert_eq!(shown(&files, "s1").await.unwrap(), ["a", "b"]);
    assert!(!directory.path().join("s1.jsonl.torn").exists());
}

#[tokio::test]
async fn nothing_is_written_that_could_not_be_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let options = FileHistoryOptions {
        file_bytes_max: 1000,
        record_bytes_max: 400,
        ..FileHistoryOptions::default()
    };
    let files = open_with(directory.path(), options);
    files.append("s1", &texts(&["first"])).await.unwrap();
    let before = fs::read(directory.path().join("s1.jsonl")).unwrap();

    let mut deep = Message::user("x");
    deep.extra.insert("deep".into(), (0..200).fold(json!(1), |inner, _| json!([inner])));
    let mut twice = Message::user("x");
    twice.extra.insert("role".into(), "user".into());
    for message in [deep, twice] {
        let batch = [texts(&["good"]), vec![Arc::new(message)]].concat();
        let error = files.append("s1", &batch).await.unwrap_err();
        let is_expected = matches!(
            error,
            HistoryError::Unwritable { number: 2, .. }
                | HistoryError::RecordTooLarge { line: 2, .. }
        );
        assert!(is_expected, "{error}");
    }
    let long = "x".repeat(400);
    let error = files.append("s1", &texts(&[&long])).await.unwrap_err();
    assert_eq!(error.to_string(), "History record 1 in 's1.jsonl' is larger than 400 bytes.");
    let many = vec!["many"; 20];
    let error = files.append("s1", &texts(&many)).await.unwrap_err();
    assert_eq!(error.to_string(), "History file 's1.jsonl' is larger than 1000 bytes.");
    assert_eq!(fs::read(directory.path().join("s1.jsonl")).unwrap(), before);
}

#[tokio::test]
async fn what_others_have_written_is_read_within_the_limits() {
    let directory = tempfile::tempdir().unwrap();
    let options = FileHistoryOptions {
        file_bytes_max: 1000,
        record_bytes_max: 400,
        ..FileHistoryOptions::default()
    };
    let files = open_with(directory.path(), options);
    let path = directory.path().join("s1.jsonl");
    fs::write(&path, vec![b'\n'; 1001]).unwrap();
    assert!(matches!(
        files.read("s1").await,
        Err(HistoryError::FileTooLarge { bytes_max: 1000, .. })
    ));
    fs::write(&path, format!("\n\"{}\"\n", "x".repeat(400))).unwrap();
    assert!(matches!(files.read("s1").await, Err(HistoryError::RecordTooLarge { line: 2, .. })));
}

#[tokio::test]
async fn appends_at_the_same_time_do_not_mix() {
    let directory = tempfile::tempdir().unwrap();
    let sync = FileHistoryOptions { sync: true, ..FileHistoryOptions::default() };
    let shared = open_with(directory.path(), sync);
    let writers = (0..6).map(|writer| {
        let files = if writer % 2 == 0 { shared.clone() } else { open(directory.path()) };
        tokio::spawn(async move {
            for number in 0..10 {
                let batch = [
                    format!("{writer} {number} a"),
                    format!("{writer} {number} b {}", "x".repeat(5000)),
                ];
                files.append("s1", &texts(&batch.each_ref().map(String::as_str))).await.unwrap();
                assert!(files.read("s1").await.unwrap().len().is_multiple_of(2));
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let read = shown(&open(directory.path()), "s1").await.unwrap();
    assert_eq!(read.len(), 120);
    for pair in read.chunks(2) {
        let start = |text: &str| text.split_at(3).0.to_owned();
        assert_eq!(start(&pair[0]), start(&pair[1]));
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| prop::collection::vec(inner, 0..4).prop_map(Value::from))
}

fn content() -> impl Strategy<Value = MessageContent> {
    prop_oneof![
        any::<String>().prop_map(MessageContent::text),
        any::<[String; 3]>()
            .prop_map(|[id, name, arguments]| MessageContent::call(id, name, arguments)),
        any::<[String; 2]>().prop_map(|[id, result]| MessageContent::result(id, result)),
        value().prop_map(|value| {
            let other = json!({"type": "of_another_kind", "value": value});
            serde_json::from_value(other).unwrap()
        }),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let role =
        prop_oneof![Just(Role::User), Just(Role::Assistant), Just(Role::Tool), Just(Role::System)];
    (role, prop::collection::vec(content(), 0..4), value()).prop_map(|(role, contents, value)| {
        let mut message = Message::new(role, contents);
        message.additional_properties = Map::from_iter([("k".to_owned(), value.clone())]);
        message.extra = Map::from_iter([("x_unknown".to_owned(), value)]);
        message
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_appended_is_what_is_read(batches in prop::collection::vec(prop::collection::vec(message(), 0..3), 0..4)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let files = open(directory.path());
        let read = runtime.block_on(async {
            for batch in &batches {
                let batch: Vec<_> = batch.iter().cloned().map(Arc::new).collect();
                files.append("s", &batch).await.unwrap();
            }
            files.read("s").await.unwrap()
        });
        prop_assert_eq!(read, batches.concat());
    }

    #[test]
    fn no_bytes_in_a_file_make_anything_panic_or_get_lost(
        parts in prop::collection::vec(prop_oneof![
            any::<Vec<u8>>(),
            message().prop_map(|message| serde_json::to_vec(&message).unwrap()),
            Just(b"\n".to_vec()),
            "[\\[\\]{}\",:0-9a-z \\\\]{0,20}".prop_map(String::into_bytes),
        ], 0..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s.jsonl");
        let before = parts.concat();
        fs::write(&path, &before).unwrap();
        let files = open(directory.path());
        runtime.block_on(async {
            let read = files.read("s").await;
            assert_eq!(fs::read(&path).unwrap(), before);
            let moved = files.repair("s").await.unwrap_or_default();
            assert!(moved == 0 || read.is_err());
            let repaired = fs::read(&path).unwrap();
            assert_eq!(repaired, before[..before.len() - usize::try_from(moved).unwrap()]);
            files.append("s", &texts(&["after"])).await.unwrap();
            assert!(fs::read(&path).unwrap().starts_with(&repaired));
            if let Ok(read) = read {
                assert_eq!(files.read("s").await.unwrap().len(), read.len() + 1);
            }
        });
    }
}
