//! `cofferdam doctor`: checks this machine, and prints what is missing with advice.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cofferdam::doctor::{CheckArea, CheckOptions, CheckState, MachineCheck, check_machine};
use cofferdam_author::{Language, find_toolchain};
use cofferdam_engine::Component;

use super::demo;
use crate::args::{DoctorArgs, Global};
use crate::exit::Exit;
use crate::{host, print, progress};

pub(crate) async fn run(global: &Global, args: DoctorArgs) -> anyhow::Result<Exit> {
    let options = CheckOptions {
        engine: host::engine_options(global),
        component: Component::from_bytes(demo::PLUGIN),
        directory: std::env::current_dir()?,
        config: args.config,
    };
    let mut checks = check_machine(&options, &host::operator()).await?;
    progress::show("looking for toolchains", None);
    checks.extend(toolchains());
    progress::clear();
    if args.json {
        print::result(&serde_json::to_string(&checks)?)?;
    } else {
        print::report(&table(&checks))?;
    }
    let has_problem = checks.iter().any(|check| check.state == CheckState::Problem);
    Ok(if has_problem { Exit::Plugin } else { Exit::Ok })
}

/// Looks for the toolchains of all languages, at the same time.
fn toolchains() -> Vec<MachineCheck> {
    // Programs of the working directory are not started: it can belong to an untrusted project.
    // The root directory belongs to the administrator.
    let directory = Path::new("/");
    let wasi_sdk = std::env::var_os("WASI_SDK_PATH").map(PathBuf::from);
    let wasi_sdk = wasi_sdk.as_deref();
    std::thread::scope(|scope| {
        let searches = Language::ALL.map(|language| {
            (language, scope.spawn(move || find_toolchain(language, directory, wasi_sdk)))
        });
        let searches = searches.into_iter();
        searches
            .filter_map(|(language, search)| Some(toolchain(language, search.join().ok()?)))
            .collect()
    })
}

fn toolchain(
    language: Language,
    found: Result<String, cofferdam_author::MissingTool>,
) -> MachineCheck {
    let (state, found, advice) = match found {
        Ok(found) => (CheckState::Ok, found, None),
        Err(missing) => {
            let found = format!("{} is missing", missing.tool.trim_end_matches(','));
            let advice = format!("to write plugins in it: {}", missing.install.join("; or: "));
            (CheckState::Note, found, Some(advice))
        }
    };
    MachineCheck { area: CheckArea::Toolchains, name: language.to_string(), state, found, advice }
}

/// Returns the checks in lines, with a heading for each area.
fn table(checks: &[MachineCheck]) -> String {
    let width = checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    let mut area = None;
    for check in checks {
        if area.replace(check.area) != Some(check.area) {
            let gap = if text.is_empty() { "" } else { "\n" };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{gap}{}", heading(check.area));
        }
        let MachineCheck { name, found, .. } = check;
        let _ = writeln!(text, "  {:7}  {name:width$}  {found}", word(check.state));
        if let Some(advice) = &check.advice {
            let _ = writeln!(text, "{:11}{advice}", "");
        }
    }
    text.truncate(text.trim_end().len());
    text
}

fn word(state: CheckState) -> &'static str {
    match state {
        CheckState::Ok => "ok",
        CheckState::Note => "note",
        CheckState::Problem => "problem",
    }
}

fn heading(area: CheckArea) -> &'static str {
    match area {
        CheckArea::Compiler => "Compiler of plugins",
        CheckArea::Limits => "Limits of this process",
        CheckArea::Directories => "Directories",
        CheckArea::Configuration => "Configuration",
        CheckArea::Interpreters => "Interpreters of code mode",
        CheckArea::Clients => "MCP clients",
        CheckArea::Toolchains => "Toolchains for plugin authors",
        _ => "Others",
    }
}
