//! Third-party clients of registries and verifiers of signatures, which `cargo xtask registry`
//! installs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cofferdam_tests::{guest, root};

use super::{Folder, Registry, UNSIGNED};

/// Environment variable that names the folder of the installed programs.
const CLIENTS: &str = "COFFERDAM_REGISTRY_CLIENTS";

/// Returns the folder of the installed programs, or `None` if they are not installed.
fn clients() -> Option<PathBuf> {
    let folder = std::env::var_os(CLIENTS).map(PathBuf::from);
    assert!(folder.is_some() || std::env::var_os("CI").is_none(), "{CLIENTS} is not set");
    folder
}

/// Runs a script of `tests/registry` with an installed interpreter.
fn script(interpreter: &Path, name: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(interpreter);
    command.arg(root().join("tests/registry").join(name)).args(arguments);
    command.output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn oras_reads_what_is_published_and_what_it_pushes_is_added() {
    let Some(clients) = clients() else { return };
    let (registry, folder) = (Registry::start(), Folder::new());
    std::fs::copy(guest("text"), folder.path("text.wasm")).unwrap();
    folder.done(&["publish", "text.wasm", &registry.reference("acme/text:1.0")]);
    let python = clients.join("venv/bin/python");
    let host = registry.inner.host();
    let path = |name: &str| folder.path(name).display().to_string();
    let name = format!("{host}/acme/text:1.0");
    let pulled = script(&python, "artifacts.py", &["pull", &name, &path("pulled")]);
    assert!(pulled.status.success(), "{}", stderr(&pulled));
    let files: Vec<_> = std::fs::read_dir(folder.path("pulled")).unwrap().collect();
    let [file] = files.as_slice() else { panic!("{files:?}") };
    let pulled = std::fs::read(file.as_ref().unwrap().path()).unwrap();
    assert_eq!(pulled, std::fs::read(guest("text")).unwrap());

    let config = "{\"architecture\": \"wasm\", \"os\": \"wasip2\"}";
    std::fs::write(folder.path("config.json"), config).unwrap();
    let name = format!("{host}/acme/pushed:1.0");
    let arguments = ["push", &name, &path("text.wasm"), &path("config.json")];
    let pushed = script(&python, "artifacts.py", &arguments);
    assert!(pushed.status.success(), "{}", stderr(&pushed));
    folder.done(&["add", &registry.reference("acme/pushed:1.0"), "--yes", UNSIGNED]);
    folder.counts_words();
}

#[test]
fn the_verifier_of_sigstore_for_javascript_accepts_signatures_by_our_keys() {
    let Some(clients) = clients() else { return };
    let (registry, folder) = (Registry::start(), Folder::new());
    std::fs::copy(guest("text"), folder.path("text.wasm")).unwrap();
    for name in ["acme", "evil"] {
        folder.done(&["keys", "new", name]);
    }
    let reference = registry.reference("acme/text:1.0");
    folder.done(&["publish", "text.wasm", &reference, "--key", "acme.key"]);
    let host = registry.inner.host();
    let rule = format!("[[registry.trust]]\nfrom = \"{host}/*\"\nkeys = [\"acme.pub\"]\n");
    std::fs::write(folder.path("tools.toml"), rule).unwrap();
    folder.done(&["add", &reference, "--yes", "--config", "tools.toml"]);
    folder.done(&["export", "copy", "--config", "tools.toml"]);
    let blobs = std::fs::read_dir(folder.path("copy/blobs/sha256")).unwrap();
    let is_bundle = |text: &Vec<u8>| String::from_utf8_lossy(text).contains("\"dsseEnvelope\"");
    let blobs = blobs.map(|blob| std::fs::read(blob.unwrap().path()).unwrap());
    let bundle = String::from_utf8(blobs.into_iter().find(is_bundle).unwrap()).unwrap();

    let node = PathBuf::from(std::fs::read_to_string(clients.join("node")).unwrap());
    let modules = clients.join("npm/node_modules").display().to_string();
    let file = folder.path("bundle.json").display().to_string();
    let verify = |bundle: &str, key: &str| {
        std::fs::write(&file, bundle).unwrap();
        let key = folder.path(key).display().to_string();
        script(&node, "verify.mjs", &[&modules, &file, &key])
    };
    let verified = verify(&bundle, "acme.pub");
    assert!(verified.status.success(), "{}", stderr(&verified));
    let other_key = verify(&bundle, "evil.pub");
    assert!(stderr(&other_key).contains("signature verification failed"), "{}", stderr(&other_key));
    let payload = bundle.find("\"payload\":\"").unwrap() + "\"payload\":\"".len() + 40;
    let mut changed = bundle.into_bytes();
    changed[payload] = if changed[payload] == b'A' { b'B' } else { b'A' };
    let changed = verify(&String::from_utf8(changed).unwrap(), "acme.pub");
    assert!(!changed.status.success());
}
