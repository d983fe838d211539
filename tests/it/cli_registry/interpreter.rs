//! The interpreter of code mode from a registry: by digest, through the lock file and the rules
//! about signatures.

use std::collections::BTreeMap;

use cofferdam_registry::WasmArtifact;
use cofferdam_tests::root;

use super::{Folder, Registry, UNSIGNED};

const RUN: [&str; 7] =
    ["call", "run_code", "code=return 6 * 7", "--config", "cofferdam.toml", "--files", "memory"];
const FETCH: [&str; 3] = ["fetch", "--config", "cofferdam.toml"];

impl Registry {
    /// Lets a tag name the component at `path` of the repository. Returns its reference by digest.
    fn put_component(&self, repository: &str, path: &str) -> String {
        let component = std::fs::read(root().join(path)).unwrap();
        let artifact = WasmArtifact::new(component.into(), &[], &[], &BTreeMap::new()).unwrap();
        self.inner.add(repository, "1.0", &artifact);
        let digest = artifact.digest();
        self.reference(&format!("{repository}@{digest}"))
    }
}

fn configure(folder: &Folder, interpreter: &str, more: &str) {
    let text = format!("[code]\noffer = \"both\"\ninterpreter = \"{interpreter}\"\n{more}");
    std::fs::write(folder.path("cofferdam.toml"), text).unwrap();
}

#[test]
fn an_interpreter_is_fetched_once_and_runs_without_the_network() {
    let (registry, folder) = (Registry::start(), Folder::new());
    let reference = registry.put_component("acme/javascript", "target/code/javascript.wasm");
    configure(&folder, &reference, "");
    let unfetched = folder.refused(4, &RUN);
    assert!(unfetched.contains("run `cofferdam fetch --config cofferdam.toml`"), "{unfetched}");
    let unlocked = folder.refused(4, &[&FETCH[..], &["--locked"]].concat());
    assert!(unlocked.contains("the interpreter of [code] is not in"), "{unlocked}");
    let unsigned = folder.refused(4, &[&FETCH[..], &["--yes"]].concat());
    assert!(unsigned.contains("--allow-unsigned"), "{unsigned}");
    folder.done(&[&FETCH[..], &["--yes", UNSIGNED]].concat());
    let origin = &folder.lock()["interpreter"];
    assert_eq!(origin["source"], *reference);
    folder.done(&["config", "check", "cofferdam.toml"]);

    let (other, copy) = (Folder::new(), folder.path("copy").display().to_string());
    folder.done(&["export", &copy, "--config", "cofferdam.toml"]);
    drop(registry);
    assert_eq!(folder.done(&RUN).trim(), r#"{"result":42}"#);
    folder.done(&["cache", "prune"]);
    assert_eq!(folder.done(&RUN).trim(), r#"{"result":42}"#);
    for name in ["cofferdam.toml", "cofferdam.lock"] {
        std::fs::copy(folder.path(name), other.path(name)).unwrap();
    }
    assert!(other.refused(4, &RUN).contains("is not on this machine"));
    other.done(&["import", &copy, "--config", "cofferdam.toml"]);
    assert_eq!(other.done(&RUN).trim(), r#"{"result":42}"#);
}

#[test]
fn other_interpreters_are_refused() {
    let (registry, folder) = (Registry::start(), Folder::new());
    let reference = registry.put_component("acme/text", "target/plugins/text.wasm");
    configure(&folder, &reference, "");
    let other = folder.refused(2, &[&FETCH[..], &["--yes", UNSIGNED]].concat());
    assert!(other.contains("it has no tool `run_code`"), "{other}");
    assert!(!folder.path("cofferdam.lock").exists());
    for location in ["oci://localhost/acme/javascript:1.0", "https://localhost/javascript.wasm"] {
        configure(&folder, location, "");
        for command in [&RUN[..], &FETCH] {
            let tag = folder.refused(2, command);
            assert!(tag.contains("cofferdam.toml:3:") && tag.contains("has no digest"), "{tag}");
        }
    }
}
