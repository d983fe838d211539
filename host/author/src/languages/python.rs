//! Python: componentize-py puts `CPython` into the component and imports the plugin while it makes
//! the component.
//!
//! The build works on a copy of the sources in the work directory, because imports write caches
//! beside the files that they read. The packages of `requirements.txt` are installed there too;
//! other packages of this machine do not get into a component.

mod memory;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::project::SETTINGS_BYTES_MAX;
use crate::read::read_text;
use crate::wit::{self, ImportedInterface};
use crate::{BuildError, MissingTool, ProgramOutput, Project, Steps};

/// Tested version of componentize-py.
const COMPONENTIZE_PY: &str = "0.25.1";
/// Commands that install it for one project.
pub(crate) const SETUP_COMMANDS: [&str; 2] =
    ["python3 -m venv .venv", ".venv/bin/pip install componentize-py==0.25.1 pytest"];
/// Version of Python in the component, for which packages are selected.
const PYTHON: &str = "3.14";
/// File with the packages that a plugin needs.
const REQUIREMENTS: &str = "requirements.txt";
/// Module that componentize-py imports. No module of the plugin can have its name.
const APP: &str = "cofferdam_component";
/// First words of the SDK's message for a plugin that cannot be imported.
const NOT_LOADED: &str = "the plugin cannot be loaded:";
/// Entry modules of a plugin whose manifest names none.
const ENTRIES: [&str; 2] = ["app.py", "main.py"];
/// Directories without sources of the plugin.
const LEFT_OUT: [&str; 7] =
    ["sdk", "tests", "dist", "target", "node_modules", "__pycache__", "venv"];
/// Maximum number of files that are copied, including files that the sources read during import.
/// More files mean that an unintended directory is among them.
const SOURCES_MAX: usize = 10_000;
const SOURCE_BYTES_MAX: u64 = 64 << 20;

/// Builds the component of a project.
pub(crate) fn build(project: &Project, steps: &Steps<'_>) -> Result<Vec<u8>, BuildError> {
    let entry = EntryModule::find(project)?;
    let toolchain = Toolchain::find(project.directory())?;
    if toolchain.version != COMPONENTIZE_PY {
        let tested = format!("the version that is tested is {COMPONENTIZE_PY}");
        steps.note(&format!("componentize-py is {}; {tested}", toolchain.version));
    }
    let work = project.work()?.join("python");
    let (source, sdk) = (work.join("source"), work.join("sdk"));
    let sdk_package = project.sdk()?.join("cofferdam");
    if !sdk_package.is_dir() {
        return Err(BuildError::NoSdk { looked_for: sdk_package });
    }
    Copy::all().run(&sdk_package, &sdk.join("cofferdam"))?;
    Copy::of_project(project)?.run(&entry.root, &source)?;
    let packages = toolchain.packages(project, &work, steps)?;
    let uses = toolchain.uses(&source, &sdk, &packages, steps)?;
    let wit = wit::write(&work, &uses)?;
    let app = source.join(format!("{APP}.py"));
    let text = format!(
        "from cofferdam._guest import Tools, load\n\n__all__ = [\"Tools\"]\nload({:?}, __file__)\n",
        entry.module
    );
    fs::write(&app, text).map_err(|error| BuildError::write(&app, error))?;
    let component = toolchain.componentize(&wit, &[&source, &sdk, &packages], &work, steps)?;
    let tuned = memory::tune(&component);
    Ok(tuned.unwrap_or_else(|problem| {
        steps.note(&format!(
            "the component is slower than it could be: its memory is not that of Python {PYTHON}: {problem}"
        ));
        component
    }))
}

/// Module with which a plugin begins.
#[derive(Debug)]
struct EntryModule {
    /// Directory that its name is relative to.
    root: PathBuf,
    /// Dotted name.
    module: String,
}

impl EntryModule {
    fn find(project: &Project) -> Result<Self, BuildError> {
        let directory = project.directory();
        if let Some(named) = &project.build().entry {
            let inside = named.components().all(|part| matches!(part, Component::Normal(_)));
            return match inside {
                true => Self::of(directory, &directory.join(named)),
                false => Err(BuildError::Project(format!(
                    "`[build] entry` is a file in the project, not `{}`",
                    named.display()
                ))),
            };
        }
        let name = format!("{}.py", project.name().replace('-', "_"));
        let names: Vec<&str> = [name.as_str()].into_iter().chain(ENTRIES).collect();
        let folders = [directory.to_owned(), directory.join("src")];
        let found = folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
        match found.into_iter().find(|file| file.is_file()) {
            Some(file) => Self::of(directory, &file),
            None => Err(BuildError::Project(format!(
                "no file says where the plugin begins: there is no {}, here or in src; name it \
                 with `[build] entry` in plugin.toml",
                names.join(", ")
            ))),
        }
    }

