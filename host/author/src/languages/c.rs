//! C and C++: clang with the C library of WASI, or Zig, which is a clang with its own library.
//!
//! Each source file is compiled separately, and again only if it, a header that it includes, or an
//! option has changed. All objects are linked into a core module that is a reactor. The linker
//! drops unused code, so that a component imports only what its sources use. The module contains no
//! path of the build machine.

mod toolchain;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use self::toolchain::Toolchain;
use crate::{BuildError, Language, MissingTool, Project, Steps, component};

/// Options for every source. Warnings are shown and do not fail the build.
const COMPILING: [&str; 6] =
    ["-Os", "-Wall", "-ffunction-sections", "-fdata-sections", "-fno-ident", "-Qunused-arguments"];
const C: [&str; 1] = ["-std=gnu17"];
/// The C++ library of the tested toolchains has no exceptions.
const CPP: [&str; 2] = ["-std=gnu++23", "-fno-exceptions"];
const LINKING: [&str; 4] = [
    "-mexec-model=reactor",
    "-Wl,--gc-sections",
    "-Wl,-z,stack-size=1048576",
    "-Qunused-arguments",
];

/// Finds a compiler, and returns its name with its version.
pub(crate) fn find(wasi_sdk: Option<&Path>, is_cpp: bool) -> Result<String, MissingTool> {
    toolchain::find(wasi_sdk, is_cpp).map(|toolchain| toolchain.name)
}

/// Builds the component of a project.
pub(crate) fn build(
    project: &Project,
    wasi_sdk: Option<&Path>,
    steps: &Steps<'_>,
) -> Result<Vec<u8>, BuildError> {
    let is_cpp = project.language() == Language::Cpp;
    let toolchain = toolchain::find(wasi_sdk, is_cpp)?;
    steps.note(&format!("compiler: {}", toolchain.name));
    let objects = project.work()?.join("objects");
    fs::create_dir_all(&objects).map_err(|error| BuildError::write(&objects, error))?;
    let compiler = Compiler { project, steps, toolchain: &toolchain, sdk: project.sdk()?, objects };
    let own = own_sources(project)?;
    let linked: Result<Vec<_>, _> =
        compiler.sdk_sources()?.iter().chain(&own).map(|source| compiler.object(source)).collect();
    let module = compiler.link(&linked?, is_cpp)?;
    component::from_core_module(
        &fs::read(&module).map_err(|error| BuildError::read(&module, error))?,
    )
}

struct Compiler<'a> {
    project: &'a Project,
    steps: &'a Steps<'a>,
    toolchain: &'a Toolchain,
    sdk: PathBuf,
    objects: PathBuf,
}

impl Compiler<'_> {
    /// Returns the C sources of the SDK.
    fn sdk_sources(&self) -> Result<Vec<PathBuf>, BuildError> {
        let mut sources = Vec::new();
        for entry in
            self.sdk.read_dir().map_err(|error| BuildError::read(&self.sdk, error))?.flatten()
        {
            let path = entry.path();
            if is_c(&path) {
                sources.push(path);
            }
        }
        sources.sort();
        if sources.is_empty() {
            return Err(BuildError::NoSdk { looked_for: self.sdk.join("cofferdam.c") });
        }
        Ok(sources)
    }

    /// Compiles a source, unless its object is up to date. Returns the path of the object.
    fn object(&self, source: &Path) -> Result<PathBuf, BuildError> {
        let shown = self.shown(source);
        let object = self.objects.join(format!("{}.o", shown.replace(['/', '\\'], "-")));
        let read = object.with_extension("d");
        let mut compile = self.compile(source);
        compile.arg("-MD").arg("-MF").arg(&read).arg("-c").arg(source).arg("-o").arg(&object);
        let recipe = format!("{} {compile:?}", self.toolchain.version);
        let stamp = object.with_extension("recipe");
        if self.is_current(&object, &read)
            && fs::read_to_string(&stamp).is_ok_and(|there| there == recipe)
        {
            return Ok(object);
        }
        let finished = self.steps.run(&format!("compile {shown}"), &mut compile)?;
        self.steps.warn(&finished.stderr);
        fs::write(&stamp, recipe).map_err(|error| BuildError::write(&stamp, error))?;
        Ok(object)
    }

    fn compile(&self, source: &Path) -> Command {
        let mut command = self.toolchain.command(!is_c(source));
        command.current_dir(self.project.directory()).args(COMPILING);
        if is_c(source) {
            command.args(C);
        } else {
            command.args(CPP);
        }
        // The last matching option wins, so that an SDK inside the project is mapped to `sdk`, not
        // to `./sdk`.
        command.arg(prefix_map(self.project.directory(), ".")).arg(prefix_map(&self.sdk, "sdk"));
        if !source.starts_with(&self.sdk) {
            command.args(&self.project.build().flags);
        }
        command.arg("-I").arg(&self.sdk);
        command
    }

    fn link(&self, objects: &[PathBuf], is_cpp: bool) -> Result<PathBuf, BuildError> {
        let module = self.objects.join("module.wasm");
        let mut command = self.toolchain.command(is_cpp);
        command
            .current_dir(self.project.directory())
            .args(LINKING)
            .args(self.toolchain.linking)
            .args(objects);
        command.args(&self.project.build().flags).arg("-o").arg(&module);
        self.steps.run("link", &mut command)?;
        Ok(module)
    }

    /// Returns whether an object is newer than all of its inputs.
    fn is_current(&self, object: &Path, read: &Path) -> bool {
        let changed = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
        let (Some(made), Ok(text)) = (changed(object), fs::read_to_string(read)) else {
            return false;
        };
        let inputs = inputs(&text);
        let is_older = |input: &String| {
            changed(&self.project.directory().join(input)).is_some_and(|changed| changed < made)
        };
        !inputs.is_empty() && inputs.iter().all(is_older)
    }

    /// Returns the path of a source for messages: below `sdk`, or relative to the project.
    fn shown(&self, source: &Path) -> String {
        let in_sdk = source.strip_prefix(&self.sdk).map(|path| Path::new("sdk").join(path));
        let path = in_sdk.unwrap_or_else(|_| {
            source.strip_prefix(self.project.directory()).unwrap_or(source).to_owned()
        });
        path.display().to_string()
    }
}

