mod one_by_one;

use std::future::Future as _;
use std::task::{Context, Poll, Waker};

use serde_json::{Value, json};

use super::*;
use crate::{DirectoryOptions, DirectoryStore, MemoryStore, Quota, WriteMode};

const FILES: [(&str, &[u8]); 6] = [
    ("b/x.md", b"one\r\nTWO two\nthree\r"),
    ("a.txt", b"two\n"),
    ("b.txt", b""),
    ("b/deep/y.md", "né two\u{301}".as_bytes()),
    ("b/binary", b"two \xff"),
    ("c", b"nothing"),
];

async fn store() -> Arc<dyn FileStore> {
    let store = MemoryStore::default();
    for (path, content) in FILES {
        store
            .write(&StorePath::file(path).unwrap(), content.to_vec(), WriteMode::Create)
            .await
            .unwrap();
    }
    Arc::new(store)
}

async fn find(query: SearchQuery, directory: &str) -> SearchResults {
    search(&store().await, &StorePath::directory(directory).unwrap(), &query).await.unwrap()
}

/// Returns the names of the files that match `query` below `directory`.
async fn names(query: SearchQuery, directory: &str) -> Vec<String> {
    find(query, directory).await.files.into_iter().map(|file| file.file_name).collect()
}

/// Returns the result of searching one file with `content`, as JSON.
async fn lines_of(content: &str, query: SearchQuery) -> Value {
    let store: Arc<dyn FileStore> = Arc::new(MemoryStore::default());
    store.write(&StorePath::file("f").unwrap(), content.into(), WriteMode::Create).await.unwrap();
    let results = search(&store, &StorePath::ROOT, &query).await.unwrap();
    serde_json::to_value(results.files).unwrap()
}

fn query(pattern: &str) -> SearchQuery {
    SearchQuery::new(pattern, false).unwrap()
}

fn refusal(pattern: &str) -> String {
    SearchQuery::new(pattern, false).unwrap_err().to_string()
}

#[test]
fn caps_are_pinned() {
    let caps = SearchCaps::default();
    assert_eq!((caps.matches_max, caps.line_bytes_max), (1000, 2000));
    assert_eq!(file::LINE_BYTES_MAX, 8_388_608);
}

#[tokio::test]
async fn files_are_ordered_by_name_and_binary_ones_skipped() {
    assert_eq!(names(query("two"), "").await, ["a.txt", "b/deep/y.md", "b/x.md"]);
    assert_eq!(names(query("two"), "b").await, ["b/deep/y.md", "b/x.md"]);
    assert_eq!(names(query("two").with_scope(Scope::Children), "b").await, ["b/x.md"]);
    assert_eq!(names(query("two").with_glob(Some("deep/*")).unwrap(), "b").await, ["b/deep/y.md"]);
    assert_eq!(names(query("two"), "missing").await, [""; 0]);
    assert_eq!(names(SearchQuery::new("TWO", true).unwrap(), "").await, ["b/x.md"]);
}

#[tokio::test]
async fn lines_are_file_30() {
    let lines = lines_of("a\r\nb\n\rc\r", query("")).await;
    let expected = json!([
        {"line_number": 1, "line": "a"}, {"line_number": 2, "line": "b"}, {"line_number": 3, "line": "\rc\r"},
    ]);
    assert_eq!(lines[0]["matching_lines"], expected);
    let empty = json!([{"file_name": "f", "snippet": "", "matching_lines": [{"line_number": 1, "line": ""}]}]);
    assert_eq!(lines_of("", query("^$")).await, empty);
    let last = lines_of("a\n", query("^$")).await;
    assert_eq!(last[0]["matching_lines"], json!([{"line_number": 2, "line": ""}]));
    assert_eq!(lines_of("a\r\nb", query("a$")).await[0]["matching_lines"][0]["line"], "a");
    assert_eq!(lines_of("a\nb", query(r"a\nb")).await, json!([]));
}

#[tokio::test]
async fn the_snippet_is_file_31() {
    let text = format!("{}\nMATCH\n{}", "é".repeat(60), "ü".repeat(60));
    let found = lines_of(&text, query("match")).await;
    assert_eq!(found[0]["snippet"], format!("{}\nMATCH\n{}", "é".repeat(49), "ü".repeat(49)));
    assert_eq!(found[0]["matching_lines"], json!([{"line_number": 2, "line": "MATCH"}]));
    assert_eq!(lines_of("x match\r\ny", query("match")).await[0]["snippet"], "x match\r\ny");
}

#[tokio::test]
async fn caps_are_file_33() {
    let caps = SearchCaps { matches_max: 2, line_bytes_max: 4 };
    let capped = |pattern| query(pattern).with_caps(caps);
    let found = find(capped("two|nothing"), "").await;
    assert_eq!(found.files.len(), 2);
    assert_eq!(found.truncated, Some(Truncation::Matches));
    assert_eq!(find(capped("deep|none"), "").await.truncated, None);
    assert_eq!(find(capped("three|one"), "").await.truncated, None);
    let cut = lines_of("aaéé\naaaa\nmatch", capped("a")).await;
    assert_eq!(cut[0]["snippet"], "aaé…");
    assert_eq!(
        cut[0]["matching_lines"],
        json!([{"line_number": 1, "line": "aaé…"}, {"line_number": 2, "line": "aaaa"}])
    );
}

