//! Sets of plugins: published from a configuration, and added as one.

use cofferdam_registry::testing::Reply;
use cofferdam_tests::guest;
use serde_json::Value;

use super::{Folder, Registry, UNSIGNED, kill_at_times};

const CONFIG: [&str; 2] = ["--config", "tools.toml"];

/// Publishes two signed plugins and the set of them, from a folder with the keys.
fn published() -> (Registry, Folder, String) {
    let (registry, author) = (Registry::start(), Folder::new());
    author.done(&["keys", "new", "acme"]);
    author.done(&["keys", "new", "team"]);
    let host = registry.inner.host();
    let rule = format!(
        "[[registry.trust]]\nfrom = \"{host}/acme/*\"\nkeys = [\"acme.pub\"]\n\n[stores]\n"
    );
    std::fs::write(author.path("tools.toml"), rule + "reports = { directory = \".\" }\n").unwrap();
    for name in ["text", "csv"] {
        let file = format!("{name}.wasm");
        std::fs::copy(guest(name), author.path(&file)).unwrap();
        let reference = registry.reference(&format!("acme/{name}:1.0"));
        author.done(&["publish", &file, &reference, "--key", "acme.key"]);
        author.done(&[&["add", &reference, "--yes"][..], &CONFIG].concat());
    }
    let grant = ["grant", "csv", "files:reports=read-only"];
    author.done(&[&grant[..], &CONFIG].concat());
    let reference = registry.reference("team/tools:1.0");
    author.done(&["publish", "tools.toml", &reference, "--key", "team.key"]);
    (registry, author, reference)
}

/// Returns the folder of a user who trusts the author of the set.
fn user(registry: &Registry, author: &Folder) -> Folder {
    let folder = Folder::new();
    std::fs::copy(author.path("team.pub"), folder.path("team.pub")).unwrap();
    let host = registry.inner.host();
    let rule = format!("[[registry.trust]]\nfrom = \"{host}/team/*\"\nkeys = [\"team.pub\"]\n");
    std::fs::write(folder.path("tools.toml"), rule).unwrap();
    folder
}

#[test]
fn a_set_is_published_and_its_plugins_are_added_without_its_grants() {
    let (registry, author, reference) = published();
    let folder = user(&registry, &author);
    let add = [&["add", &reference, "--yes"][..], &CONFIG].concat();
    let added = folder.run(&add);
    assert_eq!(added.code, 0, "{}{}", added.stdout, added.stderr);
    for part in ["signer     the key sha256:", "name       csv", "name       text", "word_count("] {
        assert!(added.stdout.contains(part), "{part}: {}", added.stdout);
    }
    let suggested = "cofferdam grant csv files:reports=read-only --config tools.toml";
    assert!(added.stderr.contains(suggested), "{}", added.stderr);
    assert!(!added.stderr.contains("to `text`"), "{}", added.stderr);
    let config = folder.text("tools.toml");
    assert!(!config.contains("grants"), "{config}");
    let source = registry.reference("acme/csv:1.0");
    assert!(config.contains(&format!("[plugins.csv]\ncomponent = \"{source}\"")), "{config}");
    let call = [&["call", "word_count", "text=a b"][..], &CONFIG].concat();
    assert!(folder.done(&call).starts_with("{\"words\":2,"));
    assert_eq!(
        folder.done(&[&["update", "--check", "--json", UNSIGNED][..], &CONFIG].concat()).trim(),
        "[]"
    );

    // What is there already is not added again, and other plugins are not replaced.
    let again = folder.run(&add);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(again.stderr.contains("`csv` is in tools.toml already"), "{}", again.stderr);
    folder.done(&[&["remove", "text"][..], &CONFIG].concat());
    std::fs::copy(guest("csv"), folder.path("other.wasm")).unwrap();
    folder.done(&[&["add", "other.wasm", "--name", "text", "--yes"][..], &CONFIG].concat());
    let other = folder.refused(2, &add);
    assert!(other.contains("has another plugin `text` than the set"), "{other}");
    folder.refused(2, &[&add[..], &["--name", "x"]].concat());
}

