//! JavaScript and TypeScript: esbuild bundles a project into one module. componentize-qjs loads it
//! into `QuickJS` and makes a component of the engine's state, so that calls start with all modules
//! loaded.
//!
//! Types are removed and not checked; editors and `tsc` check them. Programs are looked up in the
//! `node_modules` of the project, then in those of the directories above it as in npm, then on the
//! PATH.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::wit::{self, ImportedInterface};
use crate::{BuildError, MissingTool, ProgramOutput, Project, Steps, packed};

/// Command that installs the tested versions.
const INSTALL: &str = "npm install --save-dev esbuild@0.28.2 componentize-qjs@0.4.5";
/// Program that bundles a project.
const BUNDLER: &str = "esbuild";
/// Program that makes a component of a bundle.
const COMPONENTIZE: &str = "componentize-qjs";
/// Main files of a project whose `[build] entry` is not set.
const ENTRIES: [&str; 4] = ["src/main.ts", "src/main.js", "main.ts", "main.js"];

/// File name of the bundle in the work directory. Stack traces contain it.
const MODULE: &str = "plugin.js";
const COMPONENT: &str = "component.wasm";

/// Language level of the engine. The engine never runs the jobs of its own promises during a call,
/// so `async` is compiled to calls of `Promise`, which the SDK replaces.
const ENGINE: [&str; 4] = [
    "--target=es2024",
    "--supported:async-await=false",
    "--supported:async-generator=false",
    "--supported:for-await=false",
];
/// Globals that the SDK has for plugins whose code mentions them. Packages also look for them as
/// properties of `globalThis`.
const WEB_GLOBALS: [&str; 13] = [
    "AbortController",
    "AbortSignal",
    "Headers",
    "ReadableStream",
    "Request",
    "Response",
    "URL",
    "URLSearchParams",
    "clearInterval",
    "clearTimeout",
    "fetch",
    "setInterval",
    "setTimeout",
];
/// Modules that become imports of the component: the host, requests and timers, standard error for
/// `console`, and random numbers. The engine's own random numbers are the same in every call.
const HOST_MODULES: &str = "cofferdam:plugin/";
const WASI_MODULES: [&str; 2] = ["wasi:cli/stderr@0.2.12", "wasi:random/random@0.2.12"];
/// The parts of WASI that `console` and random numbers need. The engine imports them in any case.
const WASI: [(&str, &str); 3] = [
    (
        "cli.wit",
        "package wasi:cli@0.2.12;\n\ninterface stderr {\n  use wasi:io/streams@0.2.12.{output-stream};\n  \
         get-stderr: func() -> output-stream;\n}\n",
    ),
    (
        "io.wit",
        "package wasi:io@0.2.12;\n\ninterface error {\n  resource error;\n}\n\ninterface streams {\n  use error.{error};\n  \
         variant stream-error { last-operation-failed(error), closed }\n  resource output-stream \
         {\n    \
         blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>;\n  }\n}\n",
    ),
    (
        "random.wit",
        "package wasi:random@0.2.12;\n\ninterface random \
         {\n  get-random-bytes: func(len: u64) -> list<u8>;\n}\n",
    ),
];

/// Builds the component of a project.
pub(crate) fn build(project: &Project, steps: &Steps<'_>) -> Result<Vec<u8>, BuildError> {
    let work = project.work()?;
    let entry = entry(project)?;
    find_node()?;
    let bundle = Bundle::new(&work);
    write(&bundle.entry, wrapper(&entry).as_bytes())?;
    let mut bundling = bundle.command(project, &project.sdk()?);
    // The bundler prints warnings only.
    steps.warn(&run(project, steps, "bundling", &mut bundling)?.stderr);
    write_world(&work, &bundle.modules()?)?;
    let component = work.join(COMPONENT);
    let mut componentize = Command::new(program(project.directory(), COMPONENTIZE));
    // Without `--sync`, the component has imports that this host does not offer. The smaller engine
    // of `--opt-size` needs WebAssembly tail calls, which this host rejects. `--disable-gc` would
    // leak reference cycles in long sessions.
    componentize.current_dir(&work).args(["--sync", "--world", "plugin", "--wit", "wit"]);
    componentize.args(["--js", MODULE, "--output", COMPONENT]);
    run(project, steps, "making a component with QuickJS", &mut componentize)?;
    let component = fs::read(&component).map_err(|error| BuildError::read(&component, error))?;
    imports::restore_names(component)
}