#[test]
fn refusals_are_file_29() {
    let unsupported = "Invalid regex pattern: look-around and back-references are not supported.";
    for pattern in [
        "(?=a)",
        "(?!a)",
        "(?<=a)",
        "(?<!a)",
        r"(a)\1",
        r"(?P<n>a)(?P=n)",
        r"(?<n>a)\k<n>",
        r"(a)\g{1}",
    ] {
        assert_eq!(refusal(pattern), unsupported, "{pattern}");
    }
    let too_long =
        "Regex pattern is too long (257 characters). Maximum supported length is 256 characters.";
    assert_eq!(refusal(&"é".repeat(257)), too_long);
    assert!(SearchQuery::new(&"é".repeat(256), true).is_ok());
    assert_eq!(refusal("("), "Invalid regex pattern: unclosed group");
    for pattern in [r"\p{Nothing}", "a{2,1}", "[b-a]", r"\y", "(?z)", "((a{100}){100}){100}"] {
        let text = refusal(pattern);
        assert!(
            text.starts_with("Invalid regex pattern: ") && text != unsupported,
            "{pattern}: {text}"
        );
        assert!(!text.contains('\n'), "{text}");
    }
    let glob = query("a").with_glob(Some("{{}}")).unwrap_err();
    assert_eq!(glob.to_string(), "Invalid glob pattern: braces must not be nested.");
}

#[tokio::test]
async fn long_texts_are_searched_as_well() {
    let text = format!("{}\nmatch\n", "aaaa\n".repeat(100_000));
    let lines = lines_of(&text, query("^(a|aa)+b|match$")).await;
    assert_eq!(lines[0]["matching_lines"].as_array().unwrap().len(), 1);
}

/// Returns whether a search for `pattern` finds a file with `content`.
async fn is_found(content: Vec<u8>, pattern: &str) -> bool {
    let large = Quota { bytes_max: u64::MAX, file_bytes_max: u64::MAX, ..Quota::default() };
    let store: Arc<dyn FileStore> = Arc::new(MemoryStore::new(large));
    store.write(&StorePath::file("f").unwrap(), content, WriteMode::Create).await.unwrap();
    let results = search(&store, &StorePath::ROOT, &query(pattern)).await.unwrap();
    !results.files.is_empty()
}

#[tokio::test]
async fn a_file_that_turns_out_not_to_be_text_is_passed_over_as_a_whole() {
    let text = format!("match\n{}", "some words\n".repeat(60_000)).into_bytes();
    assert!(is_found(text.clone(), "match").await);
    assert!(!is_found([text, b"\xff".to_vec()].concat(), "match").await);
    assert!(!is_found(b"match\n\xff".to_vec(), "match").await);
}

#[tokio::test]
async fn a_file_with_a_line_that_is_too_long_is_passed_over_as_a_whole() {
    let with_line = |bytes: usize| [&b"match\n"[..], &vec![b' '; bytes], b"\nend"].concat();
    assert!(is_found(with_line(file::LINE_BYTES_MAX), "match").await);
    assert!(is_found(with_line(file::LINE_BYTES_MAX), "^ +$").await);
    assert!(!is_found(with_line(file::LINE_BYTES_MAX + 1), "match").await);
}

#[tokio::test]
async fn files_with_a_line_that_is_too_long_are_named() {
    let large = Quota { bytes_max: u64::MAX, file_bytes_max: u64::MAX, ..Quota::default() };
    let store: Arc<dyn FileStore> = Arc::new(MemoryStore::new(large));
    let long = vec![b' '; file::LINE_BYTES_MAX + 1];
    let end = [&b"match\n"[..], &long].concat();
    let binary = [&b"\xff"[..], &long].concat();
    for (name, content) in [
        ("in/a/first", long),
        ("in/end", end),
        ("in/binary", binary),
        ("in/short", b"match".to_vec()),
    ] {
        let path = StorePath::file(name).unwrap();
        store.write(&path, content, WriteMode::Create).await.unwrap();
    }
    let directory = StorePath::directory("in").unwrap();
    let results = search(&store, &directory, &query("match")).await.unwrap();
    assert_eq!(results.files.len(), 1);
    let named: Vec<_> = results.not_shown.names.iter().collect();
    let paths = named.iter().map(|name| (name.directory.as_str(), name.name.as_str()));
    assert_eq!(paths.collect::<Vec<_>>(), [("a", "first"), ("", "end")]);
    assert_eq!(named[0].reason, "a line has more than 8388608 bytes");
    assert_eq!(results.not_shown.count, 2);
}

