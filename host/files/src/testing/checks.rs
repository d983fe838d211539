//! Checks of the suite.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Check, Mismatch, expect};
use crate::{
    Budget, EntryKind, FileError, FileStore, MadeDirectory, Overlay, Scope, StorePath, WriteMode,
};

type Store = Arc<dyn FileStore>;
type Checked = Result<(), Mismatch>;

macro_rules! all {
    ($($name:ident),* $(,)?) => {
        /// All checks, in the order of the file.
        pub(super) const ALL: &[Check] =
            &[$(Check { name: stringify!($name), run: |store| Box::pin($name(store)) }),*];
    };
}

all![
    a_fresh_store_is_an_empty_directory,
    content_is_preserved_byte_for_byte,
    a_read_is_whole_or_refused,
    a_range_ends_with_the_file,
    what_is_not_a_file_is_not_found,
    names_are_case_sensitive,
    create_refuses_what_is_there,
    replace_replaces_the_whole_content,
    a_name_is_a_file_or_a_directory,
    saving_creates_parents_that_stay,
    deleting_works_on_files_only,
    creating_a_directory_says_whether_it_was_there,
    a_directory_is_not_created_on_or_below_a_file,
    listings_are_sorted,
    listings_of_nothing_are_empty,
    a_listing_holds_what_is_below_and_nothing_beside,
    quotas_are_checked_in_order,
    every_quota_is_the_largest_that_passes,
    replacing_gives_the_old_bytes_back,
    deleting_gives_room_back,
    an_empty_directory_can_be_removed,
    a_rename_moves_everything,
    a_rename_replaces_what_fits,
    a_rename_that_cannot_be_changes_nothing,
    a_rename_is_held_to_the_depth,
    room_counts_files_and_directories,
    versions_tell_states_apart,
    a_commit_is_all_that_a_call_did,
    a_dropped_overlay_leaves_no_trace,
    a_prepared_commit_is_made_or_dropped,
    the_first_to_commit_wins,
    directories_count_as_entries,
    a_refused_change_changes_nothing,
    one_of_many_creators_succeeds,
    readers_see_whole_contents,
];

async fn a_fresh_store_is_an_empty_directory(store: Store) -> Checked {
    expect("root", stat(&store, "").await, Ok("directory 0".into()))?;
    expect("listing", list(&store, "", Scope::Recursive).await, Ok(String::new()))
}

async fn content_is_preserved_byte_for_byte(store: Store) -> Checked {
    for content in [&b""[..], b"\xef\xbb\xbfa\r\nb\n", b"\xff\x00\xfe"] {
        expect("write", replace(&store, "a", content).await, Ok(()))?;
        expect("read", read(&store, "a").await, Ok(content.to_vec()))?;
        let size = format!("file {}", content.len());
        expect("stat", stat(&store, "a").await, Ok(size))?;
    }
    Ok(())
}

async fn a_read_is_whole_or_refused(store: Store) -> Checked {
    expect("write", create(&store, "a", b"12345").await, Ok(()))?;
    expect("exact", text(store.read(&path("a"), 5).await), Ok(b"12345".to_vec()))?;
    let refused = "it is 5 bytes long; one read returns at most 4 bytes.".to_owned();
    expect("short", text(store.read(&path("a"), 4).await), Err(refused))
}

async fn a_range_ends_with_the_file(store: Store) -> Checked {
    expect("write", create(&store, "a", b"12345").await, Ok(()))?;
    let ranges: [(u64, u64, &[u8]); 7] = [
        (0, 5, b"12345"),
        (1, 3, b"234"),
        (3, 9, b"45"),
        (5, 1, b""),
        (2, 0, b""),
        (u64::MAX, 1, b""),
        (1, u64::MAX, b"2345"),
    ];
    for (offset, length, expected) in ranges {
        let found = text(store.read_range(&path("a"), offset, length).await);
        expect(&format!("{length} from {offset}"), found, Ok(expected.to_vec()))?;
    }
    Ok(())
}

