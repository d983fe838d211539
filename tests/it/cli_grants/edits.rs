//! Edits of grants in a configuration: what is refused, and what a refusal leaves unchanged.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cofferdam_tests::binary;

use super::{Folder, row, run};

/// Maximum time to wait for a compiled plugin.
const PATIENCE: Duration = Duration::from_secs(120);

/// Returns whether a directory has files, at any depth, of the size of compiled code.
fn has_compiled(directory: &Path) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => has_compiled(&entry.path()),
        metadata => metadata.is_ok_and(|metadata| metadata.len() > 10_000),
    })
}

/// Other commands wait for the lock, and compiling takes seconds.
#[test]
fn a_plugin_is_compiled_before_the_folder_is_locked() {
    let folder = Folder::new("", "");
    let cache = folder.folder.path().join("cache");
    let lock = File::open(folder.folder.path()).unwrap();
    lock.lock().unwrap();
    let before = folder.text();
    let mut granting = Command::new(binary())
        .env_clear()
        .env("COFFERDAM_CACHE_DIR", &cache)
        .args(["grant", "tool", "random", "--config", &folder.config])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while !has_compiled(&cache) {
        assert!(
            began.elapsed() < PATIENCE,
            "nothing is compiled while another process has the lock"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(granting.try_wait().unwrap(), None);
    assert_eq!(folder.text(), before);
    drop(lock);
    assert!(granting.wait().unwrap().success());
    assert!(folder.text().contains("random = true"), "{}", folder.text());
}

#[test]
fn revoking_leaves_nothing_wider() {
    let folder = Folder::new("", "[plugins.tool.grants]\nrandom = false\nclock = \"frozen\"\n");
    let ran = run(&["revoke", "tool", "clock:precise", "--config", &folder.config]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(ran.stderr.contains("[plugins.tool.grants] has no `clock:precise`"), "{}", ran.stderr);
    let ran = run(&["revoke", "tool", "--all", "--config", &folder.config]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(row(&ran.stdout, "clock").last(), Some(&"frozen"), "{}", ran.stdout);
    assert_eq!(row(&ran.stdout, "random numbers").last(), Some(&"-"), "{}", ran.stdout);
}

#[test]
fn what_is_granted_to_all_plugins_is_not_revoked_from_one() {
    let folder = Folder::new(
        "",
        "[plugins.tool.grants]\nfiles.d = \"read-only\"\n[stores.d]\nmemory = \
         true\n[grants]\nfiles.d = \"read-write\"\n",
    );
    let before = folder.text();
    let ran = run(&["revoke", "tool", "files:d=read-only", "--config", &folder.config]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(ran.stderr.contains("because [grants] gives it to all plugins"), "{}", ran.stderr);
    assert_eq!(folder.text(), before);
}

#[test]
fn a_grant_that_fails_is_not_written() {
    let folder = Folder::new("", "[stores.reports]\ndirectory = \"private\"\n");
    for name in ["private", "reports"] {
        std::fs::create_dir(folder.path(name)).unwrap();
    }
    let before = folder.text();
    let grant = |directory: &str| {
        let directory = folder.path(directory).display().to_string();
        let permission = "files:reports=read-only";
        run(&["grant", "tool", permission, "--directory", &directory, "--config", &folder.config])
    };
    let other = grant("reports");
    assert_eq!(other.code, 2, "{}", other.stdout);
    let known = folder.path("private").canonicalize().unwrap();
    let expected = format!("store `reports` is already the directory {}", known.display());
    assert!(other.stderr.contains(&expected), "{}", other.stderr);
    std::fs::rename(folder.path("tool.wasm"), folder.path("gone.wasm")).unwrap();
    let missing = grant("private");
    assert_eq!(missing.code, 4, "{}", missing.stderr);
    assert!(!missing.stderr.contains("may now"), "{}", missing.stderr);
    assert_eq!(folder.text(), before);
    std::fs::rename(folder.path("gone.wasm"), folder.path("tool.wasm")).unwrap();
    let same = grant("private/../private");
    assert_eq!(same.code, 0, "{}", same.stderr);
    // A grant is taken away whether the plugin can be loaded or not.
    std::fs::remove_file(folder.path("tool.wasm")).unwrap();
    let all = run(&["revoke", "tool", "--all", "--config", &folder.config]);
    assert_eq!(all.code, 0, "{}", all.stderr);
    assert!(all.stderr.contains("cannot be shown"), "{}", all.stderr);
    assert!(!folder.text().contains("read-only"), "{}", folder.text());
}

#[test]
fn an_edited_file_keeps_its_group() {
    let folder = Folder::new("", "");
    // Only root, and members of the group, may give a file to it.
    let _ = std::os::unix::fs::chown(&folder.config, None, Some(2000));
    let group = std::fs::metadata(&folder.config).unwrap().gid();
    let ran = run(&["grant", "tool", "clock:precise", "--config", &folder.config]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(std::fs::metadata(&folder.config).unwrap().gid(), group);
}
