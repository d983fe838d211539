//! Statements that `publish` makes and signs, and READMEs.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::{Value, json};

use cofferdam_tests::guest;

use super::{Folder, Registry};
use crate::cli::ran;

/// Types of the statements.
const CYCLONEDX: &str = "https://cyclonedx.org/bom";
const PROVENANCE: &str = "https://slsa.dev/provenance/v1";

/// Returns the plugin `text` with dependency data, as `cofferdam build` adds it.
fn text_with_dependencies() -> Vec<u8> {
    let packages = json!({"packages": [
        {"name": "serde", "version": "1.0.229", "source": "crates.io"},
        {"name": "text", "version": "0.1.0", "source": "local", "dependencies": [0], "root": true},
    ], "format": 1});
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(7));
    encoder.write_all(packages.to_string().as_bytes()).unwrap();
    let content = [&b"\x07.dep-v0"[..], &encoder.finish().unwrap()].concat();
    let length = content.len();
    assert!((0x80..0x4000).contains(&length), "two digits of LEB128");
    let low = u8::try_from(length & 0x7f).unwrap() | 0x80;
    let header = [0, low, u8::try_from(length >> 7).unwrap()];
    [std::fs::read(guest("text")).unwrap(), header.to_vec(), content].concat()
}

/// Returns a folder with a key and the plugin.
fn author() -> Folder {
    let folder = Folder::new();
    folder.done(&["keys", "new", "acme"]);
    std::fs::write(folder.path("text.wasm"), text_with_dependencies()).unwrap();
    folder
}

fn rule(registry: &Registry) -> String {
    let host = registry.inner.host();
    format!(
        "[[registry.trust]]\nfrom = \"{host}/acme/*\"\nkeys = [\"acme.pub\"]\nattested = \
         [\"cyclonedx\", \"provenance\"]\n"
    )
}

fn verify(folder: &Folder, reference: &str, more: &[&str]) -> String {
    folder.done(&[&["verify", reference, "--key", "acme.pub"], more].concat())
}

#[test]
fn what_a_plugin_is_built_of_is_signed_shown_and_required() {
    for lists_referrers in [false, true] {
        let (registry, folder) = (Registry::start(), author());
        if lists_referrers {
            registry.inner.list_referrers();
        }
        let reference = registry.reference("acme/text:1.0");
        let publish = ["publish", "text.wasm", &reference, "--key", "acme.key", "--json"];
        let published = folder.run(&publish);
        assert_eq!(published.code, 0, "{}", published.stderr);
        let report: Value = serde_json::from_str(&published.stdout).unwrap();
        assert_eq!(report["statements"], json!([CYCLONEDX, PROVENANCE]));
        let note = format!("signed statements: {CYCLONEDX}, {PROVENANCE}");
        assert!(published.stderr.contains(&note), "{}", published.stderr);

        // Nothing is signed twice.
        registry.requests();
        assert_eq!(folder.done(&publish), published.stdout);
        let requests = registry.inner.take_requests();
        let is_put = |path: &str| path.contains("/manifests/sha256:");
        let manifests = requests.iter().filter(|it| it.method == "PUT" && is_put(&it.path));
        assert_eq!(manifests.count(), 1, "only that of the plugin: {requests:?}");

        let shown = verify(&folder, &reference, &[]);
        assert!(shown.contains(&format!("\nstates {CYCLONEDX}: 2 components")), "{shown}");
        let built = format!("\nstates {PROVENANCE}: by urn:cofferdam:builder:local\n");
        assert!(shown.contains(&built), "{shown}");
        let shown: Value = serde_json::from_str(&verify(&folder, &reference, &["--json"])).unwrap();
        let mut statements = shown["statements"].as_array().unwrap().clone();
        statements.sort_by_key(|it| it["type"].to_string());
        assert_eq!(
            statements,
            [
                json!({"type": CYCLONEDX, "components": 2}),
                json!({"type": PROVENANCE, "builder": "urn:cofferdam:builder:local"}),
            ]
        );
        let list = verify(&folder, &reference, &["--statement", "cyclonedx"]);
        let list: Value = serde_json::from_str(&list).unwrap();
        assert_eq!(list["components"][1]["purl"], "pkg:cargo/serde@1.0.229", "{list}");
        assert_eq!(list["metadata"]["component"]["version"], "1.0", "{list}");
        let verify = ["verify", &reference, "--key", "acme.pub", "--statement", "spdx"];
        let missing = folder.refused(4, &verify);
        assert!(missing.contains("has signed no statement of the type `https://spdx.dev/"));

        std::fs::write(folder.path("tools.toml"), rule(&registry)).unwrap();
        let added = folder.done(&["add", &reference, "--yes", "--config", "tools.toml"]);
        assert!(added.contains(&format!("states     {CYCLONEDX}: ")), "{added}");
    }
}

