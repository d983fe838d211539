//! Valid indexes are read, and all others are ignored.

#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use cofferdam_tool::declaration::{Declaration, SerializedTool};
use cofferdam_tool::permission::{RequestedPermissions, SerializedPermissions};
use tempfile::TempDir;

use super::*;
use crate::cache::CacheKey;
use crate::command::CommandTools;

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

    fn index(&self) -> StartupIndex {
        StartupIndex::read(&self.cache, MADE_BY, &self.paths())
    }

    /// Returns the path of the only cache entry.
    fn entry(&self) -> PathBuf {
        let entries =
            fs::read_dir(self.cache.directory()).unwrap().map(|entry| entry.unwrap().path());
        let mut entries =
            entries.filter(|path| path.extension().is_some_and(|ending| ending == "known"));
        let entry = entries.next().expect("an entry");
        assert_eq!(entries.next(), None);
        entry
    }

    /// Creates a cache whose index has `record` at the first position.
    fn with(record: &ComponentRecord) -> Self {
        let fixture = Self::new();
        let index = fixture.index();
        index.replace(0, record);
        index.set_approval(Some(Approval::from_bytes([5; 32])));
        index.save();
        assert_eq!(fixture.index().record(0).as_ref(), Some(record));
        fixture
    }

    fn check_is_empty(&self) {
        let index = self.index();
        assert_eq!((index.record(0), index.record(1), index.saved_approval()), (None, None, None));
    }
}

fn record() -> ComponentRecord {
    let file = |number| FileIdentity::numbered(number);
    let declaration =
        Declaration::new("echo", "Says it again.", r#"{"properties":{"text":{"type":"string"}}}"#);
    let definition = declaration.compile().unwrap();
    ComponentRecord {
        files: ComponentFiles::of(file(1), Some(file(2))),
        is_counting: false,
        digest: [7; 32],
        component_bytes: 1234,
        imports: "wasi:io/poll@0.2.6\nwasi:cli/exit@0.2.6".to_owned(),
        asked: SerializedPermissions::new(&RequestedPermissions::Stated(Box::default())).unwrap(),
        icons: vec!["data:,".to_owned()],
        commands: CommandTools::new(),
        tools: vec![SerializedTool::new(&declaration, &definition)],
    }
}

#[test]
fn a_saved_record_is_there_at_the_next_start() {
    let fixture = Fixture::with(&record());
    let index = fixture.index();
    assert_eq!(index.record(0), Some(record()));
    assert_eq!(index.record(1), None, "it was never loaded");
    assert_eq!(index.record(2), None, "there is no such position");
    assert_eq!(index.saved_approval(), Some(Approval::from_bytes([5; 32])));
}

#[test]
fn a_second_component_does_not_change_the_first() {
    let fixture = Fixture::with(&record());
    let other = ComponentRecord { digest: [8; 32], ..record() };
    let index = fixture.index();
    index.retain(0);
    index.replace(1, &other);
    index.save();
    let index = fixture.index();
    assert_eq!((index.record(0), index.record(1)), (Some(record()), Some(other)));
}

#[test]
fn a_record_that_is_not_used_is_left_out_of_the_next_index() {
    let fixture = Fixture::with(&record());
    let index = fixture.index();
    index.replace(1, &record());
    index.save();
    let index = fixture.index();
    assert_eq!((index.record(0), index.record(1)), (None, Some(record())));
}

#[test]
fn nothing_is_written_when_nothing_is_new() {
    let fixture = Fixture::with(&record());
    let past = SystemTime::now() - Duration::from_secs(100);
    fs::File::options().write(true).open(fixture.entry()).unwrap().set_modified(past).unwrap();
    let index = fixture.index();
    index.retain(0);
    index.save();
    assert_eq!(fixture.entry().metadata().unwrap().modified().unwrap(), past);
    index.set_approval(None);
    index.save();
    assert_ne!(
        fixture.entry().metadata().unwrap().modified().unwrap(),
        past,
        "an approval is something new"
    );
}

#[test]
fn other_components_and_another_program_have_another_index() {
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
        assert_eq!(StartupIndex::read(&fixture.cache, made_by, &paths).record(0), None);
    }
}

#[test]
fn an_entry_that_was_changed_or_cut_anywhere_is_ignored() {
    let whole = Fixture::with(&record());
    let (name, bytes) = (whole.entry(), fs::read(whole.entry()).unwrap());
    for length in 0..bytes.len() {
        fs::write(&name, &bytes[..length]).unwrap();
        whole.check_is_empty();
    }
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        fs::write(&name, &changed).unwrap();
        set_private(&name);
        whole.check_is_empty();
    }
    fs::write(&name, &bytes).unwrap();
    set_private(&name);
    assert_eq!(whole.index().record(0), Some(record()), "it was the changes");
}

