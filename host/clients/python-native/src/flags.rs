//! Flags of `cofferdam pipe`, as the package writes them.

use std::path::PathBuf;
use std::time::Duration;

use cofferdam::engine::Confinement;
use cofferdam::pipe::PipeOptions;
use cofferdam::records::RecordMode;
use cofferdam::{CacheDirectory, EngineOptions, SelectionFlags, compiler_program};

/// Maximum number of concurrent calls, as for `cofferdam pipe`. Further calls wait.
const CONCURRENT_CALLS_MAX: u32 = 64;
/// Maximum memory of a call in MiB, as for `--memory`.
const MEMORY_MIB_MAX: u64 = 4096;

/// Returns the options that flags describe, each a name and a value. `program` compiles plugins.
///
/// # Errors
/// Returns a message if a flag is not known or its value is invalid.
pub(crate) fn options(
    flags: Vec<(String, String)>,
    program: PathBuf,
) -> Result<PipeOptions, String> {
    let mut engine = EngineOptions {
        compiler: Some(compiler_program(program.clone())),
        ..EngineOptions::default()
    };
    engine.pool.concurrent_calls_max = CONCURRENT_CALLS_MAX;
    let mut selected = SelectionFlags::default();
    for (name, value) in flags {
        match name.as_str() {
            "cache-dir" => engine.cache = CacheDirectory::At(value.into()),
            "no-cache" => engine.cache = CacheDirectory::None,
            "confinement" => engine.confinement_min = Some(confinement(&value)?),
            _ => select(&mut selected, &name, value)?,
        }
    }
    if !selected.toolsets.is_empty() && selected.config.is_none() {
        return Err("--toolset names a toolset of a configuration: add --config FILE".to_owned());
    }
    let mut selection = selected.resolve().map_err(|error| format!("{error:#}"))?;
    selection.code.program = Some(program);
    Ok(PipeOptions { selection, engine })
}

fn select(selected: &mut SelectionFlags, name: &str, value: String) -> Result<(), String> {
    match name {
        "plugin" => selected.plugins.push(value),
        "mount" => selected.mounts.push(value),
        "config" => selected.config = Some(value.into()),
        "files" if selected.files.is_some() => return Err("expected one --files, found two".into()),
        "files" => selected.files = Some(value),
        "allow-http" => selected.allow_http.push(value),
        "allow-env" => selected.allow_env.push(value),
        "secret" => selected.secrets.push(value),
        "allow" => selected.allow.push(value),
        "limit" => selected.limits.push(value),
        "timeout" => selected.timeout = Some(milliseconds(&value)?),
        "memory" => selected.memory_mib = Some(mebibytes(&value)?),
        "tools" => selected.tools.extend(value.split(',').map(str::to_owned)),
        "toolset" => selected.toolsets.push(value),
        "code" => selected.code = Some(value.parse()?),
        "code-language" => {
            selected.code_language = Some(value.parse().map_err(|error| format!("{error}"))?);
        }
        "record" => selected.records = RecordMode::Always,
        _ => return Err(format!("expected a flag of `cofferdam pipe`, found `--{name}`")),
    }
    Ok(())
}

fn confinement(level: &str) -> Result<Confinement, String> {
    match level {
        "full" => Ok(Confinement::Full),
        "partial" => Ok(Confinement::Partial),
        "none" => Ok(Confinement::None),
        _ => Err(format!("expected `full`, `partial` or `none`, found the confinement `{level}`")),
    }
}

fn milliseconds(value: &str) -> Result<Duration, String> {
    let number = value.strip_suffix("ms").and_then(|number| number.parse().ok());
    match number {
        Some(number @ 1..=86_400_000) => Ok(Duration::from_millis(number)),
        _ => Err(format!("expected a timeout between 1ms and 1440m, found `{value}`")),
    }
}

fn mebibytes(value: &str) -> Result<u64, String> {
    match value.parse() {
        Ok(number @ 1..=MEMORY_MIB_MAX) => Ok(number),
        _ => Err(format!("expected a memory limit of 1 to {MEMORY_MIB_MAX} MiB, found `{value}`")),
    }
}
