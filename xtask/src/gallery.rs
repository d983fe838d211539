//! Publishes the sample tools in a registry. For tests, it is one on this machine, and they are
//! added from there as a user does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use clap::Args;

use crate::run::{Step, command, root, section};
use crate::server::{LocalServer, free_port};
use crate::toolchains;

/// Folder of the registry and of its user.
const FOLDER: &str = "target/gallery";
/// Version of the sample tools.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// License of the sample tools.
const LICENSE: &str = "Apache-2.0 WITH LLVM-exception";
/// Folders of sample tools that are not for users.
const HIDDEN: [&str; 2] = ["crash", "tour"];

/// Registry and key to publish with.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Registry and beginning of the repositories, such as ghcr.io/acme [default: a registry on this
    /// machine, from which the sample tools are added again]
    #[arg(long, value_name = "HOST/PATH")]
    registry: Option<String>,
    /// File of the private key to sign with
    #[arg(long, value_name = "FILE", requires = "registry")]
    key: Option<PathBuf>,
}

/// Registry of Debian that runs until it is dropped.
struct Registry {
    _process: LocalServer,
    host: String,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let Some(registry) = &options.registry else { return locally() };
    for component in components()? {
        let mut arguments = publish(&component, registry)?;
        if let Some(key) = &options.key {
            arguments.extend(["--key".to_owned(), utf8(key)?]);
        }
        cofferdam(&arguments).run(&root())?;
    }
    Ok(())
}

/// Publishes the sample tools in a run of all tests, if a registry is installed.
pub(crate) fn for_tests() -> anyhow::Result<()> {
    if toolchains::has_registry() { locally() } else { Ok(()) }
}

fn locally() -> anyhow::Result<()> {
    section(
        "publishing the sample tools in a registry on this machine, and adding them from there",
    );
    let folder = root().join(FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder).context("the registry of the last run cannot be removed")?;
    }
    fs::create_dir_all(&folder)?;
    let registry = Registry::start(&folder)?;
    let user = |arguments: &[String]| as_user(arguments, &folder)?.run(&folder);
    user(&words("keys new gallery"))?;
    let host = &registry.host;
    let rule = format!("[[registry.trust]]\nfrom = \"{host}/*\"\nkeys = [\"gallery.pub\"]\n");
    fs::write(folder.join("tools.toml"), rule)?;
    for component in components()? {
        let mut publish = publish(&component, &format!("{host}/samples"))?;
        let reference = publish.get(2).cloned().unwrap_or_default();
        publish.extend(words("--key gallery.key"));
        user(&publish)?;
        let add = [words("add"), vec![reference], words("--yes --config tools.toml")].concat();
        user(&add)?;
    }
    drop(registry);
    // Without the registry: what was added is on this machine.
    user(&words("fetch --locked --config tools.toml"))?;
    user(&words("call word_count text=words --config tools.toml"))
}

/// Returns the components of the sample tools.
fn components() -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for language in ["rust", "c", "cpp", "go", "javascript", "python"] {
        let samples = root().join("sample-tools").join(language);
        for sample in fs::read_dir(&samples).with_context(|| format!("{}", samples.display()))? {
            let name = utf8(Path::new(&sample?.file_name()))?;
            let component = root().join("target/plugins").join(&name).with_extension("wasm");
            if component.is_file() && !HIDDEN.contains(&name.as_str()) {
                found.push(component);
            }
        }
    }
    found.sort();
    if found.is_empty() {
        bail!("there are no sample tools in target/plugins: run `cargo xtask guests` first");
    }
    Ok(found)
}

/// Returns the arguments that publish a component below `registry`.
fn publish(component: &Path, registry: &str) -> anyhow::Result<Vec<String>> {
    let name = component.file_stem().context("a component has a name")?;
    let reference = format!("oci://{registry}/{}:{VERSION}", utf8(Path::new(name))?);
    let words = ["publish", &utf8(component)?, &reference, "--license", LICENSE];
    Ok(words.map(str::to_owned).to_vec())
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn utf8(path: &Path) -> anyhow::Result<String> {
    path.to_str().map(str::to_owned).with_context(|| format!("{} is not UTF-8", path.display()))
}

fn cofferdam(arguments: &[String]) -> Step {
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let binary = root().join("target/debug/cofferdam").display().to_string();
    command(&binary, &arguments).called(&format!("cofferdam {}", arguments.join(" ")))
}

/// Returns a command of a user with a state directory of their own.
fn as_user(arguments: &[String], folder: &Path) -> anyhow::Result<Step> {
    let (home, cache) = (folder.join("home"), root().join("target/test-cache"));
    fs::create_dir_all(&home)?;
    let step = cofferdam(arguments).env("HOME", &utf8(&home)?);
    Ok(step.without("XDG_STATE_HOME").env("COFFERDAM_CACHE_DIR", &utf8(&cache)?).quiet())
}

impl Registry {
    fn start(folder: &Path) -> anyhow::Result<Self> {
        let port = free_port()?;
        let config = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {:?}}}}}\n\
             http: {{addr: \"127.0.0.1:{port}\"}}\n",
            folder.join("data")
        );
        fs::write(folder.join("registry.yml"), config)?;
        let mut program = Command::new("docker-registry");
        program.arg("serve").arg(folder.join("registry.yml"));
        let process = LocalServer::start(program, port)?;
        Ok(Self { _process: process, host: format!("127.0.0.1:{port}") })
    }
}
