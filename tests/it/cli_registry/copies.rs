//! Copies of plugins: on machines without a network, and those that are no longer used.

use std::path::Path;
use std::time::{Duration, SystemTime};

use cofferdam_registry::Digest;
use cofferdam_registry::testing::Reply;
use cofferdam_tests::guest;
use serde_json::Value;

use super::{Folder, Registry, UNSIGNED};

/// Copies configuration and lock file.
fn copy_files(from: &Folder, to: &Folder) {
    for name in ["cofferdam.toml", "cofferdam.lock"] {
        std::fs::copy(from.path(name), to.path(name)).unwrap();
    }
}

#[test]
fn plugins_travel_to_a_machine_without_a_network() {
    let (registry, folder) = (Registry::with_text(), Folder::new());
    folder.done(&["add", &registry.reference("acme/text:1.0"), "--yes", UNSIGNED]);
    drop(registry);
    folder.done(&["export", "copy"]);
    let index: Value = serde_json::from_str(&folder.text("copy/index.json")).unwrap();
    assert_eq!(index["manifests"].as_array().unwrap().len(), 1, "{index}");

    let (other, third) = (Folder::new(), Folder::new());
    copy_files(&folder, &other);
    copy_files(&folder, &third);
    let copy = folder.path("copy").display().to_string();
    let import = ["import", &copy, "--config", "cofferdam.toml"];
    let call = ["call", "word_count", "text=a b c d", "--config", "cofferdam.toml"];
    let missing = other.refused(4, &call);
    assert!(missing.contains("is not on this machine"), "{missing}");
    other.done(&import);
    assert!(other.done(&call).starts_with("{\"words\":4,"));
    // What was imported can be exported again.
    other.done(&["export", "again", "--config", "cofferdam.toml"]);

    // The copy need not be trusted.
    let digest = Digest::of(&std::fs::read(guest("text")).unwrap()).hex();
    let blob = folder.path("copy/blobs/sha256").join(digest);
    std::fs::remove_file(&blob).unwrap();
    let absent = third.refused(4, &import);
    assert!(absent.contains("the layout does not contain sha256:"), "{absent}");
    std::fs::copy(guest("csv"), &blob).unwrap();
    let changed = third.run(&import);
    assert_ne!(changed.code, 0);
    assert_eq!(third.stored(), Vec::<String>::new(), "{}", changed.stderr);
}

