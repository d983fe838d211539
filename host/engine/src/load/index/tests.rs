//! What is believed of what was known, and everything that is not.

#![cfg(unix)]

use std::fs;
use std::time::{Duration, SystemTime};

use cofferdam_tool::{Asked, Declaration, KeptAsked, KeptTool};
use tempfile::TempDir;

use super::*;
use crate::cache::CacheKey;

const MADE_BY: &[&[u8]] = &[b"this program"];

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

    fn paths(&self) -> Vec<PathBuf> {
        ["a.wasm", "b.wasm"].map(|name| self.root.path().join(name)).into()
    }

    fn known(&self) -> Known {
        Known::read(&self.cache, MADE_BY, &self.paths())
    }

    /// The one entry of the cache.
    fn entry(&self) -> PathBuf {
        let entries = fs::read_dir(self.cache.directory()).unwrap().map(|entry| entry.unwrap().path());
        let mut entries = entries.filter(|path| path.extension().is_some_and(|ending| ending == "known"));
        let entry = entries.next().expect("an entry");
        assert_eq!(entries.next(), None);
        entry
    }

    /// A cache that knows `record` at the first place.
    fn with(record: &Record) -> Self {
        let fixture = Self::new();
        let known = fixture.known();
        known.keep(0, record);
        known.set_seal(Some([5; 32]));
        known.save();
        assert_eq!(fixture.known().record(0).as_ref(), Some(record));
        fixture
    }

    fn check_nothing_is_known(&self) {
        let known = self.known();
        assert_eq!((known.record(0), known.record(1), known.seal()), (None, None, None));
    }
}

fn record() -> Record {
    let file = |number| FileIdentity::numbered(number);
    let declaration =
        Declaration::new("echo", "Says it again.", r#"{"properties":{"text":{"type":"string"}}}"#);
    let definition = declaration.compile().unwrap();
    Record {
        files: ComponentFiles::of(file(1), Some(file(2))),
        is_counting: false,
        digest: [7; 32],
        component_bytes: 1234,
        imports: "wasi:io/poll@0.2.6\nwasi:cli/exit@0.2.6".to_owned(),
        asked: KeptAsked::new(&Asked::Stated(Box::default())).unwrap(),
        icons: vec!["data:,".to_owned()],
        tools: vec![KeptTool::new(&declaration, &definition)],
    }
}

#[test]
fn what_was_kept_is_known_at_the_next_start() {
    let fixture = Fixture::with(&record());
    let known = fixture.known();
    assert_eq!(known.record(0), Some(record()));
    assert_eq!(known.record(1), None, "it was never loaded");
    assert_eq!(known.record(2), None, "there is no such place");
    assert_eq!(known.seal(), Some([5; 32]));
}

#[test]
fn a_second_component_leaves_the_first_as_it_is() {
    let fixture = Fixture::with(&record());
    let other = Record { digest: [8; 32], ..record() };
    let known = fixture.known();
    known.keep_same(0);
    known.keep(1, &other);
    known.save();
    let known = fixture.known();
    assert_eq!((known.record(0), known.record(1)), (Some(record()), Some(other)));
}

#[test]
fn what_is_not_used_any_more_is_forgotten_with_the_next_change() {
    let fixture = Fixture::with(&record());
    let known = fixture.known();
    known.keep(1, &record());
    known.save();
    let known = fixture.known();
    assert_eq!((known.record(0), known.record(1)), (None, Some(record())));
}

#[test]
fn nothing_is_written_when_nothing_is_new() {
    let fixture = Fixture::with(&record());
    let past = SystemTime::now() - Duration::from_secs(100);
    fs::File::options().write(true).open(fixture.entry()).unwrap().set_modified(past).unwrap();
    let known = fixture.known();
    known.keep_same(0);
    known.save();
    assert_eq!(fixture.entry().metadata().unwrap().modified().unwrap(), past);
    known.set_seal(None);
    known.save();
    assert_ne!(fixture.entry().metadata().unwrap().modified().unwrap(), past, "a seal is something new");
}

#[test]
fn other_components_and_another_program_know_nothing_of_it() {
    let fixture = Fixture::with(&record());
    let mut turned = fixture.paths();
    turned.reverse();
    let more: Vec<_> = fixture.paths().into_iter().chain([PathBuf::from("c")]).collect();
    for (made_by, paths) in [
        (MADE_BY, turned),
        (MADE_BY, more),
        (MADE_BY, Vec::new()),
        (&[b"another program".as_slice()] as &[&[u8]], fixture.paths()),
    ] {
        assert_eq!(Known::read(&fixture.cache, made_by, &paths).record(0), None);
    }
}

#[test]
fn an_entry_that_was_changed_or_cut_anywhere_is_ignored() {
    let whole = Fixture::with(&record());
    let (name, bytes) = (whole.entry(), fs::read(whole.entry()).unwrap());
    for length in 0..bytes.len() {
        fs::write(&name, &bytes[..length]).unwrap();
        whole.check_nothing_is_known();
    }
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        fs::write(&name, &changed).unwrap();
        set_private(&name);
        whole.check_nothing_is_known();
    }
    fs::write(&name, &bytes).unwrap();
    set_private(&name);
    assert_eq!(whole.known().record(0), Some(record()), "it was the changes");
}

