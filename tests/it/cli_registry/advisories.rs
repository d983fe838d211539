//! Security advisories: audits, plugins that are refused, and notes about those that run.

use cofferdam_registry::Digest;
use cofferdam_tests::guest;
use serde_json::{Value, json};

use super::{Folder, Registry};

const CONFIG: [&str; 2] = ["--config", "tools.toml"];
/// Address where no server listens.
const ADDRESS: &str = "https://127.0.0.1:1/osv.json";

/// Starts a registry with the plugin `text` at `acme/text:1.2.0`, and writes a configuration that
/// reads the advisories of the folder `osv`.
fn start() -> (Registry, Folder) {
    let (registry, folder) = (Registry::start(), Folder::new());
    registry.put("acme/text", "1.2.0", "text");
    std::fs::create_dir(folder.path("osv")).unwrap();
    write_config(&folder, "advisories = [\"osv\"]");
    (registry, folder)
}

fn write_config(folder: &Folder, keys: &str) {
    let config = format!("[registry]\nunsigned = \"allow\"\n{keys}\n");
    std::fs::write(folder.path("tools.toml"), config).unwrap();
}

/// Replaces a part of the configuration.
fn edit_config(folder: &Folder, from: &str, to: &str) {
    let before = folder.text("tools.toml");
    assert!(before.contains(from), "{before}");
    std::fs::write(folder.path("tools.toml"), before.replace(from, to)).unwrap();
}

fn with_config<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &CONFIG].concat()
}

fn add(registry: &Registry, folder: &Folder) {
    folder.done(&with_config(&["add", &registry.reference("acme/text:1.2.0"), "--yes"]));
}

/// Returns an advisory with an element of `affected`.
fn advisory(affected: Value) -> String {
    json!({
        "schema_version": "1.7.0",
        "id": "OSV-2026-1",
        "aliases": ["CVE-2026-1"],
        "summary": "Reads too much",
        "affected": [affected],
        "references": [{"type": "ADVISORY", "url": "https://example.com/OSV-2026-1"}],
    })
    .to_string()
}

/// Returns an advisory about versions of `acme/text` before 1.3.0.
fn early_versions(registry: &Registry) -> String {
    let name = format!("{}/acme/text", registry.inner.host());
    advisory(json!({
        "package": {"ecosystem": "OCI", "name": name},
        "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": "1.3.0"}]}],
    }))
}

fn write_advisory(folder: &Folder, content: &str) {
    std::fs::write(folder.path("osv/a.json"), content).unwrap();
}

fn count_words(folder: &Folder) -> String {
    let called = folder.run(&with_config(&["call", "word_count", "text=a b c"]));
    assert_eq!(called.code, 0, "{}", called.stderr);
    assert!(called.stdout.starts_with("{\"words\":3,"), "{}", called.stdout);
    called.stderr
}

#[test]
fn an_audit_lists_plugins_that_an_advisory_affects_and_they_still_run() {
    let (registry, folder) = start();
    add(&registry, &folder);
    registry.requests();
    let audit = with_config(&["audit"]);
    let clean = folder.run(&audit);
    assert_eq!((clean.code, clean.stdout.as_str()), (0, ""), "{}", clean.stderr);
    assert!(clean.stderr.contains("no plugin is affected"), "{}", clean.stderr);
    assert!(!count_words(&folder).contains("affected"));

    write_advisory(&folder, &early_versions(&registry));
    let found = folder.run(&audit);
    assert_eq!(found.code, 4, "{}", found.stderr);
    let expected = "text 1.2.0: OSV-2026-1\n  Reads too much\n  fixed in: 1.3.0\n  see: \
                    https://example.com/OSV-2026-1\n";
    assert_eq!(found.stdout, expected);
    let json = folder.run(&with_config(&["audit", "--json", "--offline"]));
    assert_eq!(json.code, 4, "{}", json.stderr);
    let findings: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(findings.as_array().unwrap().len(), 1, "{findings}");
    for (key, value) in [
        ("plugin", json!("text")),
        ("source", json!(registry.reference("acme/text:1.2.0"))),
        ("version", json!("1.2.0")),
        ("id", json!("OSV-2026-1")),
        ("aliases", json!(["CVE-2026-1"])),
        ("severity", json!(null)),
        ("fixed", json!("1.3.0")),
        ("ignored", json!(false)),
    ] {
        assert_eq!(findings[0][key], value, "{key}: {findings}");
    }
    let notes = count_words(&folder);
    let note = "the plugin `text` is affected by OSV-2026-1 (Reads too much)";
    assert_eq!(notes.matches(note).count(), 1, "{notes}");

    let ignored = "[\"osv\"]\nignored-advisories = [\"CVE-2026-1\"]";
    edit_config(&folder, "[\"osv\"]", ignored);
    let json = folder.done(&with_config(&["audit", "--json"]));
    let findings: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(findings[0]["ignored"], true, "{findings}");
    assert!(!count_words(&folder).contains("affected"));
    assert_eq!(registry.requests(), 0);
}

