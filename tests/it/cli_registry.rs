//! The binary and plugins from registries: search, add, fetch, update, remove, publish, audit, and
//! what a registry or a killed process can do to them.

mod advisories;
mod clients;
mod copies;
mod interpreter;
mod real;
mod search;
mod sets;
mod signatures;
mod statements;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cofferdam_registry::testing::{Reply, TestRegistry};
use cofferdam_registry::{
    Digest, Reference, RegistryClient, RegistrySettings, SignatureBundle, WasmArtifact,
};
use cofferdam_tests::{binary, guest, shared_cache};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::cli::{Ran, ran};
use crate::wire::Pipe;

/// Flag for plugins that no rule about signatures is about.
const UNSIGNED: &str = "--allow-unsigned";

/// Folder of a user.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache());
        command.env("HOME", self.path("home")).current_dir(self.0.path());
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        ran(self.command(arguments).output().unwrap())
    }

    /// Runs a command that must succeed, and returns its output.
    fn done(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, 0, "{arguments:?}: {}{}", ended.stdout, ended.stderr);
        ended.stdout
    }

    /// Runs a command that must fail with `code`, and returns its messages.
    fn refused(&self, code: i32, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, code, "{arguments:?}: {}{}", ended.stdout, ended.stderr);
        ended.stderr
    }

    fn counts_words(&self) {
        let counted = self.done(&["call", "word_count", "text=a b c"]);
        assert!(counted.starts_with("{\"words\":3,"), "{counted}");
    }

    fn store(&self) -> PathBuf {
        self.path("home/.local/state/cofferdam/artifacts")
    }

    /// Returns the blobs of the store and the files that were left beside them.
    fn stored(&self) -> Vec<String> {
        let folder = self.store().join("blobs/sha256");
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    fn lock(&self) -> Value {
        serde_json::from_str(&self.text("cofferdam.lock")).unwrap()
    }
}

/// Registry with a runtime of its own.
struct Registry {
    inner: TestRegistry,
    runtime: Runtime,
}

impl Registry {
    fn start() -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().unwrap();
        let inner = runtime.block_on(TestRegistry::start()).unwrap();
        Self { inner, runtime }
    }

    /// Starts a registry with the plugin `text` at `acme/text:1.0`.
    fn with_text() -> Self {
        let registry = Self::start();
        registry.put("acme/text", "1.0", "text");
        registry
    }

    /// Lets a tag name a guest. Returns its component's digest.
    fn put(&self, repository: &str, tag: &str, name: &str) -> Digest {
        let component = std::fs::read(guest(name)).unwrap();
        let digest = Digest::of(&component);
        let version = ("org.opencontainers.image.version".to_owned(), tag.to_owned());
        let annotations = BTreeMap::from([version]);
        let artifact = WasmArtifact::new(component.into(), &[], &[], &annotations).unwrap();
        self.inner.add(repository, tag, &artifact);
        digest
    }

    /// Adds a signature to what `reference` names.
    fn sign(&self, reference: &str, bundle: Vec<u8>) {
        let client = RegistryClient::new(RegistrySettings::default()).unwrap();
        let reference: Reference = reference.parse().unwrap();
        self.runtime.block_on(async {
            let manifest = client.manifest(&reference).await.unwrap();
            let bundle = SignatureBundle::from_bytes(bundle);
            client.push_signature(&reference, &manifest, &bundle).await.unwrap();
        });
    }

    fn reference(&self, name: &str) -> String {
        self.inner.reference(name)
    }

    /// Returns the number of requests since the last call of this function.
    fn requests(&self) -> usize {
        self.inner.take_requests().len()
    }
}