/// Returns the files of a make rule `object: source header …`, in which a backslash escapes blanks
/// and line ends.
fn inputs(rule: &str) -> Vec<String> {
    let Some((_, files)) = rule.split_once(": ") else { return Vec::new() };
    let files = files.replace("\\\n", " ").replace("\\ ", "\0");
    files.split_whitespace().map(|file| file.replace('\0', " ")).collect()
}

fn prefix_map(folder: &Path, name: &str) -> OsString {
    let mut option = OsString::from("-ffile-prefix-map=");
    option.push(folder);
    option.push("=");
    option.push(name);
    option
}

fn ending(path: &Path) -> &str {
    path.extension().and_then(|ending| ending.to_str()).unwrap_or_default()
}

fn is_c(path: &Path) -> bool {
    ending(path) == "c"
}

fn is_source(path: &Path) -> bool {
    matches!(ending(path), "c" | "cc" | "cpp" | "cxx")
}

/// Returns the files that match `[build] sources`, or by default the sources in the project's
/// directory and below `src`. Sorted.
fn own_sources(project: &Project) -> Result<Vec<PathBuf>, BuildError> {
    let globs = &project.build().sources;
    let usual = ["*", "src/**"].map(str::to_owned);
    let globs = set(if globs.is_empty() { &usual } else { globs })?;
    let mut sources = Vec::new();
    collect(project.directory(), project.directory(), &globs, &mut sources);
    sources.sort();
    if sources.is_empty() {
        let advice = "there is no source file (.c, .cc, .cpp, .cxx) in the project or in `src`; `[build] sources` in plugin.toml \
                      names those that are elsewhere";
        return Err(BuildError::Project(advice.to_owned()));
    }
    Ok(sources)
}

fn set(globs: &[String]) -> Result<GlobSet, BuildError> {
    let wrong = |error| BuildError::Project(format!("[build] sources: {error}"));
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        let glob = GlobBuilder::new(glob).literal_separator(true).build().map_err(wrong)?;
        set.add(glob);
    }
    set.build().map_err(wrong)
}

/// Adds matching sources below `folder`. Does not enter hidden directories or follow links.
fn collect(folder: &Path, root: &Path, globs: &GlobSet, sources: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let path = entry.path();
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        let is_named = |path: &Path| path.strip_prefix(root).is_ok_and(|path| globs.is_match(path));
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !is_hidden => collect(&path, root, globs, sources),
            Ok(kind) if kind.is_file() && is_source(&path) && is_named(&path) => sources.push(path),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_for_make_names_what_was_read() {
        let rule = "/tmp/a.o: /tmp/a.c \\\n  sdk/cofferdam.h /tmp/with\\ blank.h\n";
        assert_eq!(inputs(rule), ["/tmp/a.c", "sdk/cofferdam.h", "/tmp/with blank.h"]);
        assert!(inputs("").is_empty());
    }

    #[test]
    fn a_star_stays_in_its_folder() {
        let globs = set(&["*".to_owned(), "src/**".to_owned()]).unwrap();
        assert!(globs.is_match("main.c") && globs.is_match("src/deep/part.c"));
        assert!(!globs.is_match("tests/test.c") && !globs.is_match("sdk/cofferdam.c"));
    }
}