    /// Finds the module of a file or package directory. Parent directories with an `__init__.py`
    /// are part of its name.
    fn of(directory: &Path, path: &Path) -> Result<Self, BuildError> {
        let wrong = |why: &str| {
            let shown = path.strip_prefix(directory).unwrap_or(path).display();
            Err(BuildError::Project(format!("the plugin cannot begin with `{shown}`: {why}")))
        };
        let is_package = path.join("__init__.py").is_file();
        let is_module = path.is_file() && path.extension() == Some(OsStr::new("py"));
        if !is_package && !is_module {
            return wrong("it is neither a Python file nor a package");
        }
        let mut names = vec![path.file_stem().unwrap_or_default().to_string_lossy().into_owned()];
        let mut root = path.parent().unwrap_or(directory);
        while root != directory && root.join("__init__.py").is_file() {
            names.push(root.file_name().unwrap_or_default().to_string_lossy().into_owned());
            root = root.parent().unwrap_or(directory);
        }
        if let Some(name) = names.iter().find(|name| !is_identifier(name)) {
            return wrong(&format!("`{name}` cannot be imported; use letters, digits and `_`"));
        }
        names.reverse();
        Ok(Self { root: root.to_owned(), module: names.join(".") })
    }
}

fn is_identifier(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Programs that make components.
#[derive(Debug)]
struct Toolchain {
    componentize_py: PathBuf,
    python: PathBuf,
    /// Version of componentize-py.
    version: String,
}

/// Finds the toolchain of a project in `directory`, and returns its version.
pub(crate) fn find(directory: &Path) -> Result<String, MissingTool> {
    Toolchain::find(directory).map(|toolchain| format!("componentize-py {}", toolchain.version))
}

impl Toolchain {
    fn find(directory: &Path) -> Result<Self, MissingTool> {
        let folders = [".venv/bin", "venv/bin"].map(|folder| directory.join(folder));
        let folder = folders.into_iter().find(|folder| folder.join("componentize-py").is_file());
        // An empty path leads to a lookup on the PATH.
        let folder = folder.unwrap_or_default();
        let componentize_py = folder.join("componentize-py");
        let said = Command::new(&componentize_py).arg("--version").stdin(Stdio::null()).output();
        let Ok(said) = said else {
            return Err(missing(
                format!(
                    "componentize-py {COMPONENTIZE_PY}, the Python package that makes components,"
                ),
                ".venv/bin/componentize-py in the project, and componentize-py on the PATH"
                    .to_owned(),
            ));
        };
        let said = String::from_utf8_lossy(&said.stdout);
        let version = said.trim().trim_start_matches("componentize-py ").to_owned();
        Ok(Self { componentize_py, python: folder.join("python3"), version })
    }

    /// Installs the packages of `requirements.txt`, unless exactly these are installed. Returns
    /// their directory.
    fn packages(
        &self,
        project: &Project,
        work: &Path,
        steps: &Steps<'_>,
    ) -> Result<PathBuf, BuildError> {
        // componentize-py uses the packages of this machine unless it runs in a virtual
        // environment, so this directory has the layout of one.
        let packages = environment(work).join("lib/python3/site-packages");
        let wanted = project.directory().join(REQUIREMENTS);
        let stamp = work.join(REQUIREMENTS);
        let text = match read_text(&wanted, SETTINGS_BYTES_MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(BuildError::read(&wanted, error)),
        };
        // Never empty, because an empty stamp means an incomplete installation.
        let text = format!("# Python {PYTHON}\n{text}");
        if packages.is_dir() && fs::read_to_string(&stamp).is_ok_and(|installed| installed == text)
        {
            return Ok(packages);
        }
        // An incomplete installation has an empty stamp.
        fs::write(&stamp, "").map_err(|error| BuildError::write(&stamp, error))?;
        remove(&packages)?;
        fs::create_dir_all(&packages).map_err(|error| BuildError::write(&packages, error))?;
        if names_packages(&text) {
            self.install(&wanted, &packages, steps)?;
        }
        fs::write(&stamp, text).map_err(|error| BuildError::write(&stamp, error))?;
        Ok(packages)
    }

    /// Installs only wheels without machine code, because a component cannot run machine code.
    fn install(&self, wanted: &Path, packages: &Path, steps: &Steps<'_>) -> Result<(), BuildError> {
        let has_pip = Command::new(&self.python)
            .args(["-m", "pip", "--version"])
            .stdin(Stdio::null())
            .output()
            .is_ok_and(|output| output.status.success());
        if !has_pip {
            return Err(missing(
                format!("pip, which fetches what {REQUIREMENTS} names,"),
                format!("the module `pip` of {}", self.python.display()),
            )
            .into());
        }
        let mut pip = Command::new(&self.python);
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-compile",
        ])
        .args(["--platform", "any", "--implementation", "py", "--abi", "none"])
        .args(["--python-version", PYTHON, "--only-binary", ":all:", "--target"])
        .arg(packages)
        .arg("--requirement")
        .arg(wanted);
        steps.run(&format!("pip install -r {REQUIREMENTS}"), &mut pip).map(drop).map_err(|error| {
            let advice = format!(
                "A component takes packages in pure Python that are published as wheels (`…-none-any.whl`) and run on Python {PYTHON}. One \
                 for which pip finds no version (`from versions: none`) holds machine code or is \
                 published as source alone: look for a \
                 release or another package without it."
            );
            with_output(error, |output| format!("{output}\n{advice}"))
        })
    }

    /// Returns the host interfaces that the sources use, HTTP also through packages. The sources
    /// are parsed, not run.
    fn uses(
        &self,
        source: &Path,
        sdk: &Path,
        packages: &Path,
        steps: &Steps<'_>,
    ) -> Result<BTreeSet<ImportedInterface>, BuildError> {
        let mut command = Command::new(&self.python);
        command
            .args(["-m", "cofferdam._build"])
            .args([source, packages])
            .env("PYTHONPATH", sdk)
            .current_dir(source);
        let ProgramOutput { stdout, .. } = steps.run("reading the sources", &mut command)?;
        Ok(ImportedInterface::ALL
            .into_iter()
            .filter(|interface| stdout.lines().any(|line| line == interface.name()))
            .collect())
    }

    fn componentize(
        &self,
        wit: &Path,
        python_path: &[&Path; 3],
        work: &Path,
        steps: &Steps<'_>,
    ) -> Result<Vec<u8>, BuildError> {
        let output = work.join("component.wasm");
        let mut command = Command::new(&self.componentize_py);
        command.arg("--quiet").arg("--wit-path").arg(wit).args([
            "--world",
            "plugin",
            "componentize",
            APP,
        ]);
        for folder in python_path {
            command.arg("--python-path").arg(folder);
        }
        command
            .arg("--output")
            .arg(&output)
            .env("VIRTUAL_ENV", environment(work))
            // Errors are in Python code, so backtraces of componentize-py do not help.
            .env("RUST_BACKTRACE", "0")
            .current_dir(work);
        let step = "importing the plugin and making the component (componentize-py)";
        steps.run(step, &mut command).map_err(|error| with_output(error, python_message))?;
        fs::read(&output).map_err(|error| BuildError::read(&output, error))
    }
}