#[test]
fn a_plugin_is_added_called_and_removed_and_only_add_uses_the_network() {
    let (registry, folder) = (Registry::with_text(), Folder::new());
    let reference = registry.reference("acme/text:1.0");
    let digest = Digest::of(&std::fs::read(guest("text")).unwrap());
    let refused = folder.refused(4, &["add", &reference, UNSIGNED]);
    assert!(refused.contains("nothing was changed"), "{refused}");
    assert!(!folder.path("cofferdam.toml").exists() && !folder.path("cofferdam.lock").exists());

    let added = folder.run(&["add", &reference, "--yes", UNSIGNED]);
    assert_eq!(added.code, 0, "{}", added.stderr);
    for part in [&reference, &digest.to_string(), "version    1.0", "word_count("] {
        assert!(added.stdout.contains(part), "{part}: {}", added.stdout);
    }
    let config = folder.text("cofferdam.toml");
    assert!(config.contains(&format!("[plugins.text]\ncomponent = \"{reference}\"")), "{config}");
    let lock = folder.lock();
    let origin = &lock["plugins"]["text"]["origin"];
    assert_eq!(origin["source"], *reference);
    assert_eq!(origin["layer"], digest.to_string());
    assert!(origin["manifest"].as_str().unwrap().starts_with("sha256:"), "{origin}");

    assert!(registry.requests() > 0);
    folder.counts_words();
    folder.done(&["list"]);
    folder.done(&["fetch", "--locked"]);
    folder.done(&["config", "check", "cofferdam.toml"]);
    assert_eq!(registry.requests(), 0);
    drop(registry);
    folder.counts_words();

    let twice = folder.refused(2, &["add", &reference, "--yes", UNSIGNED]);
    assert!(twice.contains("has a plugin `text`; give the new one another name"), "{twice}");
    folder.done(&["remove", "text"]);
    assert!(folder.lock()["plugins"].get("text").is_none());
    let gone = folder.refused(2, &["remove", "text"]);
    assert!(gone.contains("has no plugin `text`"), "{gone}");
}

#[test]
fn files_are_added_as_well_and_keep_their_path() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("dist")).unwrap();
    std::fs::copy(guest("text"), folder.path("dist/text.wasm")).unwrap();
    folder.done(&["add", "dist/text.wasm", "--yes", "--name", "words"]);
    assert!(folder.text("cofferdam.toml").contains("component = \"dist/text.wasm\""));
    folder.counts_words();
    let none = folder.run(&["fetch"]);
    assert!(none.stderr.contains("no plugin of the configuration is fetched"), "{}", none.stderr);
    let file = folder.refused(2, &["update", "words"]);
    assert!(file.contains("is a file"), "{file}");
}

#[test]
fn another_machine_gets_the_locked_bytes_even_if_the_tag_has_moved() {
    let (registry, folder) = (Registry::with_text(), Folder::new());
    folder.done(&["add", &registry.reference("acme/text:1.0"), "--yes", UNSIGNED]);
    let other = Folder::new();
    for name in ["cofferdam.toml", "cofferdam.lock"] {
        std::fs::copy(folder.path(name), other.path(name)).unwrap();
    }
    registry.put("acme/text", "1.0", "csv");
    registry.requests();
    let flags = ["--config", "cofferdam.toml"];
    let call = ["call", "word_count", "text=a"];
    let missing = other.refused(4, &[&call[..], &flags].concat());
    assert!(missing.contains("is not on this machine; run `cofferdam fetch"), "{missing}");
    assert_eq!(registry.requests(), 0);

    other.done(&[&["fetch", "--locked"], &flags[..]].concat());
    let requests = registry.inner.take_requests();
    let by_tag = |path: &str| path.contains("/manifests/") && !path.contains("/manifests/sha256:");
    assert!(!requests.iter().any(|request| by_tag(&request.path)), "{requests:?}");
    assert!(other.done(&[&call[..], &flags].concat()).starts_with("{\"words\":1,"));

    // Without its entry, nothing is fetched silently.
    std::fs::remove_file(other.path("cofferdam.lock")).unwrap();
    let unlocked = other.refused(4, &[&["fetch", "--locked"], &flags[..]].concat());
    assert!(unlocked.contains("is not in"), "{unlocked}");
    let unlocked = other.refused(4, &[&call[..], &flags].concat());
    assert!(unlocked.contains("run `cofferdam fetch"), "{unlocked}");
}

