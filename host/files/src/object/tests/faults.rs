//! Requests that fail, and other hosts that interfere.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex as Lock;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as Answer,
};

use super::*;
use crate::{Budget, Overlay};

/// Objects in memory for which one put, copy or deletion fails or finds a change by another host.
#[derive(Debug)]
struct Faulty {
    objects: InMemory,
    /// Number of puts, copies and lists of deletions that succeed before the fault.
    countdown: Lock<Option<usize>>,
    fault: Fault,
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    Refused,
    /// Another host writes to this key just before the request.
    Overtaken(&'static str),
    /// The answer to a put is lost, and the put that is sent again finds the object.
    LostAnswer,
}

impl Faulty {
    fn new(fault: Fault) -> Arc<Self> {
        Arc::new(Self { objects: InMemory::new(), countdown: Lock::default(), fault })
    }

    fn arm(&self, after: usize) {
        *self.countdown.lock().unwrap() = Some(after);
    }

    /// Counts a request. Returns the error of the one that is refused.
    fn count_write(&self) -> Answer<()> {
        let mut countdown = self.countdown.lock().unwrap();
        let is_now = *countdown == Some(0);
        *countdown = countdown.and_then(|left| left.checked_sub(1));
        if is_now {
            let source = "at https://host/secret".into();
            return Err(object_store::Error::Generic { store: "faulty", source });
        }
        Ok(())
    }

    async fn before_write(&self) -> Answer<()> {
        match (self.count_write(), self.fault) {
            (Err(_), Fault::Overtaken(key)) => {
                put(&self.objects, key, b"theirs").await;
                Ok(())
            }
            (counted, _) => counted,
        }
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        to: &Path,
        content: PutPayload,
        options: PutOptions,
    ) -> Answer<PutResult> {
        let before = self.before_write().await;
        if before.is_err() && matches!(self.fault, Fault::LostAnswer) {
            self.objects.put_opts(to, content, options).await?;
            let path = to.to_string();
            return Err(object_store::Error::AlreadyExists { path, source: "412".into() });
        }
        before?;
        self.objects.put_opts(to, content, options).await
    }