/// Files of one bundling.
struct Bundle {
    /// Module that exports the exports of the component.
    entry: PathBuf,
    /// The bundle.
    module: PathBuf,
    /// Metadata that esbuild writes.
    report: PathBuf,
}

impl Bundle {
    fn new(work: &Path) -> Self {
        Self {
            entry: work.join("entry.js"),
            module: work.join(MODULE),
            report: work.join("plugin.json"),
        }
    }

    fn command(&self, project: &Project, sdk: &Path) -> Command {
        let mut command = Command::new(program(project.directory(), BUNDLER));
        // Relative paths keep paths of this machine out of the bundle's comments.
        command.current_dir(project.directory()).arg(&self.entry);
        // Packages' code for browsers suits this engine better than their code for Node, whose
        // modules are missing here.
        command.args([
            "--bundle",
            "--format=esm",
            "--platform=browser",
            "--conditions=cofferdam,module",
        ]);
        command
            .args(["--define:process.env.NODE_ENV=\"production\"", "--log-level=warning"])
            .args(ENGINE);
        command.arg(format!("--external:{HOST_MODULES}*")).arg("--external:host:*");
        command.args(WASI_MODULES.map(|module| format!("--external:{module}")));
        command.arg(format!("--alias:cofferdam={}", sdk.display()));
        for module in ["component/globals.js", "component/web.js"] {
            command.arg(format!("--inject:{}", sdk.join(module).display()));
        }
        command.args(WEB_GLOBALS.map(|name| format!("--define:globalThis.{name}={name}")));
        // Packages that bring their own assign it; that has no effect.
        command.arg("--log-override:assign-to-define=silent");
        command.arg(format!("--outfile={}", self.module.display()));
        command.arg(format!("--metafile={}", self.report.display()));
        command
    }

    /// Returns the modules of the host that the bundle imports. A component imports everything in
    /// its world.
    fn modules(&self) -> Result<BTreeSet<String>, BuildError> {
        let report =
            fs::read(&self.report).map_err(|error| BuildError::read(&self.report, error))?;
        let report: BundlerReport = serde_json::from_slice(&report).map_err(|error| {
            BuildError::Project(format!("the report of esbuild is not as expected: {error}"))
        })?;
        let imports = report.outputs.into_values().flat_map(|output| output.imports);
        Ok(imports.map(|import| import.path).collect())
    }
}

#[derive(Deserialize)]
struct BundlerReport {
    outputs: std::collections::BTreeMap<String, BundlerOutput>,
}

#[derive(Deserialize)]
struct BundlerOutput {
    imports: Vec<Import>,
}

#[derive(Deserialize)]
struct Import {
    path: String,
}

/// Returns the interface of plugins that a module is: `files` for `cofferdam:plugin/files@0.1.0`.
fn interface(module: &str) -> Option<ImportedInterface> {
    let name = module.strip_prefix(HOST_MODULES)?.split('@').next()?;
    ImportedInterface::ALL.into_iter().find(|interface| interface.name() == name)
}

/// Returns the main file, relative to the project.
fn entry(project: &Project) -> Result<PathBuf, BuildError> {
    let is_file = |path: &Path| project.directory().join(path).is_file();
    match &project.build().entry {
        Some(entry) if is_file(entry) => Ok(entry.clone()),
        Some(entry) => Err(BuildError::Project(format!(
            "`[build] entry` in plugin.toml is `{}`, and there is no such file",
            entry.display()
        ))),
        None => ENTRIES.iter().map(PathBuf::from).find(|path| is_file(path)).ok_or_else(|| {
            BuildError::Project(format!(
                "there is no main file: none of {}; say which it is with `[build] entry` in \
                 plugin.toml",
                ENTRIES.join(", ")
            ))
        }),
    }
}

/// Returns the source of the entry module, which exports the plugin of the main file as the
/// component does.
fn wrapper(entry: &Path) -> String {
    let parts: Vec<_> = entry.iter().map(|part| part.to_string_lossy()).collect();
    // A JSON string is a JavaScript string.
    let path = serde_json::Value::from(format!("../{}", parts.join("/")));
    format!(
        "import plugin from {path};\nimport {{ serve }} from \"cofferdam/component/serve.js\";\n\
         import {{ forget }} from \"cofferdam/component/random.js\";\n\nexport const tools = \
         serve(plugin, forget);\n"
    )
}