/// A short pattern that stands for a very long one.
const SLOW: &str = "(?:a?){60000}!b";

#[tokio::test]
async fn lines_that_take_too_long_to_be_searched_are_too_long() {
    let most = pattern::compile(SLOW, false).unwrap().bytes_at_a_time();
    let with_line = |bytes: usize| format!("!b\n{}", "!".repeat(bytes)).into_bytes();
    assert!(is_found(with_line(most), SLOW).await);
    assert!(!is_found(with_line(most + 1), SLOW).await);
    assert!(is_found(with_line(most + 1), "!b").await);
}

#[tokio::test]
async fn a_search_for_a_slow_pattern_ends_soon_after_it_was_given_up() {
    let store = Arc::new(MemoryStore::default());
    // Would take an hour to search.
    let text = "ab\n".repeat(1 << 20).into_bytes();
    store.write(&StorePath::file("f").unwrap(), text, WriteMode::Create).await.unwrap();
    let searched: Arc<dyn FileStore> = store.clone();
    let query = query(SLOW);
    let root = StorePath::ROOT;
    let search = search(&searched, &root, &query);
    tokio::time::timeout(std::time::Duration::from_millis(100), search).await.unwrap_err();
    drop(searched);
    let given_up = std::time::Instant::now();
    // The running search holds a reference to the store.
    while Arc::strong_count(&store) > 1 {
        assert!(given_up.elapsed().as_secs() < 60, "the search goes on");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_snippet_may_span_the_parts_in_which_a_file_is_read() {
    let part_bytes = 256 * 1024;
    for before in [part_bytes - 30, part_bytes - 8, part_bytes - 6, part_bytes] {
        let text =
            format!("{}é\nMATCH\n{}", "1234567\n".repeat(before / 8), "ü\n".repeat(part_bytes));
        let found = lines_of(&text, query("match")).await;
        let (before, _) = text.split_once("MATCH").unwrap();
        let before: Vec<_> = before.chars().rev().take(50).collect();
        let before: String = before.into_iter().rev().collect();
        assert_eq!(
            found[0]["snippet"],
            format!("{before}MATCH\n{}", "ü\n".repeat(50).chars().take(49).collect::<String>())
        );
    }
}

#[tokio::test]
async fn several_threads_find_what_one_does() {
    let store = MemoryStore::default();
    for number in 0..300 {
        let content = format!("line\n{}", "match\n".repeat(number % 7));
        let path = StorePath::file(&format!("d{}/{number}", number % 5)).unwrap();
        store.write(&path, content.into(), WriteMode::Create).await.unwrap();
    }
    let store: Arc<dyn FileStore> = Arc::new(store);
    for matches_max in [0, 1, 100, 500, 10_000] {
        let query = query("match").with_caps(SearchCaps { matches_max, ..SearchCaps::default() });
        let several = search(&store, &StorePath::ROOT, &query).await.unwrap();
        // Without a runtime there is one thread, and operations on a store in memory never wait.
        let (store, query) = (Arc::clone(&store), query.clone());
        let one = std::thread::spawn(move || {
            let root = StorePath::ROOT;
            let mut search = Box::pin(search(&store, &root, &query));
            match search.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(results) => results.unwrap(),
                Poll::Pending => panic!("a search in memory waits"),
            }
        });
        assert_eq!(several, one.join().unwrap(), "{matches_max}");
        let lines: usize = several.files.iter().map(|file| file.matching_lines.len()).sum();
        assert_eq!(lines as u64, matches_max.min(897));
        assert_eq!(several.truncated, (matches_max < 897).then_some(Truncation::Matches));
    }
}

/// Environment variable that marks the child process of the next test, which is the measured one.
const MEASURED: &str = "COFFERDAM_SEARCHED_DIRECTORY";

#[cfg(target_os = "linux")]
#[test]
fn a_line_of_a_gigabyte_takes_neither_memory_nor_time() {
    if let Some(directory) = std::env::var_os(MEASURED) {
        return print_peak_of_search(directory.as_ref());
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("z"), "match").unwrap();
    for name in ["a", "b", "c", "d"] {
        std::fs::File::create(directory.path().join(name)).unwrap().set_len(1 << 30).unwrap();
    }
    let name = "search::tests::a_line_of_a_gigabyte_takes_neither_memory_nor_time";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(MEASURED, directory.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib < 200 * 1024, "the search took {kib} KiB");
}

/// Prints the peak memory of this process after a search.
#[cfg(target_os = "linux")]
fn print_peak_of_search(directory: &std::path::Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = DirectoryStore::open_ambient(directory, DirectoryOptions::default()).unwrap();
    let store: Arc<dyn FileStore> = Arc::new(store);
    let results = runtime.block_on(search(&store, &StorePath::ROOT, &query("match|\0"))).unwrap();
    let names: Vec<_> = results.files.iter().map(|file| file.file_name.as_str()).collect();
    assert_eq!(names, ["z"]);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    println!("\n{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap());
}
