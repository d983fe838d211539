//! Entries that the cache returns, and entries that it must reject.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::process::Command;
use std::sync::Barrier;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::*;

/// Environment variable for a child process of the race test: the cache that it opens, and the name
/// of the entry that it writes.
const CHILD_DIRECTORY: &str = "COFFERDAM_TEST_CACHE";
const CHILD_ENTRY: &str = "COFFERDAM_TEST_ENTRY";

struct Fixture {
    root: TempDir,
    cache: Cache,
}

impl Fixture {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::open_ambient(&root.path().join("cache")).unwrap();
        Self { root, cache }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.cache.directory().join(name)
    }

    fn entry(&self, key: &CacheKey) -> PathBuf {
        self.file(&entry::name(key, EntryKind::Code))
    }

    /// Checks that the entry is rejected for `reason` and then gone.
    fn check_rejected(&self, key: &CacheKey, reason: &str) {
        match self.cache.get(key, EntryKind::Code) {
            Lookup::Rejected(rejection) => assert_eq!(rejection.to_string(), reason),
            other => panic!("{other:?}"),
        }
        assert!(self.entry(key).symlink_metadata().is_err(), "the entry is still there");
        assert_eq!(self.cache.get(key, EntryKind::Code), Lookup::Miss);
    }
}

fn key(name: &str) -> CacheKey {
    CacheKey::new(&[name.as_bytes()])
}

fn hit(bytes: &[u8]) -> Lookup {
    Lookup::Hit(bytes.to_vec())
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o7777
}

fn open_error(path: &Path) -> String {
    Cache::open_ambient(path).unwrap_err().to_string()
}

#[test]
fn what_was_put_is_got() {
    let fixture = Fixture::new();
    assert_eq!(fixture.cache.get(&key("a"), EntryKind::Code), Lookup::Miss);
    for contents in [&b"first"[..], b"", &[7; 100_000]] {
        fixture.cache.put(&key("a"), EntryKind::Code, contents).unwrap();
        assert_eq!(fixture.cache.get(&key("a"), EntryKind::Code), hit(contents));
    }
    assert_eq!(fixture.cache.get(&key("a"), EntryKind::Description), Lookup::Miss);
    assert_eq!(fixture.cache.get(&key("b"), EntryKind::Code), Lookup::Miss);
}

#[test]
fn an_entry_outlives_the_process() {
    let fixture = Fixture::new();
    fixture.cache.put(&key("a"), EntryKind::Description, b"x").unwrap();
    let again = Cache::open_ambient(fixture.cache.directory()).unwrap();
    assert_eq!(again.get(&key("a"), EntryKind::Description), hit(b"x"));
}

#[test]
fn everything_is_private_and_nothing_is_left_over() {
    let fixture = Fixture::new();
    fixture.cache.put(&key("a"), EntryKind::Code, b"x").unwrap();
    assert_eq!(mode(fixture.cache.directory()), 0o700);
    let mut names: Vec<_> =
        fs::read_dir(fixture.cache.directory()).unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    let mut expected = [fixture.entry(&key("a")), fixture.file("key")];
    expected.sort();
    assert_eq!(names, expected);
    assert!(names.iter().all(|path| mode(path) == 0o600));
}

#[test]
fn the_directory_is_named_without_links() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("real")).unwrap();
    symlink(root.path().join("real"), root.path().join("alias")).unwrap();
    let cache = Cache::open_ambient(&root.path().join("alias/deep/cache/")).unwrap();
    assert_eq!(cache.directory(), root.path().canonicalize().unwrap().join("real/deep/cache"));
}

#[test]
fn every_flipped_bit_is_noticed() {
    let fixture = Fixture::new();
    fixture.cache.put(&key("a"), EntryKind::Code, b"code").unwrap();
    let good = fs::read(fixture.entry(&key("a"))).unwrap();
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        fixture.cache.put(&key("a"), EntryKind::Code, b"").unwrap();
        fs::write(fixture.entry(&key("a")), bad).unwrap();
        let reason = if bit < 64 {
            "of an unknown format"
        } else {
            "not authentic: its code does not match its contents, name and key"
        };
        fixture.check_rejected(&key("a"), reason);
    }
}