async fn what_is_not_a_file_is_not_found(store: Store) -> Checked {
    expect("write", create(&store, "d/a", b"x").await, Ok(()))?;
    for name in ["missing", "d", "d/a/below", "d/missing", "missing/a"] {
        expect(name, read(&store, name).await, not_found())?;
        let range = text(store.read_range(&path(name), 0, 1).await);
        expect(name, range, not_found())?;
    }
    for name in ["missing", "d/a/below", "missing/a"] {
        expect(name, stat(&store, name).await, not_found())?;
    }
    expect("root", text(store.read(&StorePath::ROOT, 9).await), not_found())
}

async fn names_are_case_sensitive(store: Store) -> Checked {
    expect("write", create(&store, "a", b"small").await, Ok(()))?;
    expect("read", read(&store, "A").await, not_found())?;
    expect("write", create(&store, "A", b"large").await, Ok(()))?;
    expect("read", read(&store, "a").await, Ok(b"small".to_vec()))
}

async fn create_refuses_what_is_there(store: Store) -> Checked {
    expect("first", create(&store, "d/a", b"1").await, Ok(()))?;
    let second = store.write(&path("d/a"), b"2".to_vec(), WriteMode::Create).await;
    expect("second", matches!(second, Err(FileError::AlreadyExists)), true)?;
    expect("content", read(&store, "d/a").await, Ok(b"1".to_vec()))
}

async fn replace_replaces_the_whole_content(store: Store) -> Checked {
    for content in ["", "long content", "short"] {
        expect("write", replace(&store, "a", content.as_bytes()).await, Ok(()))?;
        expect("read", read(&store, "a").await, Ok(content.into()))?;
    }
    Ok(())
}

async fn a_name_is_a_file_or_a_directory(store: Store) -> Checked {
    expect("write", create(&store, "d/a", b"x").await, Ok(()))?;
    let directory =
        Err("this path is already a directory. Choose a different file name.".to_owned());
    let below = Err("a parent path is already a file. Choose a different path.".to_owned());
    for mode in [WriteMode::Create, WriteMode::Replace] {
        let write = async |at| text(store.write(&at, Vec::new(), mode).await);
        expect("root", write(StorePath::ROOT).await, directory.clone())?;
        expect("directory", write(path("d")).await, directory.clone())?;
        expect("below a file", write(path("d/a/b")).await, below.clone())?;
        expect("further below", write(path("d/a/b/c")).await, below.clone())?;
    }
    expect("listing", list(&store, "", Scope::Recursive).await, Ok("d/ d/a".into()))
}

async fn saving_creates_parents_that_stay(store: Store) -> Checked {
    expect("write", create(&store, "x/y/a", b"x").await, Ok(()))?;
    expect("delete", delete(&store, "x/y/a").await, Ok(()))?;
    expect("listing", list(&store, "", Scope::Recursive).await, Ok("x/ x/y/".into()))
}

async fn deleting_works_on_files_only(store: Store) -> Checked {
    expect("write", create(&store, "d/a", b"x").await, Ok(()))?;
    for name in ["d", "missing", "d/a/b", "missing/a"] {
        expect(name, delete(&store, name).await, not_found())?;
    }
    expect("root", text(store.delete(&StorePath::ROOT).await), not_found())?;
    expect("delete", delete(&store, "d/a").await, Ok(()))?;
    expect("again", delete(&store, "d/a").await, not_found())
}

async fn creating_a_directory_says_whether_it_was_there(store: Store) -> Checked {
    expect("root", create_directory(&store, "").await, Ok(MadeDirectory::Existed))?;
    expect("new", create_directory(&store, "x/y").await, Ok(MadeDirectory::Created))?;
    expect("again", create_directory(&store, "x/y").await, Ok(MadeDirectory::Existed))?;
    expect("parent", create_directory(&store, "x").await, Ok(MadeDirectory::Existed))
}

async fn a_directory_is_not_created_on_or_below_a_file(store: Store) -> Checked {
    expect("write", create(&store, "d/a", b"x").await, Ok(()))?;
    let on = Err("this path is already a file. Choose a different name.".to_owned());
    let below = Err("a parent path is already a file. Choose a different path.".to_owned());
    expect("on", create_directory(&store, "d/a").await, on)?;
    expect("below", create_directory(&store, "d/a/b").await, below.clone())?;
    expect("further", create_directory(&store, "d/a/b/c").await, below)
}

