//! Calls the tools on the repository in `tests/data`, whole and damaged.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use cofferdam_sdk::{json, testing};

use crate::repository::Repository;
use crate::tools::{blame, diff, grep, log, read_file, references, show};

const POEMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/poems.git");

fn subjects(arguments: &[(&str, &str)]) -> Vec<String> {
    let mut all = json!({"repository": POEMS});
    for (key, value) in arguments {
        all[key] = json!(value);
    }
    let log = testing::call::<log::git_log>(all).unwrap();
    let commits = log["commits"].as_array().unwrap();
    commits.iter().map(|commit| commit["subject"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn history_is_listed_newest_first() {
    let all = [
        "Finish the poem",
        "Rename a poem",
        "Merge sugar",
        "Call a line a verse",
        "Add sugar",
        "Add a program",
        "Add poems",
    ];
    assert_eq!(subjects(&[]), all);
    assert_eq!(subjects(&[("revision", "v1.0")]), &all[5..]);
    assert_eq!(subjects(&[("revision", "v1.0..main")]), &all[..5]);
    assert_eq!(subjects(&[("path", "poems/long.txt")]), ["Call a line a verse", "Add poems"]);
    assert_eq!(subjects(&[("author", "GRACE"), ("message", "sugar")]), ["Add sugar"]);
    assert_eq!(subjects(&[("since", "2026-02-01T16:30:00+01:00")]), &all[..1]);
    assert_eq!(subjects(&[("until", "2026-01-31")]), Vec::<String>::new());
}

#[test]
fn revisions_are_resolved() {
    let repository = Repository::open(POEMS).unwrap();
    let subject = |revision| match repository.resolve(revision) {
        Ok(commit) => commit.subject().to_owned(),
        Err(failure) => failure.message().to_owned(),
    };
    for (revision, expected) in [
        ("@", "Finish the poem"),
        ("refs/heads/sugar", "Add sugar"),
        ("v1.0^{commit}~1", "Add poems"),
        ("main~2^2", "Add sugar"),
        ("main^^^1^", "Add a program"),
        ("c6c844d", "Rename a poem"),
        ("main~9", "`main~9` goes back behind 239a9c7fe0bf, the first commit"),
        ("main^2", "`main^2` goes back behind 7b251f1c0160, which has one parent"),
        ("master", "there is no branch, tag or commit `master`"),
        ("main@{1}", "`main@{1}` is not a revision that this tool understands"),
        ("main...sugar", "`main...sugar` has three dots, which this tool does not support"),
        ("main~x", "`main~x` is not a revision that this tool understands"),
        ("../../main", "`../../main` is not a revision that this tool understands"),
        ("", "there is no branch, tag or commit ``"),
    ] {
        assert_eq!(subject(revision), expected, "{revision}");
    }
    let failure = repository.resolve("master").unwrap_err();
    assert_eq!(failure.suggested(), Some("there are `main`, `sugar`, `v1.0`"));
}

#[test]
fn lines_are_attributed_across_merges_and_renames() {
    let arguments = json!({"repository": POEMS, "path": "poems/roses.txt"});
    let blame = testing::call::<blame::git_blame>(arguments).unwrap();
    let hunks: Vec<_> = blame["hunks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hunk| format!("{}{}:{}", hunk["subject"], hunk["path"], hunk["text"]))
        .collect();
    assert_eq!(
        hunks,
        [
            r#""Add poems""poems/short.txt":"roses are red\n""#,
            r#""Rename a poem"null:"grapes are blue\n""#,
            r#""Add sugar""poems/short.txt":"sugar is sweet\n""#,
            r#""Finish the poem"null:"and so are you\n""#,
        ]
    );
}

#[test]
fn a_range_of_lines_is_attributed() {
    let arguments = json!({
        "repository": POEMS, "path": "poems/long.txt", "first_line": 29, "last_line": 60, "count": 2
    });
    let blame = testing::call::<blame::git_blame>(arguments).unwrap();
    assert_eq!((&blame["lines"], &blame["truncated"]), (&json!(60), &json!(true)));
    assert_eq!(blame["hunks"][0]["line"], 29);
    assert_eq!(blame["hunks"][1]["subject"], "Call a line a verse");
}

#[test]
fn renames_and_binary_files_are_in_a_diff() {
    let arguments = json!({"repository": POEMS, "from": "main~5", "context": 0});
    let diff = testing::call::<diff::git_diff>(arguments).unwrap();
    let files: Vec<_> = diff["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| format!("{} {} {}", file["path"], file["status"], file["note"]))
        .collect();
    assert_eq!(
        files,
        [
            r#""latest" "added" null"#,
            r#""logo.gif" "added" "binary or larger than 2 MiB""#,
            r#""poems/long.txt" "modified" null"#,
            r#""poems/roses.txt" "added" null"#,
            r#""poems/short.txt" "deleted" null"#,
            r#""src/main.rs" "added" null"#,
        ]
    );
}

#[test]
fn a_commit_shows_its_changes() {
    let shown = testing::call::<show::git_show>(json!({"repository": POEMS, "revision": "main~1"}));
    let changes = &shown.unwrap()["changes"];
    assert_eq!(changes["files"][0]["old_path"], "poems/short.txt");
    assert_eq!(
        changes["diff"],
        "--- a/poems/short.txt\n+++ b/poems/roses.txt\n@@ -1,3 +1,3 @@\n roses are red\n\
         -violets are blue\n+grapes are blue\n sugar is sweet\n"
    );
}

#[test]
fn long_lists_of_files_are_cut() {
    let folder = Temporary::new("many");
    copy(Path::new(POEMS), &folder.0);
    let write = |name: &str, content: &[u8]| write_object(&folder.0, name, content);
    let (tree, commit, file) = ("aa".repeat(20), "bb".repeat(20), "cc".repeat(20));
    let entry = |number| [format!("100644 file {number:040}\0").as_bytes(), &[0xcc; 20]].concat();
    let entries = (0..2500).flat_map(entry).collect::<Vec<_>>();
    write(&file, b"blob 5\0poem\n");
    write(&tree, &[format!("tree {}\0", entries.len()).as_bytes(), &entries].concat());
    let text = format!("tree {tree}\nauthor A <a@b> 1700000000 +0000\n\nMany\n");
    write(&commit, format!("commit {}\0{text}", text.len()).as_bytes());

    let show = |max_bytes: usize| {
        let arguments = json!({"repository": folder.0, "revision": commit, "max_bytes": max_bytes});
        testing::call::<show::git_show>(arguments).unwrap()["changes"].take()
    };
    for max_bytes in [0, 32 << 10, 64 << 10] {
        let changes = show(max_bytes);
        let files = changes["files"].as_array().unwrap().len();
        assert_eq!(changes["more_files"], 2500 - files);
        assert_eq!(changes["truncated"], true);
        let expected = max_bytes.max(32 << 10);
        let found = changes.to_string().len();
        assert!(found > expected / 2 && found < expected + (12 << 10), "{max_bytes}: {found}");
        assert_eq!(changes["diff"] == "", max_bytes == 0);
    }
    assert_eq!(show(512 << 10)["files"].as_array().unwrap().len(), 1000);
}

/// Writes an object. Its name is not checked against its content.
fn write_object(repository: &Path, name: &str, content: &[u8]) {
    let (start, rest) = name.split_at(2);
    let file = repository.join("objects").join(start).join(rest);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, deflate(content)).unwrap();
}

#[test]
fn lines_are_attributed_across_a_rename_of_many_files() {
    const FILES: u8 = 50;
    let folder = Temporary::new("renames");
    copy(Path::new(POEMS), &folder.0);
    let write = |name: &str, kind: &str, content: &[u8]| {
        let header = format!("{kind} {}\0", content.len());
        write_object(&folder.0, name, &[header.as_bytes(), content].concat());
    };
    let id = |byte: u8, number: u8| [&[byte; 19][..], &[number]].concat();
    let hex = |id: &[u8]| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    for (version, directory) in [(0xa0, "old"), (0xb0, "new")] {
        let mut entries = Vec::new();
        for number in 0..FILES {
            let added = if directory == "new" { "added\n" } else { "" };
            let text = format!("one of {number}\ntwo of {number}\nthree of {number}\n{added}");
            write(&hex(&id(version, number)), "blob", text.as_bytes());
            entries.extend(format!("100644 {number:02}\0").into_bytes());
            entries.extend(id(version, number));
        }
        write(&hex(&id(version, 100)), "tree", &entries);
        let root = [format!("40000 {directory}\0").as_bytes(), &id(version, 100)].concat();
        write(&hex(&id(version, 101)), "tree", &root);
        let tree = hex(&id(version, 101));
        let (parent, time) = match directory {
            "new" => (format!("parent {}\n", hex(&id(0xa0, 102))), 1_700_000_001),
            _ => (String::new(), 1_700_000_000),
        };
        let commit = format!("tree {tree}\n{parent}author A <a@b> {time} +0000\n\n{directory}\n");
        write(&hex(&id(version, 102)), "commit", commit.as_bytes());
    }
    let revision = hex(&id(0xb0, 102));
    let arguments = json!({"repository": folder.0, "path": "new/07", "revision": revision});
    let blame = testing::call::<blame::git_blame>(arguments).unwrap();
    let hunks: Vec<_> = blame["hunks"].as_array().unwrap().iter().collect();
    let origins: Vec<_> = hunks.iter().map(|it| (&it["subject"], &it["path"])).collect();
    assert_eq!(origins, [(&json!("old"), &json!("old/07")), (&json!("new"), &json!(null))]);
    assert_eq!(blame["incomplete"], false);
    let shown =
        testing::call::<show::git_show>(json!({"repository": folder.0, "revision": revision}));
    let changes = &shown.unwrap()["changes"];
    assert_eq!(changes["files"][0]["status"], "added");
    assert_eq!(
        changes["note"],
        "renames with changes were not looked for: more than 40 files were added or deleted"
    );
}

#[test]
fn any_commit_can_be_searched_and_read() {
    let arguments = json!({"repository": POEMS, "pattern": "^(roses|fn) ", "revision": "sugar"});
    let found = testing::call::<grep::git_grep>(arguments).unwrap();
    assert_eq!((&found["files"], &found["skipped"]), (&json!(3), &json!(1)));
    assert_eq!(found["matches"][0]["path"], "poems/short.txt");
    assert_eq!(found["matches"][1]["line"], 1);
    let arguments = json!({"repository": POEMS, "path": "/poems/long.txt", "max_bytes": 30});
    let read = testing::call::<read_file::git_read_file>(arguments).unwrap();
    assert_eq!(read["text"], "line 1 of a long poem\n");
}

#[test]
fn branches_and_tags_are_listed() {
    let listed = testing::call::<references::git_references>(json!({"repository": POEMS}));
    let listed = listed.unwrap();
    assert_eq!(listed["head"], "main");
    assert_eq!(listed["branches"][1]["subject"], "Add sugar");
    assert_eq!(listed["tags"][0]["subject"], "First version");
}

#[test]
fn other_directories_are_explained() {
    let message = |path: &Path| Repository::open(path.to_str().unwrap()).err().unwrap().to_string();
    let folder = Temporary::new("formats");
    fs::write(folder.0.join(".git"), "gitdir: /home/ada/poems/.git/worktrees/a\n").unwrap();
    assert!(message(&folder.0).ends_with(
        "is a linked worktree or a submodule, whose repository is at \
         `/home/ada/poems/.git/worktrees/a`; ask for `/home/ada/poems/.git` to be mounted, and \
         pass its mount as `repository`"
    ));
    fs::remove_file(folder.0.join(".git")).unwrap();
    assert!(message(Path::new("poems.git")).starts_with("`poems.git` is a relative path"));
    assert!(message(Path::new("/nonesuch")).starts_with("there is no `/nonesuch`"));
    copy(Path::new(POEMS), &folder.0.join("bare"));
    assert!(message(&folder.0).contains("pass one of these repositories"));
    fs::write(folder.0.join("bare/config"), "[extensions]\n\tobjectFormat = sha256\n").unwrap();
    assert!(message(&folder.0.join("bare")).contains("another kind than SHA-1"));
}

/// Every tool returns something for a repository with any bytes.
#[test]
fn damage_is_no_panic() {
    let folder = Temporary::new("damage");
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move |limit: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % limit.max(1) as u64).unwrap()
    };
    let mut files = Vec::new();
    list(Path::new(POEMS), &mut files);
    copy(Path::new(POEMS), &folder.0);
    let path = folder.0.to_str().unwrap();
    for round in 0..200 {
        let file = &files[next(files.len())];
        let target = folder.0.join(file.strip_prefix(POEMS).unwrap());
        let original = fs::read(file).unwrap();
        // The content of an object is changed in every second round, its compressed form otherwise.
        let is_loose =
            file.parent().is_some_and(|it| it.file_name().is_some_and(|it| it.len() == 2));
        let inflates = is_loose && round % 2 == 0;
        let mut damaged = if inflates { inflate(&original) } else { original.clone() };
        match round % 4 {
            0 => damaged.truncate(next(original.len())),
            _ => {
                for _ in 0..=next(3) {
                    let at = next(damaged.len());
                    damaged[at] = next(256) as u8;
                }
            }
        }
        let damaged = if inflates { deflate(&damaged) } else { damaged };
        fs::write(&target, damaged).unwrap();
        let repository = json!({"repository": path});
        let with = |key: &str, value: &str| json!({"repository": path, key: value});
        let _ = testing::call::<log::git_log>(with("path", "poems"));
        let _ = testing::call::<references::git_references>(repository.clone());
        let _ = testing::call::<show::git_show>(repository);
        let _ = testing::call::<diff::git_diff>(with("from", "sugar"));
        let _ = testing::call::<grep::git_grep>(with("pattern", "e"));
        let _ = testing::call::<blame::git_blame>(with("path", "poems/roses.txt"));
        fs::write(&target, original).unwrap();
    }
    assert!(
        testing::call::<blame::git_blame>(json!({"repository": path, "path": "poems/roses.txt"}))
            .is_ok()
    );
}

fn inflate(data: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    flate2::read::ZlibDecoder::new(data).read_to_end(&mut content).unwrap();
    content
}

fn deflate(content: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    flate2::read::ZlibEncoder::new(content, flate2::Compression::fast())
        .read_to_end(&mut data)
        .unwrap();
    data
}

/// Directory that is removed at the end of a test.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("cofferdam-git-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            list(&entry.path(), files);
        } else {
            files.push(entry.path());
        }
    }
}

fn copy(from: &Path, to: &Path) {
    let mut files = Vec::new();
    list(from, &mut files);
    for file in files {
        let target = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&file, &target).unwrap();
    }
}
