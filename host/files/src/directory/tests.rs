//! Tests of directory stores beyond the checks that all stores share.

use std::fs;
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::QuotaCounts;
use crate::testing;

mod commits;
mod hostile;
mod planted;

const FAST: DirectoryOptions = DirectoryOptions {
    is_read_only: false,
    quota: QUOTA_DEFAULT,
    names: NameRules::Portable,
    is_durable: false,
    is_private: false,
};
const QUOTA_DEFAULT: Quota = Quota {
    bytes_max: 1 << 20,
    entries_max: 1000,
    file_bytes_max: 1 << 20,
    depth_max: 32,
    counts: QuotaCounts::Total,
};

/// A directory of the host with a store at `store/` in it, and room for files outside of the store.
struct Scene {
    host: TempDir,
    store: DirectoryStore,
}

impl Scene {
    fn new() -> Self {
        Self::with(FAST)
    }

    fn with(options: DirectoryOptions) -> Self {
        Self::on(tempfile::tempdir().unwrap(), options)
    }

    fn on(host: TempDir, options: DirectoryOptions) -> Self {
        fs::create_dir(host.path().join("store")).unwrap();
        let store = DirectoryStore::open_ambient(&host.path().join("store"), options).unwrap();
        Self { host, store }
    }

    /// Returns a path of the host inside the store.
    fn inside(&self, path: &str) -> PathBuf {
        self.host.path().join("store").join(path)
    }

    /// Returns a path of the host outside of the store.
    fn outside(&self, path: &str) -> PathBuf {
        self.host.path().join(path)
    }

    async fn read(&self, path: &str) -> Result<String, String> {
        let content =
            self.store.read(&file(path), 1 << 20).await.map_err(|error| error.to_string())?;
        Ok(String::from_utf8(content).unwrap())
    }

    async fn write(&self, path: &str, content: &str) -> Result<(), String> {
        self.write_with(path, content, WriteMode::Replace).await
    }

    async fn write_with(&self, path: &str, content: &str, mode: WriteMode) -> Result<(), String> {
        self.store.write(&file(path), content.into(), mode).await.map_err(|error| error.to_string())
    }

    async fn list(&self) -> Vec<String> {
        let listing = self.store.list(&StorePath::ROOT, Scope::Recursive).await.unwrap();
        listing.entries.into_iter().map(|entry| entry.name).collect()
    }