#[test]
fn a_set_pins_the_bytes_and_the_rules_hold_for_its_plugins() {
    let (registry, author, reference) = published();
    // The tag moves; the set has the digest.
    registry.put("acme/text", "1.0", "csv");
    let folder = user(&registry, &author);
    let add = [&["add", &reference, "--yes"][..], &CONFIG].concat();
    folder.done(&add);
    assert!(folder.done(&[&["list"][..], &CONFIG].concat()).contains("word_count"));

    // A rule about a plugin holds with any signer of the set.
    let strict = user(&registry, &author);
    let host = registry.inner.host();
    let rule = format!(
        "{}\n[[registry.trust]]\nfrom = \"{host}/acme/csv\"\nkeys = [\"team.pub\"]\n",
        strict.text("tools.toml")
    );
    std::fs::write(strict.path("tools.toml"), rule).unwrap();
    let refused = strict.refused(4, &add);
    assert!(refused.contains("none of its 2 signatures is by the key"), "{refused}");
    assert!(!strict.text("tools.toml").contains("[plugins"));
    // Without a rule about the set, no signature of it is trusted.
    let without_rule = Folder::new();
    let refused = without_rule.refused(4, &["add", &reference, "--yes"]);
    assert!(refused.contains("no rule of [[registry.trust]]"), "{refused}");
    without_rule.done(&["add", &reference, "--yes", UNSIGNED]);
    without_rule.counts_words();

    // Other bytes of the set are refused.
    let third = user(&registry, &author);
    registry.inner.intercept(|request| {
        let is_blob = request.path.contains("/team/tools/blobs/") && request.method == "GET";
        is_blob.then(|| Reply::new(200, "{\"plugins\":{}}"))
    });
    let refused = third.refused(4, &add);
    assert!(refused.contains("has the digest sha256:"), "{refused}");
    assert!(!third.path("tools.lock").exists());
}

#[test]
fn a_set_is_no_plugin_and_a_file_is_no_part_of_a_set() {
    let (_registry, author, reference) = published();
    let folder = Folder::new();
    let config = format!("[plugins.tools]\ncomponent = \"{reference}\"\n");
    std::fs::write(folder.path("cofferdam.toml"), config).unwrap();
    let fetch = ["fetch", "--yes", UNSIGNED, "--config", "cofferdam.toml"];
    let refused = folder.refused(2, &fetch);
    assert!(refused.contains("is a set of plugins; add them with `cofferdam add"), "{refused}");
    author.done(&[&["add", "text.wasm", "--name", "local", "--yes"][..], &CONFIG].concat());
    let refused = author.refused(2, &["publish", "tools.toml", &reference]);
    assert!(refused.contains("the plugin `local` is the file text.wasm; publish it"), "{refused}");
    let json = ["add", &reference, "--yes", UNSIGNED, "--json", "--config", "new.toml"];
    let added: Value = serde_json::from_str(&folder.done(&json)).unwrap();
    assert_eq!(added["plugins"].as_array().unwrap().len(), 2, "{added}");
}

#[test]
fn a_killed_add_of_a_set_adds_all_or_nothing() {
    let (_registry, _author, reference) = published();
    let add = ["add", &reference, "--yes", UNSIGNED, "--config", "tools.toml"];
    kill_at_times(
        |_| add.map(str::to_owned).to_vec(),
        |folder| {
            let config = std::fs::read_to_string(folder.path("tools.toml")).unwrap_or_default();
            let has = |name: &str| config.contains(&format!("[plugins.{name}]"));
            assert_eq!(has("csv"), has("text"), "{config}");
            if has("csv") {
                folder.done(&["call", "word_count", "text=a b", "--config", "tools.toml"]);
            }
            has("csv")
        },
    );
}