#[test]
fn an_update_is_a_difference_and_a_question() {
    let (registry, folder) = (Registry::with_text(), Folder::new());
    let reference = registry.reference("acme/text:1.0");
    folder.done(&["add", &reference, "--yes", UNSIGNED]);
    folder.done(&["call", "word_count", "text=a b c", "--replayable"]);
    assert_eq!(folder.done(&["update", "--check", "--json", UNSIGNED]).trim(), "[]");
    folder.done(&["list", "--outdated"]);

    let digest = registry.put("acme/text", "1.0", "csv");
    let changed = folder.run(&["update", "--check", "--json", UNSIGNED]);
    assert_eq!(changed.code, 4, "{}", changed.stderr);
    let changes: Value = serde_json::from_str(&changed.stdout).unwrap();
    assert_eq!(changes[0]["after"]["layer"], digest.to_string());
    let outdated = folder.run(&["list", "--outdated"]);
    assert_eq!(outdated.code, 4, "{}", outdated.stderr);
    assert!(outdated.stdout.starts_with("text  sha256:"), "{}", outdated.stdout);
    let requests = registry.inner.take_requests();
    assert!(requests.iter().all(|it| !it.path.ends_with(&digest.to_string())), "{requests:?}");
    let before = folder.text("cofferdam.lock");

    let shown = folder.run(&["update", UNSIGNED]);
    assert_eq!(shown.code, 4, "{}", shown.stderr);
    assert_eq!(folder.text("cofferdam.lock"), before);
    let text = format!("{}{}", shown.stdout, shown.stderr);
    for part in [
        "+ asks files:*=read-only",
        "to grant it: cofferdam grant text 'files:*=read-only' --config cofferdam.toml",
        "+ imports wasi:filesystem/preopens",
        "- tool word_count",
        "+ tool schema",
        "nothing was changed",
        "replayed",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    folder.counts_words();

    folder.done(&["update", "--yes", UNSIGNED]);
    assert_eq!(folder.lock()["plugins"]["text"]["origin"]["layer"], digest.to_string());
    assert!(folder.done(&["list"]).contains("schema"));
    assert_eq!(folder.done(&["update", "--check", "--json", UNSIGNED]).trim(), "[]");
}

#[test]
fn a_running_server_follows_an_update() {
    let (registry, folder) = (Registry::with_text(), Folder::new());
    folder.done(&["add", &registry.reference("acme/text:1.0"), "--yes", UNSIGNED]);
    let mut server = folder.command(&["serve", "--config", "cofferdam.toml"]);
    let mut pipe = Pipe::of(server.stdin(Stdio::piped()));
    let counted = pipe.call("word_count", serde_json::json!({"text": "a b"}));
    assert_eq!(counted["result"]["isError"], false, "{counted}");
    registry.put("acme/text", "1.0", "csv");
    folder.done(&["update", "--yes", UNSIGNED]);
    pipe.has_said("reloaded");
    let tools = pipe.modern("tools/list", serde_json::json!({})).to_string();
    assert!(tools.contains("\"schema\"") && !tools.contains("word_count"), "{tools}");
}

#[test]
fn other_bytes_in_the_store_are_neither_compiled_nor_called() {
    let (registry, folder) = (Registry::with_text(), Folder::new());
    folder.done(&["add", &registry.reference("acme/text:1.0"), "--yes", UNSIGNED]);
    let digest = Digest::of(&std::fs::read(guest("text")).unwrap()).to_string();
    let blob = folder.store().join("blobs").join(digest.replace(':', "/"));
    std::fs::remove_file(&blob).unwrap();
    std::fs::copy(guest("csv"), &blob).unwrap();
    // Of the same size, so that only the digest can tell.
    let size = std::fs::metadata(guest("text")).unwrap().len();
    std::fs::File::options().write(true).open(&blob).unwrap().set_len(size).unwrap();

    let cache = folder.path("cache");
    let mut command = folder.command(&["call", "word_count", "text=a"]);
    let called = ran(command.env("COFFERDAM_CACHE_DIR", &cache).output().unwrap());
    assert_ne!(called.code, 0);
    assert!(called.stderr.contains("which is not the one in the lock file"), "{}", called.stderr);
    let compiled = files_below(&cache).into_iter().filter(|path| path.contains("component"));
    assert_eq!(compiled.count(), 0, "{:?}", files_below(&cache));

    // A download replaces them.
    folder.done(&["fetch", "--locked"]);
    folder.counts_words();
}

#[test]
fn a_registry_that_sends_other_bytes_leaves_nothing_behind() {
    let (registry, folder) = (Registry::with_text(), Folder::new());
    let other = std::fs::read(guest("csv")).unwrap();
    let size = std::fs::metadata(guest("text")).unwrap().len();
    registry.inner.intercept(move |request| {
        let is_layer = request.path.contains("/blobs/") && request.method == "GET";
        let mut body = other.clone();
        body.resize(usize::try_from(size).unwrap(), 0);
        is_layer.then(|| Reply::new(200, body))
    });
    let refused =
        folder.refused(4, &["add", &registry.reference("acme/text:1.0"), "--yes", UNSIGNED]);
    assert!(refused.contains("digest"), "{refused}");
    assert!(!folder.path("cofferdam.toml").exists() && !folder.path("cofferdam.lock").exists());
    assert_eq!(folder.stored(), Vec::<String>::new());
}

#[test]
fn two_that_add_at_the_same_time_keep_each_others_plugin() {
    let (registry, folder) = (Registry::with_text(), Folder::new());
    registry.put("acme/csv", "1.0", "csv");
    std::fs::write(folder.path("tools.toml"), "# mine\n").unwrap();
    let start = |name: &str| -> Child {
        let reference = registry.reference(name);
        let arguments = ["add", &reference, "--yes", UNSIGNED, "--config", "tools.toml"];
        folder.command(&arguments).spawn().unwrap()
    };
    let both = [start("acme/text:1.0"), start("acme/csv:1.0")];
    for child in both {
        let ended = ran(child.wait_with_output().unwrap());
        assert_eq!(ended.code, 0, "{}", ended.stderr);
    }
    let config = folder.text("tools.toml");
    assert!(config.starts_with("# mine\n"), "{config}");
    assert!(config.contains("[plugins.text]") && config.contains("[plugins.csv]"), "{config}");
    let lock: Value = serde_json::from_str(&folder.text("tools.lock")).unwrap();
    assert_eq!(lock["plugins"].as_object().unwrap().len(), 2, "{lock}");
}

/// Runs commands that are killed at different times, and checks the files after each.
fn kill_at_times(arguments: impl Fn(&Folder) -> Vec<String>, check: impl Fn(&Folder) -> bool) {
    let mut ends = BTreeMap::<bool, usize>::new();
    for step in 0..16 {
        let folder = Folder::new();
        std::fs::write(folder.path("tools.toml"), "# mine\n").unwrap();
        let arguments = arguments(&folder);
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let mut child = folder.command(&arguments).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(step * 12));
        child.kill().unwrap();
        child.wait().unwrap();
        for name in folder.stored().iter().filter(|name| name.len() == 64) {
            let blob = std::fs::read(folder.store().join("blobs/sha256").join(name)).unwrap();
            assert_eq!(Digest::of(&blob).to_string(), format!("sha256:{name}"));
        }
        let is_done = check(&folder);
        *ends.entry(is_done).or_default() += 1;
        if !is_done {
            folder.done(&arguments);
            assert!(check(&folder));
        }
    }
    assert!(ends.contains_key(&false), "no process was killed before its end: {ends:?}");
}

