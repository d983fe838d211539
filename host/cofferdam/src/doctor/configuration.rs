//! The configuration of a directory: its errors, the trust in it, and plugins that have changed
//! since they were accepted.
//!
//! A changed plugin is found by the digest of its component file. Nothing is loaded, so a change of
//! a manifest beside the component, or of a server, is not found.

use std::path::{Path, PathBuf};

use cofferdam_engine::screen::ScreenLimits;
use cofferdam_registry::Digest;

use super::{CheckArea, CheckOptions, MachineCheck};
use crate::compose::PluginSpec;
use crate::config::ConfigFile;
use crate::config_check;
use crate::consent::shell_path;
use crate::pins::Pins;
use crate::trust::{self, Trust};
use crate::{Result, text};

/// Checks of a configuration.
#[derive(Default)]
pub(super) struct ConfigurationChecks {
    pub(super) checks: Vec<MachineCheck>,
    /// Configuration without errors that the caller has named or trusted.
    pub(super) accepted: Option<ConfigFile>,
}

/// Checks the configuration that the options name, or else the one that commands would find.
pub(super) fn check(options: &CheckOptions) -> ConfigurationChecks {
    let mut result = ConfigurationChecks::default();
    let (path, trust) = match locate(options) {
        Ok(located) => located,
        Err(check) => {
            result.checks.push(check);
            return result;
        }
    };
    let read = ConfigFile::read_ambient(&path).map_err(crate::Error::from);
    let read = read.and_then(|file| Ok((config_check::check(&file)?.plugins, file)));
    let plugins = match read {
        Ok((plugins, file)) => {
            let found = format!("{}, {}", path.display(), text::counted(plugins.len(), "plugin"));
            result.checks.push(MachineCheck::ok(AREA, "file", found));
            result.accepted = trust.is_none_or(|trust| trust == Trust::Trusted).then_some(file);
            plugins
        }
        Err(error) => {
            let advice =
                format!("correct it; `cofferdam config check {}` helps", shell_path(&path));
            let found = format!("{error:#}");
            result.checks.push(MachineCheck::problem(AREA, "file", found, advice));
            Vec::new()
        }
    };
    result.checks.extend(trust.map(|trust| check_trust(&path, trust)));
    if !plugins.is_empty() {
        result.checks.push(check_lock_file(&path, &plugins));
    }
    result
}

const AREA: CheckArea = CheckArea::Configuration;

/// Returns the path of the configuration, and the trust in it unless the options name it.
fn locate(options: &CheckOptions) -> Result<(PathBuf, Option<Trust>), MachineCheck> {
    if let Some(path) = &options.config {
        return Ok((path.clone(), None));
    }
    match trust::find_ambient(&options.directory) {
        Ok(Some(found)) => Ok((found.path, Some(found.trust))),
        Ok(None) => Err(MachineCheck::note(
            AREA,
            "file",
            format!("there is no {} here or above", trust::CONFIG_FILE),
            "`cofferdam config init --plugin FILE` creates one",
        )),
        Err(error) => {
            let advice = "remove the file to end the trust in all configurations";
            Err(MachineCheck::note(AREA, "trust", format!("{error:#}"), advice))
        }
    }
}

fn check_trust(path: &Path, trust: Trust) -> MachineCheck {
    let advice = format!(
        "commands do not use it without `--config`; `cofferdam trust {}` trusts it",
        shell_path(path)
    );
    match trust {
        Trust::Trusted => MachineCheck::ok(AREA, "trust", "trusted"),
        Trust::Changed => MachineCheck::note(AREA, "trust", "changed since it was trusted", advice),
        Trust::Unknown => MachineCheck::note(AREA, "trust", "not trusted", advice),
    }
}

fn check_lock_file(config: &Path, plugins: &[PluginSpec]) -> MachineCheck {
    let name = "lock file";
    let pins = match Pins::of_config_ambient(config) {
        Ok(pins) => pins,
        Err(error) => {
            let advice = "restore it from version control, or remove it and accept the plugins";
            return MachineCheck::problem(AREA, name, format!("{error:#}"), advice);
        }
    };
    let accepted = |spec: &PluginSpec| pins.component(spec.options.name.as_str()).is_some();
    if !plugins.iter().any(accepted) {
        let found = "nothing has been accepted yet; the first use of a plugin accepts it";
        return MachineCheck::ok(AREA, name, found);
    }
    let changed: Vec<_> = plugins.iter().filter(|spec| has_changed(spec, &pins)).collect();
    let names: Vec<_> = changed.iter().map(|spec| format!("`{}`", spec.options.name)).collect();
    match changed.first() {
        None => MachineCheck::ok(AREA, name, "no plugin has changed since it was accepted"),
        Some(first) => MachineCheck::note(
            AREA,
            name,
            format!("changed since they were accepted: {}", names.join(", ")),
            format!(
                "`cofferdam approve {} --config {}` shows the change and accepts it",
                first.options.name,
                shell_path(config)
            ),
        ),
    }
}

/// Returns whether the component of a plugin is another one than the accepted one. A component that
/// cannot be read has not changed; loading it tells the reason.
fn has_changed(spec: &PluginSpec, pins: &Pins) -> bool {
    let accepted = pins.component(spec.options.name.as_str()).filter(|_| spec.is_pinned);
    let bytes_max = ScreenLimits::default().component_bytes_max;
    accepted.is_some_and(|accepted| {
        cofferdam_files::read_named_ambient(&spec.path, bytes_max)
            .is_ok_and(|component| Digest::of(&component) != accepted)
    })
}