#[test]
fn statements_of_the_author_replace_others_and_can_be_left_out() {
    let (registry, folder) = (Registry::start(), author());
    let reference = registry.reference("acme/text:1.0");
    let publish = ["publish", "text.wasm", &reference, "--json"];
    let report = |more: &[&str]| -> Value {
        let published = folder.done(&[&publish[..], more].concat());
        serde_json::from_str::<Value>(&published).unwrap()["statements"].clone()
    };
    assert_eq!(report(&[]), json!([]));
    assert_eq!(report(&["--key", "acme.key", "--no-statements"]), json!([]));
    let shown = verify(&folder, &reference, &[]);
    assert!(shown.contains("signed by the key") && !shown.contains("states"), "{shown}");
    std::fs::write(folder.path("tools.toml"), rule(&registry)).unwrap();
    let add = ["add", &reference, "--yes", "--config", "tools.toml"];
    let refused = folder.refused(4, &add);
    assert!(refused.contains(CYCLONEDX), "{refused}");

    std::fs::write(folder.path("bom.json"), "{\"components\":[{}]}").unwrap();
    let own = ["--key", "acme.key", "--attest", "cyclonedx=bom.json"];
    assert_eq!(report(&own), json!([CYCLONEDX, PROVENANCE]));
    let list = verify(&folder, &reference, &["--statement", "cyclonedx"]);
    assert_eq!(list, "{\"components\":[{}]}\n");
    folder.done(&add);

    // Without dependency data, there is no list. Invalid data is an error with a way out.
    std::fs::copy(guest("text"), folder.path("text.wasm")).unwrap();
    assert_eq!(report(&["--key", "acme.key"]), json!([PROVENANCE]));
    let broken = [std::fs::read(guest("text")).unwrap(), b"\x00\x09\x07.dep-v0x".to_vec()].concat();
    std::fs::write(folder.path("text.wasm"), broken).unwrap();
    let invalid = folder.refused(2, &[&publish[..], &["--key", "acme.key"]].concat());
    assert!(invalid.contains("is not compressed with zlib"), "{invalid}");
    assert!(invalid.contains("--no-statements"), "{invalid}");
    assert_eq!(report(&["--key", "acme.key", "--no-statements"]), json!([]));
}

/// Runs git in a folder and returns its output.
fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=acme", "-c", "user.email=acme@acme.example"]);
    let ended = ran(git.args(arguments).current_dir(folder).output().unwrap());
    assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.stderr);
    ended.stdout.trim().to_owned()
}