async fn listings_are_sorted(store: Store) -> Checked {
    for name in ["é", "b", "a!", "a/b", "B"] {
        expect(name, create(&store, name, b"").await, Ok(()))?;
    }
    expect("directory", create_directory(&store, "z").await, Ok(MadeDirectory::Created))?;
    expect("children", list(&store, "", Scope::Children).await, Ok("a/ z/ B a! b é".into()))?;
    expect("all", list(&store, "", Scope::Recursive).await, Ok("a/ z/ B a! a/b b é".into()))
}

async fn listings_of_nothing_are_empty(store: Store) -> Checked {
    expect("write", create(&store, "a", b"x").await, Ok(()))?;
    for name in ["missing", "a", "a/b", "missing/b"] {
        for scope in [Scope::Children, Scope::Recursive] {
            expect(name, list(&store, name, scope).await, Ok(String::new()))?;
        }
    }
    Ok(())
}

async fn a_listing_holds_what_is_below_and_nothing_beside(store: Store) -> Checked {
    for name in ["d/x/a", "d!", "d0/a", "d/b"] {
        expect(name, create(&store, name, b"").await, Ok(()))?;
    }
    expect("children", list(&store, "d", Scope::Children).await, Ok("x/ b".into()))?;
    expect("all", list(&store, "d", Scope::Recursive).await, Ok("x/ b x/a".into()))
}

const TOO_DEEP: &str = "the path is nested deeper than the limit of 4 levels.";
const TOO_LARGE: &str = "the file would be larger than the limit of 32 bytes.";
const TOO_MANY: &str = "the store's limit of 8 files and directories would be exceeded.";
const TOO_FULL: &str = "the store's limit of 64 bytes would be exceeded.";

async fn quotas_are_checked_in_order(store: Store) -> Checked {
    for name in ["a", "b", "c", "d", "e", "f"] {
        expect(name, create(&store, name, &[b'x'; 10]).await, Ok(()))?;
    }
    let refusals = [
        ("1/2/3/4/5", 33, TOO_DEEP),
        ("1/2/3/4", 33, TOO_LARGE),
        ("1/2/3", 5, TOO_MANY),
        ("1", 5, TOO_FULL),
    ];
    for (name, bytes, text) in refusals {
        expect(name, create(&store, name, &vec![b'x'; bytes]).await, Err(text.to_owned()))?;
    }
    let existing = store.write(&path("a"), vec![b'x'; 33], WriteMode::Create).await;
    expect("existence comes first", matches!(existing, Err(FileError::AlreadyExists)), true)?;
    let below = "a parent path is already a file. Choose a different path.".to_owned();
    expect("the path comes first", create(&store, "a/2/3/4/5", b"").await, Err(below))
}

async fn every_quota_is_the_largest_that_passes(store: Store) -> Checked {
    expect("depth and size", create(&store, "1/2/3/4", &[b'x'; 32]).await, Ok(()))?;
    expect("bytes", create(&store, "a", &[b'x'; 32]).await, Ok(()))?;
    expect("one byte more", create(&store, "b", b"x").await, Err(TOO_FULL.to_owned()))?;
    for name in ["b", "c", "d"] {
        expect(name, create(&store, name, b"").await, Ok(()))?;
    }
    expect("one entry more", create(&store, "e", b"").await, Err(TOO_MANY.to_owned()))
}

async fn replacing_gives_the_old_bytes_back(store: Store) -> Checked {
    for name in ["a", "b"] {
        expect(name, create(&store, name, &[b'x'; 32]).await, Ok(()))?;
        expect(name, replace(&store, name, &[b'y'; 32]).await, Ok(()))?;
    }
    expect("shrink", replace(&store, "a", &[b'y'; 31]).await, Ok(()))?;
    expect("room", create(&store, "c", b"12").await, Err(TOO_FULL.to_owned()))?;
    expect("room", create(&store, "c", b"1").await, Ok(()))
}

async fn deleting_gives_room_back(store: Store) -> Checked {
    for name in ["a", "b"] {
        expect(name, create(&store, name, &[b'x'; 32]).await, Ok(()))?;
    }
    expect("full", create(&store, "c", b"1").await, Err(TOO_FULL.to_owned()))?;
    expect("delete", delete(&store, "a").await, Ok(()))?;
    expect("room", create(&store, "c", &[b'x'; 32]).await, Ok(()))
}