#[test]
fn every_other_length_is_noticed() {
    let fixture = Fixture::new();
    fixture.cache.put(&key("a"), EntryKind::Code, b"code").unwrap();
    let good = fs::read(fixture.entry(&key("a"))).unwrap();
    for length in (0..good.len()).chain([good.len() + 1, good.len() + 100]) {
        let mut bad = good.clone();
        bad.resize(length, 0);
        fixture.cache.put(&key("a"), EntryKind::Code, b"").unwrap();
        fs::write(fixture.entry(&key("a")), bad).unwrap();
        let reason = match length {
            0..40 => format!("cut short ({length} bytes)"),
            _ => Rejection::NotAuthentic.to_string(),
        };
        fixture.check_rejected(&key("a"), &reason);
    }
}

#[test]
fn entries_cannot_stand_in_for_one_another() {
    let fixture = Fixture::new();
    let reason = Rejection::NotAuthentic.to_string();
    fixture.cache.put(&key("a"), EntryKind::Code, b"a").unwrap();
    fs::copy(fixture.entry(&key("a")), fixture.entry(&key("b"))).unwrap();
    fixture.check_rejected(&key("b"), &reason);

    fixture.cache.put(&key("c"), EntryKind::Description, b"a").unwrap();
    let description = fixture.file(&entry::name(&key("c"), EntryKind::Description));
    fs::rename(description, fixture.entry(&key("c"))).unwrap();
    fixture.check_rejected(&key("c"), &reason);
    assert_eq!(fixture.cache.get(&key("a"), EntryKind::Code), hit(b"a"));
}

#[test]
fn an_entry_of_another_installation_is_rejected() {
    let (fixture, other) = (Fixture::new(), Fixture::new());
    other.cache.put(&key("a"), EntryKind::Code, b"theirs").unwrap();
    fixture.cache.put(&key("a"), EntryKind::Code, b"ours").unwrap();
    fs::copy(other.entry(&key("a")), fixture.entry(&key("a"))).unwrap();
    fixture.check_rejected(&key("a"), &Rejection::NotAuthentic.to_string());
}

#[test]
fn a_lost_key_means_new_entries() {
    let fixture = Fixture::new();
    fixture.cache.put(&key("a"), EntryKind::Code, b"old").unwrap();
    let before = fs::read(fixture.file("key")).unwrap();
    fs::remove_file(fixture.file("key")).unwrap();
    let cache = Cache::open_ambient(fixture.cache.directory()).unwrap();
    assert_ne!(fs::read(fixture.file("key")).unwrap(), before);
    assert_eq!(cache.get(&key("a"), EntryKind::Code), Lookup::Rejected(Rejection::NotAuthentic));
    cache.put(&key("a"), EntryKind::Code, b"new").unwrap();
    assert_eq!(cache.get(&key("a"), EntryKind::Code), hit(b"new"));
}

#[test]
fn an_entry_that_others_can_reach_is_rejected() {
    let fixture = Fixture::new();
    for (bits, shown) in [(0o640, "640"), (0o606, "606"), (0o610, "610")] {
        fixture.cache.put(&key("a"), EntryKind::Code, b"x").unwrap();
        set_mode(&fixture.entry(&key("a")), bits);
        fixture.check_rejected(&key("a"), &format!("open to others (mode {shown})"));
    }
}

#[test]
fn an_entry_of_another_user_is_rejected() {
    let fixture = Fixture::new();
    fixture.cache.put(&key("a"), EntryKind::Code, b"x").unwrap();
    // Only root can change the owner of a file; otherwise the test of the directory covers the
    // check of the owner.
    if std::os::unix::fs::chown(fixture.entry(&key("a")), Some(12_345), None).is_ok() {
        fixture.check_rejected(&key("a"), "owned by user 12345");
    }
}