/// Returns the error for a missing tool. Every tool comes with a virtual environment in the
/// project.
fn missing(tool: String, looked_for: String) -> MissingTool {
    let install = SETUP_COMMANDS.join(" && ");
    // Debian packages Python without `venv`.
    let install =
        vec![install.clone(), format!("apt-get install python3 python3-venv && {install}")];
    MissingTool { tool, looked_for, install }
}

/// Returns the directory that stands in for the plugin's virtual environment.
fn environment(work: &Path) -> PathBuf {
    work.join("environment")
}

/// Returns whether a list of packages contains more than comments.
fn names_packages(text: &str) -> bool {
    text.lines().any(|line| !line.trim().is_empty() && !line.trim().starts_with('#'))
}

fn with_output(error: BuildError, change: impl FnOnce(String) -> String) -> BuildError {
    match error {
        BuildError::Failed { step, status, output } => {
            BuildError::Failed { step, status, output: change(output) }
        }
        other => other,
    }
}

/// Extracts the plugin's traceback from the output, without the tracebacks around it and without
/// its second copy.
fn python_message(output: String) -> String {
    let said = output.split_once(NOT_LOADED).map(|(_, said)| said);
    match said.and_then(|said| said.split("\n\n\nCaused by:").next()) {
        Some(said) => said.trim().to_owned(),
        None => output,
    }
}