async fn an_empty_directory_can_be_removed(store: Store) -> Checked {
    expect("write", create(&store, "d/e/a", b"x").await, Ok(()))?;
    expect("full", remove(&store, "d/e").await, Err("this directory is not empty.".into()))?;
    expect(
        "file",
        remove(&store, "d/e/a").await,
        Err("this path is a file and not a directory.".into()),
    )?;
    expect("missing", remove(&store, "d/x").await, not_found())?;
    expect("below a file", remove(&store, "d/e/a/b").await, not_found())?;
    expect("root", remove(&store, "").await, Err(ROOT.into()))?;
    expect("delete", delete(&store, "d/e/a").await, Ok(()))?;
    expect("empty", remove(&store, "d/e").await, Ok(()))?;
    expect("listing", list(&store, "", Scope::Recursive).await, Ok("d/".into()))?;
    for name in ["1", "2", "3", "4", "5", "6", "7"] {
        expect(name, create(&store, name, b"").await, Ok(()))?;
    }
    Ok(())
}

const ROOT: &str = "the root directory cannot be moved, replaced or removed.";

async fn a_rename_moves_everything(store: Store) -> Checked {
    expect("write", create(&store, "d/e/a", b"x").await, Ok(()))?;
    expect("write", create(&store, "d!", b"y").await, Ok(()))?;
    expect("file", rename(&store, "d/e/a", "d/e/b").await, Ok(()))?;
    expect("directory", rename(&store, "d", "z").await, Ok(()))?;
    expect("upwards", rename(&store, "z/e", "e").await, Ok(()))?;
    expect("onto itself", rename(&store, "e", "e").await, Ok(()))?;
    expect("listing", list(&store, "", Scope::Recursive).await, Ok("e/ z/ d! e/b".into()))?;
    expect("content", read(&store, "e/b").await, Ok(b"x".to_vec()))?;
    expect("gone", stat(&store, "d").await, not_found())
}

async fn a_rename_replaces_what_fits(store: Store) -> Checked {
    expect("write", create(&store, "a", &[1; 32]).await, Ok(()))?;
    expect("write", create(&store, "b", &[2; 32]).await, Ok(()))?;
    expect("file", rename(&store, "a", "b").await, Ok(()))?;
    expect("content", read(&store, "b").await, Ok(vec![1; 32]))?;
    expect("room", create(&store, "d/a", &[3; 32]).await, Ok(()))?;
    expect("empty", create_directory(&store, "e").await, Ok(MadeDirectory::Created))?;
    expect("directory", rename(&store, "d", "e").await, Ok(()))?;
    expect("listing", list(&store, "", Scope::Recursive).await, Ok("e/ b e/a".into()))
}

async fn a_rename_that_cannot_be_changes_nothing(store: Store) -> Checked {
    expect("write", create(&store, "d/a", b"x").await, Ok(()))?;
    expect("write", create(&store, "e/b", b"y").await, Ok(()))?;
    let directory = "this path is already a directory. Choose a different file name.";
    let file = "this path is already a file. Choose a different name.";
    let below = "a parent path is already a file. Choose a different path.";
    let refusals = [
        ("missing", "x", "not found"),
        ("d/a/b", "x", "not found"),
        ("d/a", "x/y", "not found"),
        ("d/a", "e/b/c", below),
        ("d/a", "d/a/c", below),
        ("d/a", "e", directory),
        ("d", "e/b", file),
        ("d", "e", "this directory is not empty."),
        ("d", "d/c", "a directory cannot be moved into itself."),
        ("", "x", ROOT),
        ("d", "", ROOT),
    ];
    for (from, to, text) in refusals {
        expect(&format!("{from} to {to}"), rename(&store, from, to).await, Err(text.to_owned()))?;
    }
    expect("listing", list(&store, "", Scope::Recursive).await, Ok("d/ e/ d/a e/b".into()))
}