#[test]
fn a_copy_contains_signatures_and_the_rules_hold_for_it() {
    let (registry, folder) = (Registry::start(), Folder::new());
    std::fs::copy(guest("text"), folder.path("text.wasm")).unwrap();
    for name in ["acme", "evil"] {
        folder.done(&["keys", "new", name]);
    }
    let reference = registry.reference("acme/text:1.0");
    folder.done(&["publish", "text.wasm", &reference, "--key", "acme.key"]);
    let host = registry.inner.host();
    let rule = |key: &str| format!("[[registry.trust]]\nfrom = \"{host}/*\"\nkeys = [\"{key}\"]\n");
    let (first, other) = (Folder::new(), Folder::new());
    for machine in [&first, &other] {
        for key in ["acme.pub", "evil.pub"] {
            std::fs::copy(folder.path(key), machine.path(key)).unwrap();
        }
        std::fs::write(machine.path("cofferdam.toml"), rule("acme.pub")).unwrap();
    }
    let config = ["--config", "cofferdam.toml"];
    let with = |words: &[&str]| [words, &config].concat().join(" ");
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let ran = |machine: &Folder, line: &str| {
        machine.run(&words(line).iter().map(String::as_str).collect::<Vec<_>>())
    };
    let done = |machine: &Folder, line: &str| {
        let ended = ran(machine, line);
        assert_eq!(ended.code, 0, "{line}: {}{}", ended.stdout, ended.stderr);
        ended.stdout
    };
    done(&first, &with(&["add", &reference, "--yes"]));
    // A machine that has only the lock file gets the signatures as well.
    let second = Folder::new();
    copy_files(&first, &second);
    std::fs::copy(first.path("acme.pub"), second.path("acme.pub")).unwrap();
    // A registry that fails is not one without signatures.
    registry.inner.intercept(|request| {
        let is_list = request.path.contains("/referrers/");
        let is_tag = request.path.contains("/manifests/sha256-");
        (is_list || is_tag).then(|| Reply::new(500, ""))
    });
    let unknown = ran(&second, &with(&["fetch", "--locked"]));
    assert_eq!(unknown.code, 4, "{}", unknown.stderr);
    assert!(unknown.stderr.contains("it is not known who signed"), "{}", unknown.stderr);
    registry.inner.intercept(|_| None);
    done(&second, &with(&["fetch", "--locked"]));
    // What has lost its signatures gets them again.
    std::fs::remove_dir_all(second.store().join("referrers")).unwrap();
    let again = ran(&second, &with(&["fetch", "--locked"]));
    assert!(again.stderr.contains("`text` is fetched"), "{}", again.stderr);
    let whole = ran(&second, &with(&["fetch", "--locked"]));
    assert!(whole.stderr.contains("`text` is on this machine"), "{}", whole.stderr);
    drop(registry);
    done(&second, &with(&["export", "copy"]));
    assert!(second.path("copy/trusted_root.json").exists());
    let index: Value = serde_json::from_str(&second.text("copy/index.json")).unwrap();
    // The plugin, its provenance, its signature, and the list of the two.
    assert_eq!(index["manifests"].as_array().unwrap().len(), 4, "{index}");

    // Without the lock file, a machine takes what the copy contains if its own rules accept it.
    let copy = second.path("copy").display().to_string();
    let add = with(&["add", &reference, "--yes", "--from", &copy]);
    std::fs::write(other.path("cofferdam.toml"), rule("evil.pub")).unwrap();
    let refused = ran(&other, &add);
    assert_eq!(refused.code, 4, "{}", refused.stdout);
    assert!(
        refused.stderr.contains("none of its 2 signatures is by the key"),
        "{}",
        refused.stderr
    );
    assert_eq!(other.stored(), Vec::<String>::new());
    std::fs::write(other.path("cofferdam.toml"), rule("acme.pub")).unwrap();
    let added = done(&other, &add);
    assert!(added.contains("signer     the key sha256:"), "{added}");
    let called = done(&other, &with(&["call", "word_count", "text=a"]));
    assert!(called.starts_with("{\"words\":1,"), "{called}");
    done(&other, &with(&["update", "--from", &copy]));
    let absent = ran(&other, &add.replace("text:1.0", "words:1.0"));
    assert!(absent.stderr.contains("does not contain oci://"), "{}", absent.stderr);
    let no_copy = ran(&other, &add.replace(&copy, "nowhere").replace("text:1.0", "words:1.0"));
    assert!(no_copy.stderr.contains("cannot be used as an image layout"), "{}", no_copy.stderr);
}

/// Makes the files of a store old enough to be removed.
fn age(directory: &Path) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let file = std::fs::File::open(entry.unwrap().path()).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(2 * 60 * 60)).unwrap();
    }
}

#[test]
fn plugins_that_no_lock_file_names_are_removed_from_the_store() {
    let (registry, folder) = (Registry::with_text(), Folder::new());
    registry.put("acme/csv", "1.0", "csv");
    let cache = folder.path("cache");
    let prune = || {
        let cache = cache.to_str().unwrap();
        let report = folder.done(&["cache", "prune", "--json", "--cache-dir", cache]);
        let report: Value = serde_json::from_str(&report).unwrap();
        report["artifacts"]["files"].as_u64().unwrap()
    };
    assert_eq!(prune(), 0);
    for name in ["text", "csv"] {
        let reference = registry.reference(&format!("acme/{name}:1.0"));
        folder.done(&["add", &reference, "--yes", UNSIGNED, "--config", "tools.toml"]);
    }
    let blobs = folder.store().join("blobs/sha256");
    let all = folder.stored().len();
    assert_eq!(prune(), 0);
    folder.done(&["remove", "csv", "--config", "tools.toml"]);
    assert_eq!(prune(), 0, "what is new stays");
    age(&blobs);
    assert!(prune() >= 2, "manifest and component");
    let left = folder.stored().len();
    assert!(left < all);
    registry.requests();
    assert!(folder.done(&["call", "word_count", "text=a", "--config", "tools.toml"]).contains('1'));
    assert_eq!(registry.requests(), 0);

    // A lock file that cannot be read protects everything.
    let lock = folder.text("tools.lock");
    std::fs::write(folder.path("tools.lock"), "{").unwrap();
    age(&blobs);
    let unreadable = folder.run(&["cache", "prune", "--cache-dir", cache.to_str().unwrap()]);
    assert_ne!(unreadable.code, 0);
    assert!(unreadable.stderr.contains("tools.lock"), "{}", unreadable.stderr);
    assert_eq!(folder.stored().len(), left);
    std::fs::write(folder.path("tools.lock"), lock).unwrap();
    assert_eq!(prune(), 0);
    std::fs::remove_file(folder.path("tools.lock")).unwrap();
    assert_eq!(prune(), u64::try_from(left).unwrap());
}
