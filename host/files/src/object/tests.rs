//! Tests of a bucket store over objects in memory.

mod faults;

use object_store::{ObjectStoreExt as _, path::Path};

use super::*;
use crate::testing;

fn path(text: &str) -> StorePath {
    StorePath::directory(text).unwrap()
}

/// Creates a store, and returns it with its objects, through which other hosts can write.
fn shared(prefix: &str) -> (BucketStore, Arc<InMemory>) {
    let objects = Arc::new(InMemory::new());
    let below = Arc::clone(&objects) as Arc<dyn ObjectStore>;
    (BucketStore::over(below, prefix, Quota::default(), false).unwrap(), objects)
}

async fn put(objects: &InMemory, key: &str, content: &'static [u8]) {
    objects.put(&Path::parse(key).unwrap(), content.into()).await.unwrap();
}

async fn keys(objects: &InMemory) -> Vec<String> {
    use futures_util::TryStreamExt as _;
    let found: Vec<_> = objects.list(None).try_collect().await.unwrap();
    found.into_iter().map(|object| object.location.to_string()).collect()
}

async fn names(store: &BucketStore, directory: &str, scope: Scope) -> Vec<String> {
    let listing = store.list(&path(directory), scope).await.unwrap();
    listing.entries.into_iter().map(|entry| entry.name).collect()
}

#[tokio::test]
async fn keeps_the_contract_of_file_stores() {
    testing::run(|quota| Arc::new(BucketStore::in_memory(*quota))).await.unwrap();
}

proptest::proptest! {
    #[test]
    fn agrees_with_the_model(plan in testing::plan()) {
        testing::check_plan(|quota| Arc::new(BucketStore::in_memory(*quota)), &plan)?;
    }

    #[test]
    fn takes_over_what_calls_have_changed(plan in testing::plan()) {
        testing::check_commits(|quota| Arc::new(BucketStore::in_memory(*quota)), &plan)?;
    }
}

#[tokio::test]
async fn a_store_stays_below_its_prefix() {
    let (store, objects) = shared("team/x");
    put(&objects, "team/x2/secret", b"1").await;
    put(&objects, "secret", b"1").await;
    store.write(&path("d/a"), b"a".to_vec(), WriteMode::Create).await.unwrap();
    assert_eq!(names(&store, "", Scope::Recursive).await, ["d", "d/a"]);
    store.rename(&path("d"), &path("e")).await.unwrap();
    assert_eq!(keys(&objects).await, ["secret", "team/x/e/a", "team/x2/secret"]);
    assert_eq!(store.room().await.unwrap().usage.entries, 2);
}

#[tokio::test]
async fn a_marker_that_is_not_shown_preserves_a_directory() {
    let (store, objects) = shared("");
    store.write(&path("x/d/a"), b"a".to_vec(), WriteMode::Create).await.unwrap();
    store.delete(&path("x/d/a")).await.unwrap();
    assert_eq!(keys(&objects).await, ["x/d/.~cofferdam-directory"]);
    assert_eq!(names(&store, "", Scope::Recursive).await, ["x", "x/d"]);
    assert_eq!(names(&store, "x/d", Scope::Children).await, Vec::<String>::new());
    store.remove_directory(&path("x/d")).await.unwrap();
    assert_eq!(keys(&objects).await, ["x/.~cofferdam-directory"]);
}

#[tokio::test]
async fn names_that_no_path_denotes_are_not_shown_but_keep_their_directory() {
    let (store, objects) = shared("");
    for key in ["d/a:b", "d/con", "d/trail.", "e/x:y/below"] {
        put(&objects, key, b"1").await;
    }
    let listing = store.list(&StorePath::ROOT, Scope::Recursive).await.unwrap();
    assert_eq!(names(&store, "", Scope::Recursive).await, ["d", "e"]);
    assert!(listing.hides_entries);
    assert!(store.list(&path("d"), Scope::Children).await.unwrap().hides_entries);
    assert_eq!(store.room().await.unwrap().usage.bytes, 0);
    for directory in ["d", "e"] {
        let refused = store.remove_directory(&path(directory)).await.unwrap_err();
        assert!(matches!(refused, FileError::NotEmpty), "{refused:?}");
    }
}

#[tokio::test]
async fn an_object_with_others_below_it_is_shown_as_a_file() {
    let (store, objects) = shared("");
    for key in ["d", "d/a", "d/e/b"] {
        put(&objects, key, b"1").await;
    }
    // Some tools create directories like this.
    put(&objects, "empty", b"").await;
    put(&objects, "empty/a", b"1").await;
    for scope in [Scope::Children, Scope::Recursive] {
        let listed = names(&store, "", scope).await;
        assert_eq!(listed.iter().filter(|name| name.starts_with('d')).collect::<Vec<_>>(), ["d"]);
    }
    assert_eq!(store.stat(&path("d")).await.unwrap().bytes, 1);
    let refused = store.write(&path("d/new"), Vec::new(), WriteMode::Create).await.unwrap_err();
    assert!(matches!(refused, FileError::ParentIsFile), "{refused:?}");
}

#[tokio::test]
async fn of_two_hosts_that_create_a_file_one_succeeds() {
    let (first, objects) = shared("x");
    let second = BucketStore::over(objects, "x", Quota::default(), false).unwrap();
    let name = path("a");
    let (first, second) = tokio::join!(
        first.write(&name, b"1".to_vec(), WriteMode::Create),
        second.write(&name, b"2".to_vec(), WriteMode::Create),
    );
    assert_eq!([&first, &second].iter().filter(|result| result.is_ok()).count(), 1);
    assert!([first, second].iter().any(|result| matches!(result, Err(FileError::AlreadyExists))));
}

#[tokio::test]
async fn an_abandoned_change_is_made_as_a_whole() {
    let store = BucketStore::in_memory(Quota::default());
    for name in ["d/a", "d/b", "d/c"] {
        store.write(&path(name), name.as_bytes().to_vec(), WriteMode::Create).await.unwrap();
    }
    let (from, to) = (path("d"), path("e"));
    let mut rename = store.rename(&from, &to);
    assert!(futures_util::poll!(&mut rename).is_pending());
    drop(rename);
    // The next change waits for the rename.
    store.write(&path("after"), Vec::new(), WriteMode::Create).await.unwrap();
    assert_eq!(names(&store, "", Scope::Recursive).await, ["e", "after", "e/a", "e/b", "e/c"]);
}

#[tokio::test]
async fn a_read_only_store_takes_nothing() {
    let store = BucketStore::over(Arc::new(InMemory::new()), "", Quota::default(), true).unwrap();
    let refused = store.write(&StorePath::ROOT, Vec::new(), WriteMode::Create).await.unwrap_err();
    assert_eq!(refused.to_string(), "the store is read-only.");
    assert!(store.is_read_only());
}