async fn a_rename_is_held_to_the_depth(store: Store) -> Checked {
    expect("write", create(&store, "d/e/a", b"x").await, Ok(()))?;
    expect("deep", create_directory(&store, "1/2").await, Ok(MadeDirectory::Created))?;
    expect("too deep", rename(&store, "d", "1/2/d").await, Err(TOO_DEEP.to_owned()))?;
    expect("deepest", rename(&store, "d", "1/d").await, Ok(()))?;
    expect("file", rename(&store, "1/d/e/a", "1/2/a").await, Ok(()))
}

async fn room_counts_files_and_directories(store: Store) -> Checked {
    expect("write", create(&store, "d/a", b"12345").await, Ok(()))?;
    expect("write", create(&store, "b", b"1").await, Ok(()))?;
    let room = text(store.room().await).map_err(Mismatch)?;
    expect("usage", (room.usage.entries, room.usage.bytes), (3, 6))?;
    expect("quota", room.quota, super::QUOTA)
}

async fn versions_tell_states_apart(store: Store) -> Checked {
    let version = async |at| text(store.stat(&path(at)).await).map(|stat| stat.version);
    expect("write", create(&store, "d/a", b"1").await, Ok(()))?;
    let (file, directory) = (version("d/a").await, version("d").await);
    expect("write", create(&store, "d/b", b"1").await, Ok(()))?;
    expect("the same file", version("d/a").await, file.clone())?;
    expect("the same directory", version("d").await, directory)?;
    expect("replace", replace(&store, "d/a", b"1").await, Ok(()))?;
    expect("another file", version("d/a").await == file, false)
}

/// Creates an overlay over `store` with an unlimited budget.
fn overlay(store: &Store) -> (Overlay, Store) {
    let overlay = Overlay::new(Arc::clone(store), &Budget::new(u64::MAX));
    (overlay.clone(), Arc::new(overlay))
}

async fn commit(overlay: &Overlay) -> Result<usize, String> {
    text(overlay.commit_changes().await).map(|changed| changed.len())
}

async fn a_commit_is_all_that_a_call_did(store: Store) -> Checked {
    for name in ["d/a", "d/b", "e"] {
        expect(name, create(&store, name, name.as_bytes()).await, Ok(()))?;
    }
    let (call, files) = overlay(&store);
    // Swap two names and move a directory, with changes inside of it before and after.
    expect("swap", rename(&files, "d/a", "t").await, Ok(()))?;
    expect("swap", rename(&files, "d/b", "d/a").await, Ok(()))?;
    expect("swap", rename(&files, "t", "d/b").await, Ok(()))?;
    expect("move", rename(&files, "d", "x").await, Ok(()))?;
    expect("change", replace(&files, "x/a", b"changed").await, Ok(()))?;
    expect("new", create(&files, "d/new", b"n").await, Ok(()))?;
    expect("delete", delete(&files, "e").await, Ok(()))?;
    expect("before", list(&store, "", Scope::Recursive).await, Ok("d/ d/a d/b e".into()))?;
    expect("commit", commit(&call).await.is_ok(), true)?;
    expect("after", list(&store, "", Scope::Recursive).await, Ok("d/ x/ d/new x/a x/b".into()))?;
    expect("moved", read(&store, "x/b").await, Ok(b"d/a".to_vec()))?;
    expect("changed", read(&store, "x/a").await, Ok(b"changed".to_vec()))
}

async fn a_dropped_overlay_leaves_no_trace(store: Store) -> Checked {
    expect("write", create(&store, "d/a", b"1").await, Ok(()))?;
    let (_, files) = overlay(&store);
    expect("change", replace(&files, "d/a", b"2").await, Ok(()))?;
    expect("new", create(&files, "x/y", b"3").await, Ok(()))?;
    expect("move", rename(&files, "d", "z").await, Ok(()))?;
    expect("own", list(&files, "", Scope::Recursive).await, Ok("x/ z/ x/y z/a".into()))?;
    drop(files);
    expect("listing", list(&store, "", Scope::Recursive).await, Ok("d/ d/a".into()))?;
    expect("content", read(&store, "d/a").await, Ok(b"1".to_vec()))
}

