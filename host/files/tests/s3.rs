//! Bucket stores on a server that speaks S3. `cargo xtask s3` starts one and runs these tests;
//! without `COFFERDAM_S3_ENDPOINT` they report that they are skipped.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says on standard output when it is skipped"
)]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cofferdam_files::testing::{self, Operation};
use cofferdam_files::{
    BucketOptions, BucketStore, Budget, FileError, FileStore, Overlay, Quota, Scope, StorePath,
    WriteMode,
};

const BUCKET: &str = "cofferdam-tests";

/// Returns the endpoint of the server, whose bucket has been created; `None` if there is no server.
fn server() -> Option<&'static str> {
    static ENDPOINT: OnceLock<Option<String>> = OnceLock::new();
    let endpoint = ENDPOINT.get_or_init(|| {
        let endpoint = std::env::var("COFFERDAM_S3_ENDPOINT").ok()?;
        make_bucket(&endpoint);
        Some(endpoint)
    });
    if endpoint.is_none() {
        println!("skipped: COFFERDAM_S3_ENDPOINT names no server; `cargo xtask s3` starts one");
    }
    endpoint.as_deref()
}

/// Creates the bucket. The test server requires no signature.
fn make_bucket(endpoint: &str) {
    put_empty(endpoint, BUCKET);
}

