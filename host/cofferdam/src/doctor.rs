//! Checks of this machine: parts of it that the host needs or can use, their state, and advice
//! about those that are missing.
//!
//! A check changes nothing. No directory is created: an unnamed temporary file shows whether one
//! can be written, and the compiled component goes to no cache. Files of MCP clients are only read,
//! and no program is started except the process that compiles.
//!
//! A problem is something without which no plugin runs, or an invalid configuration. Everything
//! that only some users need is a note. The texts contain paths of the host and are for the
//! operator.

#[cfg(feature = "mcp")]
mod clients;
mod compiler;
mod configuration;
mod folders;

use std::path::PathBuf;

use cofferdam_code::Language;
use cofferdam_engine::{Component, sys::resources};
use serde::Serialize;

use crate::{EngineOptions, Operator, Result, code_mode, compile_child};

/// Number of open files below which a note is made. A usual default is 1024, which a server with
/// many clients and calls exceeds.
const OPEN_FILES_MIN: u64 = 4096;

/// Parts of a machine that are checked.
pub struct CheckOptions {
    /// Options of the engine. Its cache is checked and not used.
    pub engine: EngineOptions,
    /// Component that is compiled and asked for its tools, such as a plugin of your own.
    pub component: Component,
    /// Directory in which a configuration and the files of MCP clients are looked for.
    pub directory: PathBuf,
    /// Configuration, instead of the one in `directory` or above it.
    pub config: Option<PathBuf>,
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MachineCheck {
    /// Area of the check.
    pub area: CheckArea,
    /// Subject of the check, such as `cache`.
    pub name: String,
    /// State of the subject.
    pub state: CheckState,
    /// Description of the subject as it was found.
    pub found: String,
    /// Advice for the operator, in one line.
    pub advice: Option<String>,
}

/// Area of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CheckArea {
    /// Compiler of plugins, and its confinement.
    Compiler,
    /// Memory pool and open files.
    Limits,
    /// Cache, state and call log.
    Directories,
    /// Configuration file, the trust in it, and its lock file.
    Configuration,
    /// Interpreters of code mode.
    Interpreters,
    /// Files of MCP clients.
    Clients,
    /// Toolchains of plugin authors, which only the command line checks.
    Toolchains,
}

/// State of a part of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckState {
    /// The part can be used.
    Ok,
    /// The part is missing or limited; others can be used without it.
    Note,
    /// No plugin runs without the part, or the configuration is invalid.
    Problem,
}

impl MachineCheck {
    fn ok(area: CheckArea, name: &str, found: impl Into<String>) -> Self {
        let (name, found) = (name.to_owned(), found.into());
        Self { area, name, state: CheckState::Ok, found, advice: None }
    }

    fn note(
        area: CheckArea,
        name: &str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let advice = Some(advice.into());
        Self { state: CheckState::Note, advice, ..Self::ok(area, name, found) }
    }

    fn problem(
        area: CheckArea,
        name: &str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { state: CheckState::Problem, ..Self::note(area, name, found, advice) }
    }
}

/// Checks this machine, and reports progress to the operator. Returns the checks area by area.
/// Compiling takes up to a few seconds.
///
/// # Errors
/// Returns an error if [`init`](crate::init) was not called and the options name no compiler.
pub async fn check_machine(
    options: &CheckOptions,
    operator: &Operator,
) -> Result<Vec<MachineCheck>> {
    if options.engine.compiler.is_none() {
        compile_child::compiler()?;
    }
    let (pool, engine) = compiler::check_pool(&options.engine);
    let mut checks = vec![compiler::check(engine.as_ref(), options, operator).await, pool];
    checks.push(check_open_files());
    let configuration = configuration::check(options);
    checks.extend(folders::check(&options.engine.cache, configuration.accepted.as_ref()));
    checks.extend(configuration.checks);
    checks.extend(Language::ALL.map(check_interpreter));
    #[cfg(feature = "mcp")]
    checks.extend(clients::check(&options.directory));
    Ok(checks)
}

fn check_open_files() -> MachineCheck {
    let (area, name) = (CheckArea::Limits, "open files");
    match resources::open_files_max() {
        None => MachineCheck::ok(area, name, "no limit"),
        Some(limit) if limit >= OPEN_FILES_MIN => {
            MachineCheck::ok(area, name, format!("at most {limit}"))
        }
        Some(limit) => MachineCheck::note(
            area,
            name,
            format!("at most {limit}"),
            format!(
                "a server with many calls can run out of them: raise the hard limit to \
                 {OPEN_FILES_MIN} (`ulimit -H -n`, or `LimitNOFILE` of a service)"
            ),
        ),
    }
}

fn check_interpreter(language: Language) -> MachineCheck {
    let (area, name) = (CheckArea::Interpreters, language.name());
    match code_mode::find(None, language) {
        Ok(path) => MachineCheck::ok(area, name, path.display().to_string()),
        Err(expected) => MachineCheck::note(
            area,
            name,
            format!("missing: there is no {}", expected.display()),
            "code mode needs it: run `cargo xtask install` in a checkout, or name a component with \
             `interpreter` in [code]",
        ),
    }
}