fn set_private(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn an_entry_of_another_installation_is_ignored() {
    let (ours, theirs) = (Fixture::new(), Fixture::with(&record()));
    let name = theirs.entry().file_name().unwrap().to_owned();
    // Same paths, but a different key.
    let index = StartupIndex::read(&theirs.cache, MADE_BY, &ours.paths());
    index.replace(0, &record());
    index.save();
    for entry in fs::read_dir(theirs.cache.directory()).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_name() != "key" && entry.file_name() != name {
            fs::copy(entry.path(), ours.cache.directory().join(entry.file_name())).unwrap();
        }
    }
    assert!(ours.entry().is_file());
    ours.check_is_empty();
}

#[test]
fn contents_that_are_proven_and_make_no_sense_are_nothing() {
    // Only the key's owner can write such an entry; still, reading it must not end the process.
    let fixture = Fixture::new();
    let index = fixture.index();
    let key = index.saved.as_ref().unwrap().key;
    let bytes =
        postcard::to_allocvec(&IndexContents { approval: None, records: vec![&[1, 2, 3], &[]] })
            .unwrap();
    for contents in
        [&b""[..], b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x00\xff\xff\xff\x0f", &bytes]
    {
        fixture.cache.put(&key, EntryKind::Index, contents).unwrap();
        fixture.check_is_empty();
    }
    let record = record().to_bytes().unwrap();
    for length in 0..record.len() {
        assert_eq!(ComponentRecord::read(&record[..length]), None);
    }
}

#[test]
fn without_a_cache_nothing_is_saved() {
    let index = StartupIndex::disabled();
    index.replace(0, &record());
    index.retain(0);
    index.set_approval(Some(Approval::from_bytes([1; 32])));
    index.save();
    assert_eq!((index.record(0), index.is_enabled(), index.len()), (None, false, 0));
}

#[test]
fn every_change_of_a_file_gives_another_identity() {
    let root = tempfile::tempdir().unwrap();
    let (path, other) = (root.path().join("file"), root.path().join("other"));
    fs::write(&path, "first").unwrap();
    let modified = path.metadata().unwrap().modified().unwrap();
    let before = FileIdentity::of_ambient(&path).unwrap();
    assert_eq!(FileIdentity::of_ambient(&path), Some(before));

    // Times are as coarse as a tick of the system, which is why recently changed files are not
    // trusted.
    std::thread::sleep(Duration::from_millis(50));
    // Same length and modification time, as after `touch -r`.
    fs::write(&path, "other").unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    let rewritten = FileIdentity::of_ambient(&path).unwrap();
    assert_ne!(rewritten, before);

    fs::write(&other, "third").unwrap();
    fs::File::options().write(true).open(&other).unwrap().set_modified(modified).unwrap();
    fs::rename(&other, &path).unwrap();
    assert_ne!(
        FileIdentity::of_ambient(&path),
        Some(rewritten),
        "another file of the same length and time"
    );

    fs::remove_file(&path).unwrap();
    assert_eq!(FileIdentity::of_any_ambient(&path), Some(None));
    fs::create_dir(&path).unwrap();
    assert_eq!(
        (FileIdentity::of_ambient(&path), FileIdentity::of_any_ambient(&path)),
        (None, None)
    );
}

#[test]
fn a_file_that_was_just_changed_is_not_quiescent() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("file");
    fs::write(&path, "x").unwrap();
    // The modification time, which users can set, is not the relevant one.
    let past = SystemTime::now() - Duration::from_secs(1000);
    fs::File::options().write(true).open(&path).unwrap().set_modified(past).unwrap();
    assert!(!FileIdentity::of_ambient(&path).unwrap().is_quiescent());
    assert_eq!(Approval::of_file_ambient(&path, &[]), None);
    assert!(FileIdentity::numbered(1).is_quiescent(), "it is as old as can be");
    let tomorrow =
        i64::try_from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs());
    assert!(!FileIdentity::numbered(tomorrow.unwrap() + 86_400).is_quiescent());
}

#[test]
fn approvals_differ_by_file_and_by_every_part() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let approval = |parts: &[&[u8]]| Approval::of_file_ambient(&file, parts);
    let (one, other) = (approval(&[b"a", b"b"]), approval(&[b"ab"]));
    assert!(one.is_some());
    assert_ne!(one, other);
    assert_eq!(one, approval(&[b"a", b"b"]));
    assert_eq!(Approval::of_file_ambient(Path::new("/no/such/file"), &[]), None);
    assert_ne!(one, Some(Approval::from_bytes(CacheKey::new(&[b"a", b"b"]).into_bytes())));
}