#[test]
fn an_entry_that_is_no_file_is_rejected() {
    let fixture = Fixture::new();
    let target = fixture.root.path().join("target");
    fixture.cache.put(&key("a"), EntryKind::Code, b"x").unwrap();
    fs::rename(fixture.entry(&key("a")), &target).unwrap();
    symlink(&target, fixture.entry(&key("a"))).unwrap();
    fixture.check_rejected(&key("a"), "a link");
    assert!(target.exists(), "only the link is removed");

    assert!(
        Command::new("mkfifo")
            .args(["-m", "600"])
            .arg(fixture.entry(&key("a")))
            .status()
            .unwrap()
            .success()
    );
    fixture.check_rejected(&key("a"), "not of the right file type");

    drop(std::os::unix::net::UnixListener::bind(fixture.entry(&key("s"))).unwrap());
    fixture.check_rejected(&key("s"), "not of the right file type");

    fs::create_dir(fixture.entry(&key("d"))).unwrap();
    assert!(matches!(fixture.cache.get(&key("d"), EntryKind::Code), Lookup::Rejected(_)));
    let error = fixture.cache.put(&key("d"), EntryKind::Code, b"x").unwrap_err();
    let expected = format!(
        "cannot write an entry into the cache directory `{}`",
        fixture.cache.directory().display()
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(
        fs::read_dir(fixture.cache.directory()).unwrap().count(),
        2,
        "the key and the directory"
    );
}

#[test]
fn lengths_are_limited_before_anything_is_read() {
    let fixture = Fixture::new();
    let path = fixture.entry(&key("a"));
    fixture.cache.put(&key("a"), EntryKind::Code, b"x").unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    fixture.check_rejected(&key("a"), "too large (1099511627776 bytes)");

    let contents = vec![0; 16 * 1024 * 1024 + 1];
    let error = fixture.cache.put(&key("a"), EntryKind::Description, &contents).unwrap_err();
    assert_eq!(
        error.to_string(),
        "an entry of 16777217 bytes is too large for the cache; the limit is 16777216"
    );
}

#[test]
fn a_directory_that_others_can_reach_is_refused() {
    let fixture = Fixture::new();
    let path = fixture.cache.directory();
    let shown = path.display();
    for (bits, mode) in [(0o755, "755"), (0o770, "770"), (0o1777, "1777"), (0o701, "701")] {
        set_mode(path, bits);
        let expected = format!(
            "the cache directory `{shown}` is open to others (mode {mode}); run `chmod 700 \
             '{shown}'`"
        );
        assert_eq!(open_error(path), expected);
    }
    set_mode(path, 0o700);
    assert!(Cache::open_ambient(path).is_ok());
}

#[test]
fn a_directory_that_is_a_link_is_refused() {
    let fixture = Fixture::new();
    let link = fixture.root.path().join("link");
    symlink(fixture.cache.directory(), &link).unwrap();
    let expected = format!(
        "the cache directory `{}` is a link; name the directory that it points to",
        link.display()
    );
    assert_eq!(open_error(&link), expected);
    assert_eq!(open_error(&link.join("")), expected, "with a slash at the end");
    assert_eq!(open_error(&link.join(".")), expected, "with a dot at the end");
}

#[test]
fn a_directory_of_another_user_is_refused() {
    let fixture = Fixture::new();
    let path = fixture.cache.directory();
    if std::os::unix::fs::chown(path, Some(12_345), None).is_ok() {
        let expected = format!(
            "the cache directory `{}` is owned by user 12345; name a directory of your own",
            path.display()
        );
        assert_eq!(open_error(path), expected);
    }
}

#[test]
fn a_file_is_no_directory() {
    let fixture = Fixture::new();
    let path = fixture.file("key");
    assert_eq!(open_error(&path), format!("cannot open the cache directory `{}`", path.display()));
}

#[test]
fn a_key_that_is_not_ours_alone_is_refused() {
    let fixture = Fixture::new();
    let path = fixture.file("key");
    let shown = path.display();
    set_mode(&path, 0o644);
    assert_eq!(
        open_error(fixture.cache.directory()),
        format!(
            "the cache key `{shown}` is open to others (mode 644); delete it if others may have read it, else run \
             `chmod 600 '{shown}'`"
        )
    );
    fs::rename(&path, fixture.root.path().join("elsewhere")).unwrap();
    symlink(fixture.root.path().join("elsewhere"), &path).unwrap();
    assert_eq!(
        open_error(fixture.cache.directory()),
        format!("the cache key `{shown}` is a link; delete it to get a new one")
    );
}

#[test]
fn a_key_of_another_length_is_refused() {
    let fixture = Fixture::new();
    let path = fixture.file("key");
    for (length, reason) in
        [(0, "cut short (0 bytes)"), (31, "cut short (31 bytes)"), (33, "too large (33 bytes)")]
    {
        fs::write(&path, vec![1; length]).unwrap();
        assert_eq!(
            open_error(fixture.cache.directory()),
            format!("the cache key `{}` is {reason}; delete it to get a new one", path.display())
        );
    }
}

#[test]
fn swapping_the_directory_changes_nothing() {
    let fixture = Fixture::new();
    fixture.cache.put(&key("a"), EntryKind::Code, b"x").unwrap();
    fs::rename(fixture.cache.directory(), fixture.root.path().join("moved")).unwrap();
    fs::create_dir(fixture.root.path().join("cache")).unwrap();
    assert_eq!(fixture.cache.get(&key("a"), EntryKind::Code), hit(b"x"));
}

#[test]
fn a_directory_that_cannot_be_written_is_an_error_and_no_loss() {
    let fixture = Fixture::new();
    fixture.cache.put(&key("a"), EntryKind::Code, b"x").unwrap();
    fs::remove_dir_all(fixture.cache.directory()).unwrap();
    assert!(matches!(
        fixture.cache.put(&key("b"), EntryKind::Code, b"x"),
        Err(CacheError::Io { .. })
    ));
    assert_eq!(fixture.cache.get(&key("a"), EntryKind::Code), Lookup::Miss);
}

#[test]
fn keys_keep_their_parts_apart() {
    let keys = [
        CacheKey::new(&[]),
        CacheKey::new(&[b""]),
        CacheKey::new(&[b"", b""]),
        CacheKey::new(&[b"ab"]),
        CacheKey::new(&[b"a", b"b"]),
        CacheKey::new(&[b"b", b"a"]),
        CacheKey::new(&[b"ab", b""]),
        CacheKey::new(&[b"a\x01\0\0\0\0\0\0\0b"]),
    ];
    for (index, one) in keys.iter().enumerate() {
        assert!(keys.iter().skip(index + 1).all(|other| one != other), "{index}");
    }
    assert_eq!(CacheKey::new(&[b"a", b"b"]), keys[4]);
    assert!(format!("{:?}", keys[0]).starts_with("CacheKey("));
}

#[test]
fn the_key_is_not_in_the_debug_text() {
    let fixture = Fixture::new();
    let expected = format!("Cache {{ directory: {:?}, .. }}", fixture.cache.directory());
    assert_eq!(format!("{:?}", fixture.cache), expected);
}

#[test]
fn pruning_removes_the_oldest_first() {
    let fixture = Fixture::new();
    let now = SystemTime::now();
    let set_age = |path: &Path, hours: u64| {
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        file.set_modified(now - Duration::from_secs(hours * 3600)).unwrap();
    };
    for (name, hours) in [("old", 30), ("older", 40), ("new", 0)] {
        fixture.cache.put(&key(name), EntryKind::Code, &[0; 60]).unwrap();
        set_age(&fixture.entry(&key(name)), hours);
    }
    for (name, hours) in [(".tmp-0", 0), (".tmp-1", 2), ("foreign", 90)] {
        fs::write(fixture.file(name), b"12345").unwrap();
        set_age(&fixture.file(name), hours);
    }
    let pruned = fixture.cache.prune(300).unwrap();
    assert_eq!(pruned, PruneReport { files: 1, bytes: 5, bytes_left: 300 }, "the abandoned file");
    let pruned = fixture.cache.prune(200).unwrap();
    assert_eq!(pruned, PruneReport { files: 1, bytes: 100, bytes_left: 200 });
    assert_eq!(fixture.cache.get(&key("older"), EntryKind::Code), Lookup::Miss);
    assert_eq!(fixture.cache.get(&key("old"), EntryKind::Code), hit(&[0; 60]));
    assert_eq!(
        fixture.cache.prune(0).unwrap(),
        PruneReport { files: 2, bytes: 200, bytes_left: 0 }
    );
    assert!(
        fixture.file("key").exists()
            && fixture.file("foreign").exists()
            && fixture.file(".tmp-0").exists()
    );
}

#[test]
fn threads_share_a_cache_without_seeing_halves() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("cache");
    let start = Barrier::new(8);
    std::thread::scope(|scope| {
        for thread in 0..8_u8 {
            let (start, path) = (&start, &path);
            scope.spawn(move || {
                start.wait();
                // All threads create the directory and its key at once, and agree on the key.
                let cache = Cache::open_ambient(path).unwrap();
                for round in 0..40_usize {
                    let contents = vec![thread; 1000 * (round % 7 + 1)];
                    cache.put(&key("shared"), EntryKind::Code, &contents).unwrap();
                    match cache.get(&key("shared"), EntryKind::Code) {
                        Lookup::Hit(bytes) => assert!(bytes.iter().all(|byte| *byte == bytes[0])),
                        other => panic!("{other:?}"),
                    }
                }
            });
        }
    });
    assert_eq!(fs::read_dir(&path).unwrap().count(), 2, "the key and one entry");
}