    async fn put_multipart_opts(
        &self,
        to: &Path,
        options: PutMultipartOptions,
    ) -> Answer<Box<dyn MultipartUpload>> {
        self.objects.put_multipart_opts(to, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Answer<GetResult> {
        self.objects.get_opts(at, options).await
    }

    async fn get_ranges(&self, at: &Path, ranges: &[Range<u64>]) -> Answer<Vec<Bytes>> {
        self.objects.get_ranges(at, ranges).await
    }

    fn delete_stream(
        &self,
        keys: BoxStream<'static, Answer<Path>>,
    ) -> BoxStream<'static, Answer<Path>> {
        // Like a service that fails in the middle: the first object is deleted, the others are not.
        if let (Fault::Refused, Err(error)) = (self.fault, self.count_write()) {
            let first = self.objects.delete_stream(keys.take(1).boxed());
            return first.chain(futures_util::stream::iter([Err(error)])).boxed();
        }
        self.objects.delete_stream(keys)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Answer<ObjectMeta>> {
        self.objects.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Answer<ListResult> {
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Answer<()> {
        self.before_write().await?;
        self.objects.copy_opts(from, to, options).await
    }
}

/// Returns every key with its content.
async fn everything(objects: &InMemory) -> BTreeMap<String, Bytes> {
    let mut found = BTreeMap::new();
    for key in keys(objects).await {
        let content =
            objects.get(&Path::parse(&key).unwrap()).await.unwrap().bytes().await.unwrap();
        found.insert(key, content);
    }
    found
}

/// Creates a call that swaps, replaces, moves, deletes and creates.
async fn call_on(store: &BucketStore) -> Overlay {
    for name in ["a", "b", "d/x", "d/y", "gone/z"] {
        store.write(&path(name), name.as_bytes().to_vec(), WriteMode::Create).await.unwrap();
    }
    let call = Overlay::new(Arc::new(store.clone()), &Budget::new(u64::MAX));
    for (from, to) in [("a", "t"), ("b", "a"), ("t", "b"), ("d", "e")] {
        call.rename(&path(from), &path(to)).await.unwrap();
    }
    call.write(&path("e/x"), b"changed".to_vec(), WriteMode::Replace).await.unwrap();
    call.write(&path("new/n"), b"new".to_vec(), WriteMode::Create).await.unwrap();
    call.delete(&path("gone/z")).await.unwrap();
    call
}

fn over(objects: &Arc<Faulty>) -> BucketStore {
    BucketStore::over(Arc::clone(objects) as Arc<dyn ObjectStore>, "", Quota::default(), false)
        .unwrap()
}

#[tokio::test]
async fn a_commit_of_which_any_request_fails_leaves_everything_as_it_was() {
    let mut failures = 0;
    for after in 0.. {
        let objects = Faulty::new(Fault::Refused);
        let call = call_on(&over(&objects)).await;
        let before = everything(&objects.objects).await;
        objects.arm(after);
        match call.commit_changes().await {
            Ok(_) => {
                // The last requests delete copies. If they fail, some copies are left.
                let mut names: Vec<_> = keys(&objects.objects).await;
                names.retain(|key| !keys::is_stage(key));
                let expected = [
                    "a",
                    "b",
                    "e/x",
                    "e/y",
                    "gone/.~cofferdam-directory",
                    "new/.~cofferdam-directory",
                    "new/n",
                ];
                assert_eq!(names, expected);
                break;
            }
            Err(error) => {
                failures += 1;
                assert_eq!(error.to_string(), "the file store failed: other error.");
                assert_eq!(everything(&objects.objects).await, before, "request {after} failed");
            }
        }
    }
    assert!(failures >= 7, "only {failures} requests were made");
}

#[tokio::test]
async fn a_rename_of_which_any_request_fails_leaves_everything_as_it_was() {
    // Three copies and a list of three deletions, of which only the first succeeds.
    for after in 0..4 {
        let objects = Faulty::new(Fault::Refused);
        let store = over(&objects);
        for name in ["d/x", "d/y", "d/z"] {
            store.write(&path(name), name.as_bytes().to_vec(), WriteMode::Create).await.unwrap();
        }
        let before = everything(&objects.objects).await;
        objects.arm(after);
        assert!(store.rename(&path("d"), &path("e")).await.is_err());
        assert_eq!(everything(&objects.objects).await, before, "request {after} failed");
        store.rename(&path("d"), &path("e")).await.unwrap();
    }
}

#[tokio::test]
async fn what_another_host_writes_between_check_and_put_is_a_conflict() {
    for (theirs, name) in [("a", "a"), ("fresh", "fresh")] {
        let objects = Faulty::new(Fault::Overtaken(theirs));
        let store = over(&objects);
        store.write(&path("a"), b"old".to_vec(), WriteMode::Create).await.unwrap();
        let call = Overlay::new(Arc::new(store.clone()), &Budget::new(u64::MAX));
        call.write(&path(name), b"mine".to_vec(), WriteMode::Replace).await.unwrap();
        objects.arm(0);
        let refused = call.commit_changes().await.unwrap_err();
        assert!(
            matches!(&refused, FileError::Conflict { path } if path.as_str() == name),
            "{refused:?}"
        );
        assert_eq!(store.read(&path(name), 9).await.unwrap(), b"theirs");
    }
}

#[tokio::test]
async fn a_put_whose_answer_was_lost_is_recognized() {
    let objects = Faulty::new(Fault::LostAnswer);
    let store = over(&objects);
    objects.arm(0);
    store.write(&path("a"), b"first".to_vec(), WriteMode::Create).await.unwrap();
    let again = store.write(&path("a"), b"second".to_vec(), WriteMode::Create).await;
    assert!(matches!(again, Err(FileError::AlreadyExists)), "{again:?}");
    assert_eq!(store.read(&path("a"), 9).await.unwrap(), b"first");
}