/// Puts an empty object, as another program would.
fn put_empty(endpoint: &str, path: &str) {
    let host = endpoint.strip_prefix("http://").expect("the endpoint of the tests is plain HTTP");
    let mut connection = TcpStream::connect(host).unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head = format!(
        "PUT /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

fn options(endpoint: &str, quota: Quota) -> BucketOptions {
    BucketOptions {
        quota,
        endpoint: Some(endpoint.to_owned()),
        access_key_id: Some("test".to_owned()),
        secret_key: Some("not a secret".to_owned()),
        ..BucketOptions::default()
    }
}

/// Returns a prefix that no other store has.
fn prefix() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let nanoseconds = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
    format!("{nanoseconds}/{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

fn store_at(endpoint: &str, prefix: &str, quota: Quota) -> Arc<dyn FileStore> {
    let url = format!("s3://{BUCKET}/{prefix}");
    Arc::new(BucketStore::open(&url, &options(endpoint, quota)).unwrap())
}

fn fresh(endpoint: &str, quota: Quota) -> Arc<dyn FileStore> {
    store_at(endpoint, &prefix(), quota)
}

fn path(text: &str) -> StorePath {
    StorePath::file(text).unwrap()
}

/// Returns plans that are the same in every run.
fn plans(count: u64, operations: usize) -> impl Iterator<Item = Vec<Operation>> {
    (1..=count).map(move |seed| {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut byte = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        (0..operations).map(|_| Operation::from_bytes([byte(), byte(), byte()])).collect()
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_keeps_the_contract_of_file_stores() {
    let Some(endpoint) = server() else { return };
    testing::run(|quota| fresh(endpoint, *quota)).await.unwrap();
}

#[test]
fn a_bucket_agrees_with_the_model() {
    let Some(endpoint) = server() else { return };
    for plan in plans(4, 40) {
        testing::check_plan(|quota| fresh(endpoint, *quota), &plan).unwrap();
    }
}

#[test]
fn a_bucket_takes_over_what_calls_have_changed() {
    let Some(endpoint) = server() else { return };
    for plan in plans(3, 30) {
        testing::check_commits(|quota| fresh(endpoint, *quota), &plan).unwrap();
    }
}

#[tokio::test]
async fn of_sixteen_hosts_that_create_a_file_one_succeeds() {
    let Some(endpoint) = server() else { return };
    let prefix = prefix();
    let creators: Vec<_> = (0..16_u8)
        .map(|number| {
            let store = store_at(endpoint, &prefix, Quota::default());
            tokio::spawn(async move {
                store.write(&path("d/a"), vec![number], WriteMode::Create).await.map(|()| number)
            })
        })
        .collect();
    let mut winners = Vec::new();
    for creator in creators {
        match creator.await.unwrap() {
            Ok(number) => winners.push(number),
            Err(error) => assert!(matches!(error, FileError::AlreadyExists), "{error:?}"),
        }
    }
    assert_eq!(winners.len(), 1);
    let store = store_at(endpoint, &prefix, Quota::default());
    assert_eq!(store.read(&path("d/a"), 9).await.unwrap(), winners);
}

#[tokio::test]
async fn of_two_hosts_that_commit_a_change_to_a_file_the_first_wins() {
    let Some(endpoint) = server() else { return };
    let prefix = prefix();
    let hosts = [(); 2].map(|()| store_at(endpoint, &prefix, Quota::default()));
    hosts[0].write(&path("a"), b"old".to_vec(), WriteMode::Create).await.unwrap();
    let calls = hosts.each_ref().map(|host| Overlay::new(Arc::clone(host), &Budget::new(u64::MAX)));
    for (call, content) in calls.iter().zip([b"first", b"other"]) {
        call.write(&path("a"), content.to_vec(), WriteMode::Replace).await.unwrap();
        call.write(
            &path(if content == b"first" { "x" } else { "y" }),
            Vec::new(),
            WriteMode::Create,
        )
        .await
        .unwrap();
    }
    calls[0].commit_changes().await.unwrap();
    let refused = calls[1].commit_changes().await.unwrap_err();
    assert!(
        matches!(&refused, FileError::Conflict { path } if path.as_str() == "a"),
        "{refused:?}"
    );
    assert_eq!(hosts[1].read(&path("a"), 9).await.unwrap(), b"first");
    let listing = hosts[1].list(&StorePath::ROOT, Scope::Recursive).await.unwrap();
    assert_eq!(
        listing.entries.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(),
        ["a", "x"]
    );
}

#[tokio::test]
async fn names_go_to_the_server_and_back_unchanged() {
    let Some(endpoint) = server() else { return };
    let store = fresh(endpoint, Quota::default());
    let names = ["%2e%2E", "a b+c", "é…", "q?x=1&y#z", "~[x]{y}|^`", "d d/ä"];
    for name in names {
        store.write(&path(name), name.as_bytes().to_vec(), WriteMode::Create).await.unwrap();
    }
    store.rename(&path("q?x=1&y#z"), &path("q? moved %")).await.unwrap();
    assert_eq!(store.read(&path("q? moved %"), 99).await.unwrap(), b"q?x=1&y#z");
    for name in names.iter().filter(|name| !name.starts_with('q')) {
        assert_eq!(store.read(&path(name), 99).await.unwrap(), name.as_bytes(), "{name}");
        store.delete(&path(name)).await.unwrap();
    }
    let listing = store.list(&StorePath::ROOT, Scope::Recursive).await.unwrap();
    assert_eq!(
        listing.entries.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(),
        ["d d", "q? moved %"]
    );
}

#[tokio::test]
async fn more_than_a_page_of_files_is_listed_and_counted() {
    let Some(endpoint) = server() else { return };
    let prefix = prefix();
    (0..1005).for_each(|number| put_empty(endpoint, &format!("{BUCKET}/{prefix}/d/{number}")));
    let store = store_at(endpoint, &prefix, Quota::default());
    for scope in [Scope::Children, Scope::Recursive] {
        let directory = StorePath::directory("d").unwrap();
        assert_eq!(store.list(&directory, scope).await.unwrap().entries.len(), 1005);
    }
    assert_eq!(store.room().await.unwrap().usage.entries, 1006);
}

#[tokio::test]
async fn what_a_server_says_is_not_in_the_text() {
    let Some(endpoint) = server() else { return };
    let url = "s3://no-such-bucket-at-all/secret-prefix";
    let store = BucketStore::open(url, &options(endpoint, Quota::default())).unwrap();
    let error = store.list(&StorePath::ROOT, Scope::Children).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("the file store failed: ") && !text.contains("no-such-bucket"),
        "{text}"
    );
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("no-such-bucket"), "{source}");
}