/// Finds the toolchain of a project in `directory`, and returns its versions.
pub(crate) fn find(directory: &Path) -> Result<String, MissingTool> {
    let node = find_node()?;
    let versions = [BUNDLER, COMPONENTIZE].map(|name| {
        let program = program(directory, name);
        let said = Command::new(&program).arg("--version").stdin(Stdio::null()).output();
        let said = said.map_err(|_| missing(directory, &program.to_string_lossy()))?;
        let text = String::from_utf8_lossy(&said.stdout);
        // A program that does not know the flag has no version to tell.
        let version = if said.status.success() { text.trim() } else { "" };
        let version = version.trim_start_matches(name).trim_start();
        Ok(format!("{name} {version}").trim_end().to_owned())
    });
    let [bundler, componentize] = versions;
    Ok(format!("Node {node}, {}, {}", bundler?, componentize?))
}

/// Returns the version of Node. The programs of npm packages are scripts that fail without it, with
/// an unclear message.
fn find_node() -> Result<String, MissingTool> {
    match Command::new("node").arg("--version").stdin(Stdio::null()).output() {
        Ok(said) => Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned()),
        Err(_) => Err(MissingTool {
            tool: "Node, 20 or newer,".to_owned(),
            looked_for: "node on the PATH".to_owned(),
            install: vec!["apt-get install nodejs npm".to_owned()],
        }),
    }
}

/// Returns the path of a program of an npm package in `directory` or above, or else its name for a
/// lookup on the PATH.
fn program(directory: &Path, name: &str) -> PathBuf {
    let file = if cfg!(windows) { format!("{name}.cmd") } else { name.to_owned() };
    let of_npm = directory.ancestors().map(|folder| folder.join("node_modules/.bin").join(&file));
    of_npm.into_iter().find(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(&file))
}

/// Runs a program of an npm package.
fn run(
    project: &Project,
    steps: &Steps<'_>,
    step: &str,
    command: &mut Command,
) -> Result<ProgramOutput, BuildError> {
    match steps.run(step, command) {
        Err(BuildError::Start { program, error }) if error.kind() == ErrorKind::NotFound => {
            Err(missing(project.directory(), &program).into())
        }
        ended => ended,
    }
}

/// Returns the error for a program of an npm package that is missing. Every project of `cofferdam
/// new` lists the packages in its `package.json`.
fn missing(directory: &Path, program: &str) -> MissingTool {
    let mut install = Vec::new();
    if directory.join("package.json").is_file() {
        install.push("npm install".to_owned());
    }
    install.push(INSTALL.to_owned());
    MissingTool {
        tool: format!("{program}, a package of npm,"),
        looked_for: "in node_modules of the project and of the folders above it, and on the PATH"
            .to_owned(),
        install,
    }
}

/// Writes the WIT package of the component into `work`, with a world that imports `modules`.
fn write_world(work: &Path, modules: &BTreeSet<String>) -> Result<(), BuildError> {
    let uses = modules.iter().filter_map(|module| interface(module)).collect();
    let folder = wit::write(work, &uses)?;
    let world = folder.join("world.wit");
    let text = fs::read_to_string(&world).map_err(|error| BuildError::read(&world, error))?;
    let wasi = modules.iter().map(String::as_str).filter(|module| imports::is_build_name(module));
    let imports: String = WASI_MODULES
        .into_iter()
        .chain(wasi)
        .map(|module| format!("\n  import {module};"))
        .collect();
    let imports = format!("world plugin {{{imports}");
    write(&world, text.replacen("world plugin {", &imports, 1).as_bytes())?;
    let dependencies = folder.join("deps");
    // Other versions of the SDK wrote other files, which would declare the same packages again.
    match fs::remove_dir_all(&dependencies) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(BuildError::write(&dependencies, error));
        }
        _ => {}
    }
    fs::create_dir_all(&dependencies).map_err(|error| BuildError::write(&dependencies, error))?;
    for (name, text) in WASI {
        write(&dependencies.join(name), text.as_bytes())?;
    }
    for (name, text) in packed::WASI {
        let text = imports::build_names(&String::from_utf8_lossy(text));
        write(&dependencies.join(format!("host-{name}")), text.as_bytes())?;
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    fs::write(path, bytes).map_err(|error| BuildError::write(path, error))
}

mod imports;
#[cfg(test)]
mod tests;