#[test]
fn processes_that_race_for_the_key_agree() {
    let root = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let path = root.path().join(format!("cache-{round}"));
        let entries = ["0", "1", "2", "3"];
        let children: Vec<_> =
            entries.iter().map(|entry| child(&path, entry).spawn().unwrap()).collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        // The entries of all children are authentic under the one remaining key.
        let cache = Cache::open_ambient(&path).unwrap();
        for entry in entries {
            assert_eq!(cache.get(&key(entry), EntryKind::Code), hit(entry.as_bytes()));
        }
        assert_eq!(fs::read_dir(&path).unwrap().count(), 5, "the key and the entries");
    }
}

fn child(path: &Path, entry: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let (_, module) = module_path!().split_once("::").unwrap();
    command
        .args(["--exact", &format!("{module}::a_child_of_the_race")])
        .env(CHILD_DIRECTORY, path)
        .env(CHILD_ENTRY, entry);
    command.stdout(std::process::Stdio::null());
    command
}

/// Does nothing unless [`processes_that_race_for_the_key_agree`] runs it.
#[test]
fn a_child_of_the_race() {
    let Some(path) = std::env::var_os(CHILD_DIRECTORY) else { return };
    let cache = Cache::open_ambient(Path::new(&path)).unwrap();
    let entry = std::env::var(CHILD_ENTRY).unwrap();
    cache.put(&key(&entry), EntryKind::Code, entry.as_bytes()).unwrap();
}

#[test]
fn a_check_changes_nothing_and_rejects_what_opening_rejects() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("cache");
    assert!(matches!(check_ambient(&path), Err(CacheError::Io { .. })));
    assert!(!path.exists());
    fs::create_dir(&path).unwrap();
    set_mode(&path, 0o700);
    check_ambient(&path).unwrap();
    assert_eq!(fs::read_dir(&path).unwrap().count(), 0, "no key is made");
    Cache::open_ambient(&path).unwrap();
    check_ambient(&path).unwrap();
    set_mode(&path.join("key"), 0o644);
    assert_eq!(check_ambient(&path).unwrap_err().to_string(), open_error(&path));
    set_mode(&path, 0o755);
    assert_eq!(check_ambient(&path).unwrap_err().to_string(), open_error(&path));
}