#[test]
fn digests_of_components_and_of_manifests_match() {
    let (registry, folder) = start();
    add(&registry, &folder);
    std::fs::copy(guest("csv"), folder.path("csv.wasm")).unwrap();
    folder.done(&with_config(&["add", "csv.wasm", "--yes"]));
    let lock: Value = serde_json::from_str(&folder.text("tools.lock")).unwrap();
    let origin = &lock["plugins"]["text"]["origin"];
    let audit = with_config(&["audit"]);
    for (digest, plugin) in [
        (&origin["layer"], "text 1.2.0"),
        (&origin["manifest"], "text 1.2.0"),
        (&lock["plugins"]["csv"]["component"], "csv"),
    ] {
        write_advisory(&folder, &advisory(json!({"versions": [digest]})));
        let found = folder.run(&audit);
        assert_eq!(found.code, 4, "{}", found.stderr);
        assert!(found.stdout.starts_with(&format!("{plugin}: OSV-2026-1\n")), "{}", found.stdout);
    }
}

#[test]
fn a_version_that_an_advisory_affects_is_not_accepted() {
    let (registry, folder) = start();
    write_advisory(&folder, &early_versions(&registry));
    let reference = registry.reference("acme/text:1.2.0");
    let add_text = with_config(&["add", &reference, "--yes"]);
    let before = folder.text("tools.toml");
    let refused = folder.refused(4, &add_text);
    let reason = format!(
        "{reference} is affected by OSV-2026-1 (Reads too much); version 1.3.0 is not; to use it \
         nevertheless, add \"OSV-2026-1\" to `ignored-advisories` in [registry]"
    );
    assert!(refused.contains(&reason), "{refused}");
    assert_eq!(folder.text("tools.toml"), before);
    assert!(!folder.path("tools.lock").exists());

    // A plugin that is not locked is refused like a new one.
    let entry = format!("{before}\n[plugins.text]\ncomponent = \"{reference}\"\n");
    std::fs::write(folder.path("tools.toml"), entry).unwrap();
    let refused = folder.refused(4, &with_config(&["fetch", "--yes"]));
    assert!(refused.contains(&reason), "{refused}");
    let unlocked = folder.run(&with_config(&["audit"]));
    assert!(unlocked.stderr.contains("`text` is not in the lock file"), "{}", unlocked.stderr);

    write_config(&folder, "advisories = [\"osv\"]\nignored-advisories = [\"OSV-2026-1\"]");
    folder.done(&add_text);
}

#[test]
fn an_update_to_an_affected_version_is_refused_and_the_old_one_stays() {
    let (registry, folder) = start();
    let component = Digest::of(&std::fs::read(guest("csv")).unwrap());
    write_advisory(&folder, &advisory(json!({"versions": [component]})));
    add(&registry, &folder);
    registry.put("acme/text", "1.2.0", "csv");
    let before = folder.text("tools.lock");
    let refused = folder.refused(4, &with_config(&["update", "--yes"]));
    assert!(refused.contains("is affected by OSV-2026-1 (Reads too much); to use"), "{refused}");
    assert_eq!(folder.text("tools.lock"), before);
    assert!(!count_words(&folder).contains("affected"));
}

#[test]
fn advisories_that_cannot_be_read_are_errors_and_keep_no_plugin_from_running() {
    let (registry, folder) = start();
    add(&registry, &folder);
    write_advisory(&folder, "{}");
    let reference = registry.reference("acme/text:1.2.0");
    for arguments in [
        with_config(&["audit"]),
        with_config(&["add", &reference, "--name", "words", "--yes"]),
        vec!["config", "check", "tools.toml"],
    ] {
        let invalid = folder.refused(2, &arguments);
        assert!(invalid.contains("a.json cannot be used: expected an `id`"), "{invalid}");
    }
    let notes = count_words(&folder);
    assert!(notes.contains("advisories are not checked: "), "{notes}");
    assert!(notes.contains("a.json cannot be used"), "{notes}");

    edit_config(&folder, "advisories = [\"osv\"]", "");
    let none = folder.refused(2, &with_config(&["audit"]));
    assert!(none.contains("tools.toml names no advisories"), "{none}");
}

#[test]
fn advisories_of_an_address_are_used_from_their_copy() {
    let (registry, folder) = start();
    add(&registry, &folder);
    edit_config(&folder, "\"osv\"", &format!("\"{ADDRESS}\""));
    let update = with_config(&["update", "--yes"]);
    for arguments in [&with_config(&["audit"]), &update] {
        let unreachable = folder.refused(4, arguments);
        assert!(unreachable.contains("reading /osv.json: no connection"), "{unreachable}");
    }
    let offline = with_config(&["audit", "--offline"]);
    let missing = folder.refused(4, &offline);
    assert!(missing.contains("run `cofferdam audit` without --offline"), "{missing}");
    let notes = count_words(&folder);
    assert!(notes.contains("`cofferdam audit` downloads them"), "{notes}");

    let copies = folder.path("home/.local/state/cofferdam/advisories");
    std::fs::create_dir_all(&copies).unwrap();
    let copy = copies.join(Digest::of(ADDRESS.as_bytes()).hex()).with_extension("json");
    std::fs::write(copy, format!("[{}]", early_versions(&registry))).unwrap();
    let found = folder.run(&offline);
    assert_eq!(found.code, 4, "{}", found.stderr);
    assert!(found.stdout.starts_with("text 1.2.0: OSV-2026-1\n"), "{}", found.stdout);
    assert!(count_words(&folder).contains("is affected by OSV-2026-1"));
    let updated = folder.run(&update);
    assert_eq!(updated.code, 0, "{}", updated.stderr);
    for part in ["may be out of date: ", "`text` is unchanged"] {
        assert!(updated.stderr.contains(part), "{part}: {}", updated.stderr);
    }
}