    /// Returns the names that the host sees in a directory of the store.
    fn names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.inside(directory)).unwrap();
        let mut names: Vec<_> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn file(path: &str) -> StorePath {
    StorePath::file(path).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeps_the_contract_of_file_stores() {
    let mut scenes = Vec::new();
    let fresh = |quota: &Quota| -> Arc<dyn FileStore> {
        let scene = Scene::with(DirectoryOptions { quota: *quota, ..DirectoryOptions::default() });
        let store = Arc::new(scene.store.clone());
        scenes.push(scene);
        store
    };
    testing::run(fresh).await.unwrap();
}

proptest::proptest! {
    #[test]
    fn agrees_with_the_model(plan in testing::plan()) {
        let mut scene = None;
        let fresh = |quota: &Quota| -> Arc<dyn FileStore> {
            let scene = scene.insert(Scene::with(DirectoryOptions { quota: *quota, ..FAST }));
            Arc::new(scene.store.clone())
        };
        testing::check_plan(fresh, &plan)?;
    }

    #[test]
    fn takes_over_what_calls_have_changed(plan in testing::plan()) {
        let mut scene = None;
        let fresh = |quota: &Quota| -> Arc<dyn FileStore> {
            let scene = scene.insert(Scene::with(DirectoryOptions { quota: *quota, ..FAST }));
            Arc::new(scene.store.clone())
        };
        testing::check_commits(fresh, &plan)?;
    }
}

#[test]
fn works_without_a_runtime() {
    let scene = Scene::new();
    let path = file("a");
    let mut future = scene.store.write(&path, b"x".to_vec(), WriteMode::Create);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(matches!(future.as_mut().poll(&mut context), std::task::Poll::Ready(Ok(()))));
    assert_eq!(scene.names(""), ["a"]);
}

#[test]
fn what_cannot_be_opened_is_named_to_the_person() {
    let scene = Scene::new();
    fs::write(scene.outside("file"), "").unwrap();
    for name in ["missing", "file"] {
        let path = scene.outside(name);
        let error = DirectoryStore::open_ambient(&path, FAST).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot open the directory `{}`", path.display()));
    }
}

#[tokio::test]
async fn a_read_only_directory_refuses_changes_and_is_not_changed() {
    let scene = Scene::with(DirectoryOptions { is_read_only: true, ..FAST });
    fs::write(scene.inside("a"), "x").unwrap();
    fs::write(scene.inside(".~cofferdam-1"), "x").unwrap();
    let store = &scene.store;
    assert!(store.is_read_only());
    assert_eq!(scene.read("a").await.unwrap(), "x");
    let refused = "the store is read-only.";
    assert_eq!(scene.write("b", "x").await.unwrap_err(), refused);
    assert_eq!(store.delete(&file("missing")).await.unwrap_err().to_string(), refused);
    assert_eq!(store.create_directory(&StorePath::ROOT).await.unwrap_err().to_string(), refused);
    assert_eq!(scene.names(""), [".~cofferdam-1", "a"]);
}

#[tokio::test]
async fn the_decorator_refuses_with_the_same_text() {
    let scene = Scene::new();
    scene.write("a", "x").await.unwrap();
    let store = crate::ReadOnly::new(Arc::new(scene.store.clone()));
    assert!(store.is_read_only());
    assert_eq!(store.read(&file("a"), 9).await.unwrap(), b"x");
    let refused = store.write(&file("a"), Vec::new(), WriteMode::Replace).await.unwrap_err();
    assert_eq!(refused.to_string(), "the store is read-only.");
}

#[tokio::test]
async fn what_is_in_the_directory_counts() {
    let quota = Quota { bytes_max: 10, entries_max: 4, ..QUOTA_DEFAULT };
    let scene = Scene::with(DirectoryOptions { quota, ..FAST });
    fs::create_dir(scene.inside("d")).unwrap();
    fs::write(scene.inside("d/a"), "12345678").unwrap();
    assert_eq!(
        scene.write("b", "123").await.unwrap_err(),
        "the store's limit of 10 bytes would be exceeded."
    );
    scene.write("b", "12").await.unwrap();
    scene.write("d/a", "1").await.unwrap();
    scene.write("c", "1234567").await.unwrap();
    let full = "the store's limit of 4 files and directories would be exceeded.";
    assert_eq!(scene.write("e", "").await.unwrap_err(), full);
}

#[tokio::test]
async fn temporary_files_are_invisible_and_old_ones_removed() {
    let scene = Scene::new();
    for name in [".~cofferdam-old", ".~cofferdam-new"] {
        fs::write(scene.inside(name), "left behind").unwrap();
    }
    let old = fs::File::options().write(true).open(scene.inside(".~cofferdam-old")).unwrap();
    old.set_modified(std::time::SystemTime::now() - Duration::from_secs(2 * 60 * 60)).unwrap();
    assert_eq!(scene.list().await, [""; 0]);
    scene.write("a", "x").await.unwrap();
    assert_eq!(scene.list().await, ["a"]);
    assert_eq!(scene.names(""), [".~cofferdam-new", "a"]);
}

#[tokio::test]
async fn a_dropped_change_does_not_keep_the_next_one_out() {
    let scene = Scene::new();
    let path = file("a");
    {
        let mut future = scene.store.write(&path, b"x".to_vec(), WriteMode::Replace);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let _pending = future.as_mut().poll(&mut context);
    }
    scene.write("a", "y").await.unwrap();
    assert_eq!(scene.read("a").await.unwrap(), "y");
    assert_eq!(scene.names(""), ["a"]);
}

#[cfg(unix)]
#[tokio::test]
async fn replacing_keeps_the_permissions_but_no_borrowed_rights() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new();
    for (before, after) in [(0o600, 0o600), (0o777, 0o777), (0o6755, 0o755)] {
        fs::write(scene.inside("a"), "old").unwrap();
        fs::set_permissions(scene.inside("a"), fs::Permissions::from_mode(before)).unwrap();
        scene.write("a", "new").await.unwrap();
        let mode = fs::metadata(scene.inside("a")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, after, "{before:o}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_private_store_creates_files_for_the_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::with(DirectoryOptions { is_private: true, ..FAST });
    scene.write("a/b", "new").await.unwrap();
    let mode = || fs::metadata(scene.inside("a/b")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    fs::set_permissions(scene.inside("a/b"), fs::Permissions::from_mode(0o640)).unwrap();
    scene.write("a/b", "newer").await.unwrap();
    assert_eq!(mode(), 0o640, "it is the decision of the owner");
}

#[tokio::test]
async fn debug_shows_nothing_of_the_host() {
    let scene = Scene::new();
    let shown = format!("{:?}", scene.store);
    assert!(!shown.contains(scene.host.path().to_str().unwrap()), "{shown}");
    assert_eq!(scene.store.root_ambient(), scene.inside("").canonicalize().unwrap());
}