async fn a_prepared_commit_is_made_or_dropped(store: Store) -> Checked {
    expect("write", create(&store, "d/a", b"1").await, Ok(()))?;
    let prepare = async || {
        let (call, files) = overlay(&store);
        expect("change", replace(&files, "d/a", b"2").await, Ok(()))?;
        expect("new", create(&files, "x/y", b"3").await, Ok(()))?;
        let (changes, _) = text(call.take_changes().await).map_err(Mismatch)?;
        text(store.prepare(changes).await).map_err(Mismatch)
    };
    drop(prepare().await?);
    expect("dropped", list(&store, "", Scope::Recursive).await, Ok("d/ d/a".into()))?;
    expect("content", read(&store, "d/a").await, Ok(b"1".to_vec()))?;
    expect("nothing waits", create(&store, "b", b"4").await, Ok(()))?;
    expect("made", text(prepare().await?.commit().await), Ok(()))?;
    expect("listing", list(&store, "", Scope::Recursive).await, Ok("d/ x/ b d/a x/y".into()))?;
    expect("content", read(&store, "d/a").await, Ok(b"2".to_vec()))?;
    expect("nothing waits", delete(&store, "b").await, Ok(()))
}

async fn the_first_to_commit_wins(store: Store) -> Checked {
    for name in ["read", "d/a", "gone"] {
        expect(name, create(&store, name, b"old").await, Ok(()))?;
    }
    let refused: Result<usize, String> = Err("another call has changed this path.".into());
    let (call, files) = overlay(&store);
    expect("read", read(&files, "read").await, Ok(b"old".to_vec()))?;
    let (other, others) = overlay(&store);
    expect("other", replace(&others, "read", b"other").await, Ok(()))?;
    expect("beside", create(&others, "d/b", b"other").await, Ok(()))?;
    expect("first", commit(&other).await, Ok(2))?;
    // Reads without a write never conflict.
    expect("mine", create(&files, "d/c", b"mine").await, Ok(()))?;
    expect("second", commit(&call).await, Ok(1))?;

    let changes: [(&str, &str); 3] = [("d/a", "write"), ("new", "write"), ("gone", "delete")];
    for (name, what) in changes {
        let ((mine, my_files), (other, others)) = (overlay(&store), overlay(&store));
        for files in [&my_files, &others] {
            let changed = if what == "write" {
                replace(files, name, b"x").await
            } else {
                delete(files, name).await
            };
            expect(name, changed, Ok(()))?;
            expect("also", replace(files, "d/c", b"also").await, Ok(()))?;
        }
        expect(name, commit(&other).await, Ok(2))?;
        expect("mine", replace(&my_files, "d/c", b"mine").await, Ok(()))?;
        expect(name, commit(&mine).await, refused.clone())?;
        expect("nothing of it remains", read(&store, "d/c").await, Ok(b"also".to_vec()))?;
    }
    let ((mine, my_files), (other, others)) = (overlay(&store), overlay(&store));
    for name in ["d/a", "d/b", "d/c"] {
        expect(name, delete(&my_files, name).await, Ok(()))?;
    }
    expect("remove", remove(&my_files, "d").await, Ok(()))?;
    expect("other", create(&others, "d/x", b"x").await, Ok(()))?;
    expect("first", commit(&other).await, Ok(1))?;
    expect("not empty any more", commit(&mine).await, refused)?;
    expect("listing", list(&store, "d", Scope::Children).await, Ok("a b c x".into()))
}

async fn directories_count_as_entries(store: Store) -> Checked {
    expect("deep", create_directory(&store, "1/2/3/4").await, Ok(MadeDirectory::Created))?;
    expect("deeper", create_directory(&store, "1/2/3/4/5").await, Err(TOO_DEEP.to_owned()))?;
    expect("more", create_directory(&store, "a/2/3").await, Ok(MadeDirectory::Created))?;
    expect("too many", create_directory(&store, "a/2/4/5").await, Err(TOO_MANY.to_owned()))?;
    expect("there already", create_directory(&store, "a/2/3").await, Ok(MadeDirectory::Existed))?;
    expect("the last", create(&store, "b", b"").await, Ok(()))?;
    expect("full", create(&store, "c", b"").await, Err(TOO_MANY.to_owned()))
}