/// Copies a directory tree and replaces the previous copy.
#[derive(Debug)]
struct Copy {
    /// Globs of the files to copy. `None` for all files.
    sources: Option<GlobSet>,
    /// True if directories without sources are skipped.
    is_project: bool,
    /// Directory that is copied, without links in its path.
    root: PathBuf,
    /// Directories that are being copied, the outermost first, without links in their paths.
    open: Vec<PathBuf>,
    files: usize,
    bytes: u64,
}

impl Copy {
    fn all() -> Self {
        let (root, open) = (PathBuf::new(), Vec::new());
        Self { sources: None, is_project: false, root, open, files: 0, bytes: 0 }
    }

    fn of_project(project: &Project) -> Result<Self, BuildError> {
        let globs = &project.build().sources;
        let mut set = GlobSetBuilder::new();
        for glob in globs {
            let wrong = |error| BuildError::Project(format!("`[build] sources`: {error}"));
            set.add(Glob::new(glob).map_err(wrong)?);
        }
        let wrong = |error| BuildError::Project(format!("`[build] sources`: {error}"));
        let sources = if globs.is_empty() { None } else { Some(set.build().map_err(wrong)?) };
        Ok(Self { sources, is_project: true, ..Self::all() })
    }

    fn run(mut self, from: &Path, to: &Path) -> Result<(), BuildError> {
        self.root = fs::canonicalize(from).map_err(|error| BuildError::read(from, error))?;
        remove(to)?;
        self.folder(from, to, Path::new(""))
    }

    fn folder(&mut self, from: &Path, to: &Path, inside: &Path) -> Result<(), BuildError> {
        let real = fs::canonicalize(from).map_err(|error| BuildError::read(from, error))?;
        fs::create_dir_all(to).map_err(|error| BuildError::write(to, error))?;
        self.count(0, from)?;
        self.open.push(real);
        for entry in fs::read_dir(from).map_err(|error| BuildError::read(from, error))? {
            let entry = entry.map_err(|error| BuildError::read(from, error))?;
            let (path, name) = (entry.path(), entry.file_name());
            let inside = inside.join(&name);
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if is_link && !self.follows(&path) {
                continue;
            }
            let data = fs::metadata(&path).map_err(|error| BuildError::read(&path, error))?;
            if data.is_dir() && self.has_folder(&path, &name) {
                self.folder(&path, &to.join(&name), &inside)?;
            } else if data.is_file() && self.has_file(&inside) {
                self.count(data.len(), from)?;
                fs::copy(&path, to.join(&name)).map_err(|error| BuildError::read(&path, error))?;
            }
        }
        self.open.pop();
        Ok(())
    }

    /// Returns whether a link in the innermost open directory is followed, as Python does. One that
    /// leads nowhere or to a directory above it is not, and neither is one that leaves the project:
    /// the plugin would contain files that its author did not put there.
    fn follows(&self, link: &Path) -> bool {
        let Ok(target) = fs::canonicalize(link) else { return false };
        let is_round = self.open.iter().any(|open| open.starts_with(&target));
        !is_round && (!self.is_project || target.starts_with(&self.root))
    }

    fn has_folder(&self, path: &Path, name: &OsStr) -> bool {
        let name = name.to_string_lossy();
        let is_left_out = name.starts_with('.') || LEFT_OUT.contains(&name.as_ref());
        if self.is_project {
            !is_left_out && !path.join("pyvenv.cfg").exists()
        } else {
            name != "__pycache__"
        }
    }

    fn has_file(&self, inside: &Path) -> bool {
        let name = inside.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') || name.ends_with(".wasm") || (self.is_project && is_test(&name)) {
            return false;
        }
        self.sources.as_ref().is_none_or(|sources| sources.is_match(inside))
    }

    fn count(&mut self, bytes: u64, folder: &Path) -> Result<(), BuildError> {
        (self.files, self.bytes) = (self.files + 1, self.bytes + bytes);
        if self.files <= SOURCES_MAX && self.bytes <= SOURCE_BYTES_MAX {
            return Ok(());
        }
        Err(BuildError::Project(format!(
            "the project has more than {SOURCES_MAX} files and folders or {SOURCE_BYTES_MAX} bytes (seen at {}); name those that the plugin needs with \
             `[build] sources` in plugin.toml",
            folder.display()
        )))
    }
}

/// Returns whether pytest finds tests in a file of this name. Tests are not copied, because their
/// use of the host is not the plugin's.
fn is_test(name: &str) -> bool {
    name.ends_with(".py")
        && (name.starts_with("test_") || name.ends_with("_test.py") || name == "conftest.py")
}

