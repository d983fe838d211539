//! Description of what a configuration allows beyond the defaults.

#[cfg(feature = "skills")]
use cofferdam_tool::Permission;

use crate::Result;
use crate::config::{ConfigFile, StoreConfig};
#[cfg(feature = "skills")]
use crate::config::{OfferedGrants, SpannedMessage};

/// Describes in one line each: the directories and buckets of stores, calls without approval, and
/// checks and records that are switched off.
///
/// # Errors
/// Returns an error for invalid grants of scripts.
pub(super) fn allowances(file: &ConfigFile) -> Result<Vec<String>> {
    let mut lines: Vec<_> = stores(file).chain(files(file)).collect();
    for (name, plugin) in &file.config.plugins {
        if !plugin.pin {
            lines.push(format!("[plugins.{name}] may change without your consent (pin = false)"));
        }
    }
    #[cfg(feature = "agent")]
    lines.extend(file.config.agent.allowing_rules().map(|rule| {
        let some = if rule.arguments.is_empty() { "calls" } else { "some calls" };
        format!("[[agent.approvals]] lets {some} of `{}` run without approval", rule.tool)
    }));
    #[cfg(feature = "skills")]
    lines.extend(scripts(file)?);
    #[cfg(feature = "registry")]
    if file.config.registry.unsigned == crate::config::UnsignedPolicy::Allow {
        lines.push("[registry] accepts plugins that no rule about signatures is about".to_owned());
    }
    lines.extend(file.config.records.deviations());
    Ok(lines)
}

/// Describes `[stores]`. Stores in memory are left out.
fn stores(file: &ConfigFile) -> impl Iterator<Item = String> {
    let memory_files = memory_files(file);
    file.config.stores.iter().filter(|(_, store)| store.is_lasting()).map(move |(name, store)| {
        let writes = file.may_write(name) || memory_files == Some(name);
        let location = file.location(store);
        format!("[stores.{name}] is {location}, which tools {}", access(writes))
    })
}

/// Describes `[files]`.
fn files(file: &ConfigFile) -> impl Iterator<Item = String> {
    file.config.files.iter().flat_map(move |(name, table)| {
        let writes = table.may_write();
        let own = table.own_store().filter(StoreConfig::is_lasting);
        let location = table
            .store
            .as_ref()
            .map(|store| format!("the store `{}`", store.get_ref()))
            .or_else(|| own.map(|store| file.location(&store)));
        let is_located = location.map(|location| {
            format!("[files.{name}] is {location}, which the file tools {}", access(writes))
        });
        let deletes = (writes && table.delete_approval == Some(false))
            .then(|| format!("[files.{name}] lets files be deleted without approval"));
        let has_exceptions = writes && table.approvals.iter().any(|rule| !rule.needs_approval);
        let exceptions = has_exceptions
            .then(|| format!("[[files.{name}.approvals]] lets some calls run without approval"));
        is_located.into_iter().chain(deletes).chain(exceptions)
    })
}

/// Describes the grants of scripts of skills.
#[cfg(feature = "skills")]
fn scripts(file: &ConfigFile) -> Result<Vec<String>> {
    let mut offered = OfferedGrants::default();
    let wrong = |(span, message): SpannedMessage| file.error(span, message);
    file.config.skills.grants.add_to(&mut offered).map_err(wrong)?;
    let line = |permission: &Permission| {
        format!("[skills.grants] lets scripts of skills {}", permission.in_plain_words())
    };
    Ok(offered.policy.permissions().iter().map(line).collect())
}

fn access(writes: bool) -> &'static str {
    if writes { "may change" } else { "may only read" }
}

/// Returns the name of the store of memory files.
#[cfg(feature = "agent")]
fn memory_files(file: &ConfigFile) -> Option<&String> {
    file.config.agent.memory_files.as_ref().map(toml::Spanned::get_ref)
}

/// Returns `None`, because only agents have memory files.
#[cfg(not(feature = "agent"))]
fn memory_files(_: &ConfigFile) -> Option<&String> {
    None
}