#[test]
fn a_killed_add_leaves_the_files_as_before_or_after() {
    let registry = Registry::with_text();
    let reference = registry.reference("acme/text:1.0");
    let add = ["add", &reference, "--yes", UNSIGNED, "--config", "tools.toml"];
    let check = |folder: &Folder| {
        let config = folder.text("tools.toml");
        if config == "# mine\n" {
            return false;
        }
        assert!(config.contains("[plugins.text]"), "{config}");
        let call = ["call", "word_count", "text=a b", "--config", "tools.toml"];
        assert!(folder.done(&call).starts_with("{\"words\":2,"));
        true
    };
    kill_at_times(|_| add.map(str::to_owned).to_vec(), check);
}

#[test]
fn a_killed_update_leaves_the_plugin_as_before_or_after() {
    let registry = Registry::start();
    let reference = registry.reference("acme/text:1.0");
    let flags = ["--yes", UNSIGNED, "--config", "tools.toml"];
    let prepare = |folder: &Folder| {
        registry.put("acme/text", "1.0", "text");
        folder.done(&[&["add", &reference][..], &flags].concat());
        registry.put("acme/text", "1.0", "csv");
        [&["update"][..], &flags].concat().into_iter().map(str::to_owned).collect()
    };
    kill_at_times(prepare, |folder| {
        let listed = folder.done(&["list", "--config", "tools.toml"]);
        let is_updated = listed.contains("schema");
        assert_ne!(is_updated, listed.contains("word_count"), "{listed}");
        is_updated
    });
}