fn set_private(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn an_entry_of_another_installation_is_ignored() {
    let (ours, theirs) = (Fixture::new(), Fixture::with(&record()));
    let name = theirs.entry().file_name().unwrap().to_owned();
    // The same paths, another key.
    let known = Known::read(&theirs.cache, MADE_BY, &ours.paths());
    known.keep(0, &record());
    known.save();
    for entry in fs::read_dir(theirs.cache.directory()).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_name() != "key" && entry.file_name() != name {
            fs::copy(entry.path(), ours.cache.directory().join(entry.file_name())).unwrap();
        }
    }
    assert!(ours.entry().is_file());
    ours.check_nothing_is_known();
}

#[test]
fn contents_that_are_proven_and_make_no_sense_are_nothing() {
    // Nobody can write such an entry; reading it must not end the process all the same.
    let fixture = Fixture::new();
    let known = fixture.known();
    let key = known.kept.as_ref().unwrap().key;
    let bytes = postcard::to_allocvec(&Contents { seal: None, records: vec![&[1, 2, 3], &[]] }).unwrap();
    for contents in
        [&b""[..], b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x00\xff\xff\xff\x0f", &bytes]
    {
        fixture.cache.put(&key, EntryKind::Known, contents).unwrap();
        fixture.check_nothing_is_known();
    }
    let record = record().bytes().unwrap();
    for length in 0..record.len() {
        assert_eq!(Record::read(&record[..length]), None);
    }
}

#[test]
fn without_a_cache_nothing_is_kept() {
    let known = Known::nothing();
    known.keep(0, &record());
    known.keep_same(0);
    known.set_seal(Some([1; 32]));
    known.save();
    assert_eq!((known.record(0), known.is_kept(), known.places()), (None, false, 0));
}

#[test]
fn every_change_of_a_file_gives_another_identity() {
    let root = tempfile::tempdir().unwrap();
    let (path, other) = (root.path().join("file"), root.path().join("other"));
    fs::write(&path, "first").unwrap();
    let modified = path.metadata().unwrap().modified().unwrap();
    let before = FileIdentity::of_ambient(&path).unwrap();
    assert_eq!(FileIdentity::of_ambient(&path), Some(before));

    // Times are as coarse as a tick of the system, which is why young files are not believed.
    std::thread::sleep(Duration::from_millis(50));
    // The same length and the same time of the change: what `touch -r` can do.
    fs::write(&path, "other").unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    let rewritten = FileIdentity::of_ambient(&path).unwrap();
    assert_ne!(rewritten, before);

    fs::write(&other, "third").unwrap();
    fs::File::options().write(true).open(&other).unwrap().set_modified(modified).unwrap();
    fs::rename(&other, &path).unwrap();
    assert_ne!(FileIdentity::of_ambient(&path), Some(rewritten), "another file of the same length and time");

    fs::remove_file(&path).unwrap();
    assert_eq!(FileIdentity::of_any_ambient(&path), Some(None));
    fs::create_dir(&path).unwrap();
    assert_eq!((FileIdentity::of_ambient(&path), FileIdentity::of_any_ambient(&path)), (None, None));
}

#[test]
fn a_file_that_was_just_changed_is_not_settled() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("file");
    fs::write(&path, "x").unwrap();
    // The time that a person can set is not the one that counts.
    let past = SystemTime::now() - Duration::from_secs(1000);
    fs::File::options().write(true).open(&path).unwrap().set_modified(past).unwrap();
    assert!(!FileIdentity::of_ambient(&path).unwrap().is_settled());
    assert_eq!(seal_with_file(&path, &[]), None);
    assert!(FileIdentity::numbered(1).is_settled(), "it is as old as can be");
    let tomorrow = i64::try_from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs());
    assert!(!FileIdentity::numbered(tomorrow.unwrap() + 86_400).is_settled());
}

#[test]
fn seals_differ_by_file_and_by_every_part() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let seal = |parts: &[&[u8]]| seal_with_file(&file, parts);
    let (one, other) = (seal(&[b"a", b"b"]), seal(&[b"ab"]));
    assert!(one.is_some());
    assert_ne!(one, other);
    assert_eq!(one, seal(&[b"a", b"b"]));
    assert_eq!(seal_with_file(Path::new("/no/such/file"), &[]), None);
    assert_ne!(one, Some(CacheKey::new(&[b"a", b"b"]).into_bytes()));
}