fn remove(folder: &Path) -> Result<(), BuildError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(BuildError::write(folder, error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(files: &[&str], named: Option<&str>) -> String {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("my-tool");
        fs::create_dir_all(&directory).unwrap();
        for file in files {
            fs::create_dir_all(directory.join(file).parent().unwrap()).unwrap();
            fs::write(directory.join(file), "").unwrap();
        }
        let named = named.map(|entry| format!("entry = \"{entry}\"")).unwrap_or_default();
        fs::write(
            directory.join("plugin.toml"),
            format!("[build]\nlanguage = \"python\"\n{named}\n"),
        )
        .unwrap();
        match EntryModule::find(&Project::open(&directory).unwrap()) {
            Ok(entry) => {
                let root = entry
                    .root
                    .strip_prefix(directory.canonicalize().unwrap())
                    .unwrap()
                    .display()
                    .to_string();
                format!("{root}:{}", entry.module)
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_plugin_begins_with_the_file_that_is_called_like_it() {
        assert_eq!(entry(&["my_tool.py", "app.py"], None), ":my_tool");
        assert_eq!(entry(&["main.py", "src/app.py"], None), ":main");
        assert_eq!(entry(&["src/app.py"], None), "src:app");
        let none = entry(&["tool.py"], None);
        assert!(none.starts_with(
            "no file says where the plugin begins: there is no my_tool.py, app.py, main.py"
        ));
    }

    #[test]
    fn what_has_an_init_is_a_part_of_the_name() {
        assert_eq!(entry(&["src/a/__init__.py", "src/a/b.py"], Some("src/a/b.py")), "src:a.b");
        assert_eq!(entry(&["a/__init__.py"], Some("a")), ":a");
        assert_eq!(entry(&["a/b.py"], Some("a/b.py")), "a:b");
    }

    #[test]
    fn what_cannot_be_imported_is_refused() {
        assert_eq!(
            entry(&["my-tool.py"], Some("my-tool.py")),
            "the plugin cannot begin with `my-tool.py`: `my-tool` cannot be imported; use \
             letters, digits and `_`"
        );
        assert!(
            entry(&["a.txt"], Some("a.txt")).ends_with("it is neither a Python file nor a package")
        );
        assert!(entry(&[], Some("../a.py")).contains("is a file in the project"));
    }

    #[test]
    fn of_what_the_tool_says_the_plugin_s_traceback_is_shown() {
        let output = "Traceback …\nAssertionError: …\ncofferdam._guest.NotLoaded: the plugin \
            cannot be loaded:\nTraceback\n  File \"app.py\"\nTypeError: x\n\n\nCaused by:\n    \
            again";
        assert_eq!(python_message(output.to_owned()), "Traceback\n  File \"app.py\"\nTypeError: x");
        assert_eq!(python_message("something else".to_owned()), "something else");
    }

    #[test]
    fn comments_name_no_packages() {
        assert!(!names_packages("# pint\n\n"));
        assert!(names_packages("pint==0.25.3"));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_within_the_project() {
        use std::os::unix::fs::symlink;

        let folder = tempfile::tempdir().unwrap();
        let (project, copy) = (folder.path().join("project"), folder.path().join("copy"));
        fs::create_dir_all(project.join("library")).unwrap();
        fs::create_dir_all(folder.path().join("outside")).unwrap();
        fs::create_dir_all(project.join("other")).unwrap();
        for file in ["project/app.py", "project/library/a.py", "outside/secret.py"] {
            fs::write(folder.path().join(file), "").unwrap();
        }
        for (target, link) in [
            ("library", "inside"),
            ("app.py", "same.py"),
            ("../outside", "outside"),
            ("../outside/secret.py", "secret.py"),
            ("missing", "dangling"),
            ("..", "up"),
            (".", "library/round"),
            ("../other", "library/x"),
            ("../library", "other/x"),
            ("../library", "other/y"),
            ("/", "root"),
        ] {
            symlink(target, project.join(link)).unwrap();
        }
        let copied = Copy { is_project: true, ..Copy::all() };
        copied.run(&project, &copy).unwrap();
        let mut names: Vec<_> =
            fs::read_dir(&copy).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["app.py", "inside", "library", "other", "same.py"]);
        assert_eq!(fs::read_dir(copy.join("library")).unwrap().count(), 2);
        assert_eq!(fs::read_dir(copy.join("library/x")).unwrap().count(), 0);
        assert!(copy.join("other/y/a.py").exists());
    }
}