#[test]
fn a_provenance_names_the_commit_and_nothing_of_the_machine() {
    let (registry, folder) = (Registry::start(), author());
    let project = folder.path("project");
    std::fs::create_dir_all(project.join("dist")).unwrap();
    std::fs::copy(folder.path("text.wasm"), project.join("dist/text.wasm")).unwrap();
    std::fs::write(project.join(".gitignore"), "dist/\n").unwrap();
    std::fs::write(project.join("README.md"), "# Text\n").unwrap();
    git(&project, &["init", "--quiet"]);
    git(&project, &["add", "--all"]);
    git(&project, &["commit", "--quiet", "--message", "first"]);
    let commit = git(&project, &["rev-parse", "HEAD"]);

    let reference = registry.reference("acme/text:1.0");
    let source = "https://git.example/text";
    let publish = |reference: &str| {
        let component = "project/dist/text.wasm";
        let mut command = folder.command(&["publish", component, reference, "--key", "acme.key"]);
        command.args(["--source", source]);
        command
    };
    let published = ran(publish(&reference).output().unwrap());
    assert_eq!(published.code, 0, "{}", published.stderr);
    let stated = verify(&folder, &reference, &["--statement", "provenance"]);
    let stated: Value = serde_json::from_str(&stated).unwrap();
    let definition = &stated["buildDefinition"];
    let expected = json!([{"digest": {"gitCommit": commit}, "uri": format!("git+{source}")}]);
    assert_eq!(definition["resolvedDependencies"], expected, "{stated}");
    assert_eq!(definition["internalParameters"]["dirty"], false, "{stated}");
    let directory = folder.0.path().display().to_string();
    assert!(!stated.to_string().contains(&directory), "{stated}");
    assert_eq!(verify(&folder, &reference, &["--readme"]), "# Text\n");

    // Changed files are stated, and the README is the new one.
    std::fs::write(project.join("README.md"), "# New\n").unwrap();
    let published = ran(publish(&reference).output().unwrap());
    assert!(published.stderr.contains("README.md is published"), "{}", published.stderr);
    let shown = verify(&folder, &reference, &[]);
    assert!(shown.contains(&format!("from commit {commit} with changes")), "{shown}");
    let both = verify(&folder, &reference, &["--statement", "provenance"]);
    assert_eq!(both.lines().count(), 2, "{both}");
    assert_eq!(verify(&folder, &reference, &["--readme"]), "# New\n");

    // In a workflow, that is the builder.
    let reference = registry.reference("acme/workflow:1.0");
    let mut command = publish(&reference);
    let workflow = "acme/text/.github/workflows/release.yml@refs/tags/v1";
    for (name, value) in [
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_SERVER_URL", "https://github.com"),
        ("GITHUB_REPOSITORY", "acme/text"),
        ("GITHUB_WORKFLOW_REF", workflow),
        ("GITHUB_REF", "refs/tags/v1"),
        ("RUNNER_ENVIRONMENT", "github-hosted"),
    ] {
        command.env(name, value);
    }
    let published = ran(command.output().unwrap());
    assert_eq!(published.code, 0, "{}", published.stderr);
    let shown = verify(&folder, &reference, &[]);
    assert!(shown.contains(&format!("by https://github.com/{workflow}, from commit")), "{shown}");
}

#[test]
fn a_readme_is_stored_beside_the_plugin_unless_it_is_left_out() {
    for lists_referrers in [false, true] {
        let (registry, folder) = (Registry::start(), author());
        if lists_referrers {
            registry.inner.list_referrers();
        }
        std::fs::write(folder.path("README.md"), "# Text\n\nCounts words.\n").unwrap();
        std::fs::write(folder.path("other.md"), "# Other").unwrap();
        let reference = |tag: &str| registry.reference(&format!("acme/text:{tag}"));
        let publish = |tag: &str, more: &[&str]| {
            let reference = reference(tag);
            let publish = ["publish", "text.wasm", &reference, "--key", "acme.key"];
            folder.done(&[&publish[..], more].concat())
        };
        let pinned = publish("1", &[]);
        assert_eq!(publish("1", &[]), pinned);
        let read = |tag: &str| verify(&folder, &reference(tag), &["--readme"]);
        assert_eq!(read("1"), "# Text\n\nCounts words.\n");
        publish("2", &["--readme", "other.md"]);
        assert_eq!(read("2"), "# Other\n");
        publish("3", &["--no-readme"]);
        let verify = ["verify", &reference("3"), "--key", "acme.pub", "--readme"];
        let none = folder.refused(4, &verify);
        assert!(none.contains("has no README"), "{none}");

        // Other programs require one layer.
        let add = ["add", pinned.trim(), "--yes", super::UNSIGNED];
        folder.done(&add);
        folder.counts_words();
        std::fs::write(folder.path("other.md"), [0xff, 0xfe]).unwrap();
        let tag = reference("4");
        let broken = ["publish", "text.wasm", &tag, "--readme", "other.md"];
        let refused = folder.run(&broken);
        assert_ne!(refused.code, 0);
        assert!(refused.stderr.contains("--no-readme"), "{}", refused.stderr);
        assert_eq!(registry.inner.tag("acme/text", "4"), None);
    }
}