#[test]
fn a_killed_publish_leaves_the_tag_as_before_or_after_with_its_signature() {
    let registry = Registry::start();
    let reference = registry.reference("acme/text:1.0");
    let publish = ["publish", "text.wasm", &reference, "--key", "acme.key"];
    let prepare = |folder: &Folder| {
        registry.put("acme/text", "1.0", "csv");
        std::fs::copy(guest("text"), folder.path("text.wasm")).unwrap();
        folder.done(&["keys", "new", "acme"]);
        publish.map(str::to_owned).to_vec()
    };
    registry.put("acme/text", "1.0", "csv");
    let before = registry.inner.tag("acme/text", "1.0");
    kill_at_times(prepare, |folder| {
        if registry.inner.tag("acme/text", "1.0") == before {
            return false;
        }
        folder.done(&["verify", &reference, "--key", "acme.pub"]);
        true
    });
}

#[test]
fn logins_come_from_docker_or_from_the_configuration() {
    let (registry, folder) = (Registry::with_text(), Folder::new());
    registry.inner.require_login("me", "secret-password", None);
    let reference = registry.reference("acme/text:1.0");
    let add = ["add", &reference, "--yes", UNSIGNED];
    let denied = folder.refused(4, &add);
    assert!(denied.contains("docker login"), "{denied}");

    let docker = |pair: &str| {
        let auth = data_encoding::BASE64.encode(pair.as_bytes());
        let host = registry.inner.host();
        std::fs::create_dir_all(folder.path("home/.docker")).unwrap();
        let content = serde_json::json!({"auths": {host: {"auth": auth}}}).to_string();
        std::fs::write(folder.path("home/.docker/config.json"), content).unwrap();
    };
    docker("me:wrong-password");
    let denied = folder.refused(4, &add);
    assert!(denied.contains("are rejected"), "{denied}");
    assert!(!denied.contains("wrong-password"), "{denied}");
    docker("me:secret-password");
    folder.done(&add);

    std::fs::remove_dir_all(folder.path("home/.docker")).unwrap();
    let host = registry.inner.host();
    let config = format!(
        "[secrets]\nregistry = {{ env = \"REGISTRY_PASSWORD\" }}\n\n[registry.logins.\"{host}\"]\n\
         username = \"me\"\npassword = \"registry\"\n"
    );
    std::fs::write(folder.path("tools.toml"), config).unwrap();
    let mut command = folder.command(&[&add[..], &["--config", "tools.toml"]].concat());
    let added = ran(command.env("REGISTRY_PASSWORD", "secret-password").output().unwrap());
    assert_eq!(added.code, 0, "{}", added.stderr);
}

#[test]
fn what_is_published_is_added_again_with_the_same_digest() {
    let (registry, folder) = (Registry::start(), Folder::new());
    std::fs::copy(guest("text"), folder.path("text.wasm")).unwrap();
    let reference = registry.reference("acme/words:2.0");
    let publish = ["publish", "text.wasm", &reference, "--license", "MIT", "--json"];
    let published: Value = serde_json::from_str(&folder.done(&publish)).unwrap();
    let again: Value = serde_json::from_str(&folder.done(&publish)).unwrap();
    assert_eq!(published, again);
    let manifest = published["manifest"].as_str().unwrap();
    let pinned = registry.reference(&format!("acme/words@{manifest}"));
    let added = folder.run(&["add", &pinned, "--yes", UNSIGNED]);
    assert_eq!(added.code, 0, "{}", added.stderr);
    assert!(added.stdout.contains("license    MIT"), "{}", added.stdout);
    folder.counts_words();

    std::fs::write(folder.path("no.wasm"), "no component").unwrap();
    let invalid = registry.reference("acme/no:1");
    let refused = folder.run(&["publish", "no.wasm", &invalid]);
    assert_ne!(refused.code, 0);
    assert_eq!(registry.inner.tag("acme/no", "1"), None);
    folder.refused(2, &["publish", "text.wasm", &pinned]);
}

/// Returns the paths of all files below a directory.
fn files_below(directory: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut files = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true => files.extend(files_below(&path)),
            false => files.push(path.display().to_string()),
        }
    }
    files
}