async fn a_refused_change_changes_nothing(store: Store) -> Checked {
    expect("write", create(&store, "d/a", &[b'x'; 32]).await, Ok(()))?;
    expect("too large", create(&store, "x/y/b", &[b'x'; 33]).await, Err(TOO_LARGE.to_owned()))?;
    expect("too full", replace(&store, "x/y/b", &[b'x'; 32]).await, Ok(()))?;
    expect("too full", create(&store, "z/c", b"x").await, Err(TOO_FULL.to_owned()))?;
    expect("too large", replace(&store, "d/a", &[b'y'; 33]).await, Err(TOO_LARGE.to_owned()))?;
    expect("content", read(&store, "d/a").await, Ok(vec![b'x'; 32]))?;
    expect("listing", list(&store, "", Scope::Recursive).await, Ok("d/ x/ x/y/ d/a x/y/b".into()))
}

async fn one_of_many_creators_succeeds(store: Store) -> Checked {
    let creators: Vec<_> = (0..16_u8)
        .map(|number| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { create(&store, "d/a", &[number]).await.map(|()| number) })
        })
        .collect();
    let mut winners = Vec::new();
    for creator in creators {
        winners.extend(creator.await.map_err(|error| Mismatch(error.to_string()))?);
    }
    expect("winners", winners.len(), 1)?;
    expect("content", read(&store, "d/a").await, Ok(winners))
}

async fn readers_see_whole_contents(store: Store) -> Checked {
    expect("write", create(&store, "a", &[0; 24]).await, Ok(()))?;
    let is_over = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..2)
        .map(|_| tokio::spawn(read_until(Arc::clone(&store), Arc::clone(&is_over))))
        .collect();
    for number in 1..=100_u8 {
        expect(
            "replace",
            replace(&store, "a", &vec![number; 8 + usize::from(number % 24)]).await,
            Ok(()),
        )?;
        tokio::task::yield_now().await;
    }
    is_over.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.map_err(|error| Mismatch(error.to_string()))??;
    }
    Ok(())
}

async fn read_until(store: Store, is_over: Arc<AtomicBool>) -> Checked {
    while !is_over.load(Ordering::Relaxed) {
        let content = text(store.read(&path("a"), 32).await).map_err(Mismatch)?;
        let first = content.first().copied().unwrap_or_default();
        let length = if first == 0 { 24 } else { 8 + usize::from(first % 24) };
        expect("content", &content, &vec![first; length])?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Paths in this file are valid; an invalid one becomes the root, where the check fails.
fn path(text: &str) -> StorePath {
    StorePath::directory(text).unwrap_or(StorePath::ROOT)
}

fn text<T>(result: Result<T, FileError>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

fn not_found<T>() -> Result<T, String> {
    Err("not found".to_owned())
}

async fn stat(store: &Store, at: &str) -> Result<String, String> {
    let stat = text(store.stat(&path(at)).await)?;
    let kind = if stat.kind == EntryKind::File { "file" } else { "directory" };
    Ok(format!("{kind} {}", stat.bytes))
}

async fn read(store: &Store, at: &str) -> Result<Vec<u8>, String> {
    text(store.read(&path(at), u64::MAX).await)
}

async fn create(store: &Store, at: &str, content: &[u8]) -> Result<(), String> {
    text(store.write(&path(at), content.to_vec(), WriteMode::Create).await)
}

async fn replace(store: &Store, at: &str, content: &[u8]) -> Result<(), String> {
    text(store.write(&path(at), content.to_vec(), WriteMode::Replace).await)
}

async fn delete(store: &Store, at: &str) -> Result<(), String> {
    text(store.delete(&path(at)).await)
}

async fn remove(store: &Store, at: &str) -> Result<(), String> {
    text(store.remove_directory(&path(at)).await)
}

async fn rename(store: &Store, from: &str, to: &str) -> Result<(), String> {
    text(store.rename(&path(from), &path(to)).await)
}

async fn create_directory(store: &Store, at: &str) -> Result<MadeDirectory, String> {
    text(store.create_directory(&path(at)).await)
}

async fn list(store: &Store, at: &str, scope: Scope) -> Result<String, String> {
    text(store.list(&path(at), scope).await).map(|listing| super::plan::show(&listing))
}
