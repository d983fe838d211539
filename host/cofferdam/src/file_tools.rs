//! `--files` and `[files]`: the stores of the file-access tools.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam_files::{
    FileAccessOptions, FileAccessStore, FileAccessTools, FileStore, PathPatterns,
};
use cofferdam_tool::{FileAccess, MountName};
use toml::{Table, Value};

use crate::config::{ConfigError, ConfigFile, FilesTable};
use crate::granting::Values;
use crate::stores::Stores;
use crate::{Error, FilesStore, granting, policy_files, stores};

/// Default name of the store of `--files`.
const NAME: &str = "workspace";
/// Name of the source if there are several stores.
const TOGETHER: &str = "files";

/// An open store, with the access of the tools.
pub struct OpenStore {
    store: FileAccessStore,
    access: FileAccess,
}

/// Returns the file-access tools for the store `typed` and those of `file`, or `None` if there are
/// no stores.
///
/// Writable stores must not contain one of `deciding`, the files that control grants, because a
/// model could then grant its tools anything. A typed store that `before` also has stays open.
pub(crate) fn tools(
    typed: Option<&FilesStore>,
    file: Option<&ConfigFile>,
    values: Values,
    deciding: &[PathBuf],
    before: Option<&FileAccessTools>,
) -> crate::Result<Option<FileAccessTools>> {
    let typed = typed.map(|typed| of_typed(typed, before)).transpose()?;
    let configured = file.map(|file| of_config(file, values)).transpose()?.unwrap_or_default();
    let opened: Vec<_> = typed.into_iter().chain(configured).collect();
    let deciding = if opened.is_empty() { Vec::new() } else { policy_files::locate(deciding) };
    for OpenStore { store, access } in &opened {
        granting::check_store(
            &format!("the file store `{}`", store.name),
            &*store.store,
            *access,
            &deciding,
        )?;
    }
    let stores: Vec<_> = opened.into_iter().map(|opened| opened.store).collect();
    for (index, FileAccessStore { name, .. }) in stores.iter().enumerate() {
        if stores.iter().take(index).any(|other| other.name == *name) {
            let hint = "give one of them another name";
            return Err(usage(format!("there are two file stores called `{name}`; {hint}")));
        }
    }
    if stores.is_empty() {
        return Ok(None);
    }
    FileAccessTools::over(TOGETHER, stores).map(Some).map_err(|error| usage(error.to_string()))
}

/// Checks `[files]` and opens its stores without reading any value.
pub fn check(file: &ConfigFile) -> crate::Result<usize> {
    Ok(of_config(file, Values::Leave)?.len())
}

/// Describes what a configuration allows beyond the defaults, in one line each: the directories of
/// its stores, calls without approval, and checks and records that are switched off.
///
/// # Errors
/// Returns an error if the configuration is no TOML.
pub fn allowances(file: &ConfigFile) -> crate::Result<Vec<String>> {
    let table: Table = file.text.parse().map_err(|error| usage(format!("{error}")))?;
    let (mut lines, found) = (store_lines(file, &table), |path: &[&str]| value(&table, path));
    for (name, plugin) in tables(found(&["plugins"])) {
        if plugin.get("pin").and_then(Value::as_bool) == Some(false) {
            lines.push(format!("[plugins.{name}] may change without your consent (pin = false)"));
        }
    }
    for rule in found(&["agent", "approvals"]).and_then(Value::as_array).into_iter().flatten() {
        let text = |key| rule.get(key).and_then(Value::as_str).unwrap_or_default();
        if text("effect") == "allow" {
            let some = if rule.get("arguments").is_some() { "some calls" } else { "calls" };
            let tool = text("tool");
            lines.push(format!("[[agent.approvals]] lets {some} of `{tool}` run without approval"));
        }
    }
    let grants = found(&["skills", "grants"]).and_then(Value::as_table).into_iter().flatten();
    for (kind, granted) in grants {
        let names: Vec<_> = match granted {
            Value::Table(by_name) => by_name.keys().map(String::as_str).collect(),
            Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        lines.push(format!("[skills.grants] gives scripts of skills {kind} {}", names.join(", ")));
    }
    if found(&["registry", "unsigned"]).and_then(Value::as_str) == Some("allow") {
        lines.push("[registry] accepts plugins that no rule about signatures is about".to_owned());
    }
    if found(&["records", "enabled"]).and_then(Value::as_bool) == Some(false) {
        lines.push("[records] records no calls".to_owned());
    }
    if let Some(url) = found(&["records", "otlp", "url"]).and_then(Value::as_str) {
        lines.push(format!("[records.otlp] sends a span of each recorded call to {url}"));
    }
    Ok(lines.iter().map(|line| line.trim_end().to_owned()).collect())
}

/// Describes the stores and the file tools.
fn store_lines(file: &ConfigFile, table: &Table) -> Vec<String> {
    let may = |writes| if writes { "may change" } else { "may only read" };
    let memory_files = value(table, &["agent", "memory-files"]).and_then(Value::as_str);
    let mut lines = Vec::new();
    for (name, store) in tables(value(table, &["stores"])) {
        if let Some(location) = location_of(file, store) {
            let writes = file.may_write(name) || memory_files == Some(name);
            lines.push(format!("[stores.{name}] is {location}, which tools {}", may(writes)));
        }
    }
    for (name, files) in tables(value(table, &["files"])) {
        let writes = file.config.files.get(name).is_some_and(FilesTable::may_write);
        let store = files.get("store").and_then(Value::as_str);
        let location =
            store.map(|store| format!("the store `{store}`")).or_else(|| location_of(file, files));
        if let Some(location) = location {
            lines.push(format!(
                "[files.{name}] is {location}, which the file tools {}",
                may(writes)
            ));
        }
        let is_free = files.get("delete-approval").and_then(Value::as_bool) == Some(false);
        if writes && is_free {
            lines.push(format!("[files.{name}] lets files be deleted without approval"));
        }
        let rules = files.get("approvals").and_then(Value::as_array).into_iter().flatten();
        let needed = |rule: &Value| rule.get("needs-approval").and_then(Value::as_bool);
        if writes && rules.into_iter().any(|rule| needed(rule) == Some(false)) {
            lines.push(format!("[[files.{name}.approvals]] lets some calls run without approval"));
        }
    }
    lines
}

/// Returns the directory or bucket of a store.
fn location_of(file: &ConfigFile, store: &Value) -> Option<String> {
    let text = |key| store.get(key).and_then(Value::as_str);
    let directory = text("directory").map(|path| {
        let path = file.resolve(Path::new(path));
        std::path::absolute(&path).unwrap_or(path).display().to_string()
    });
    directory.or_else(|| text("url").map(str::to_owned))
}

/// Returns the value at a path of keys.
fn value<'t>(table: &'t Table, path: &[&str]) -> Option<&'t Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(table.get(*first)?, |value, key| value.get(key))
}

/// Returns the tables in a table, by name.
fn tables(value: Option<&Value>) -> impl Iterator<Item = (&str, &Value)> {
    let tables = value.and_then(Value::as_table).into_iter().flatten();
    tables.map(|(name, table)| (name.as_str(), table))
}

/// Opens a store that no configuration names, unless `before` already has it open.
fn of_typed(typed: &FilesStore, before: Option<&FileAccessTools>) -> crate::Result<OpenStore> {
    let FilesStore { name, location, access } = typed;
    let name = MountName::new(name.as_deref().unwrap_or(NAME))
        .map_err(|error| usage(error.to_string()))?;
    let open =
        before.and_then(|tools| tools.stores().iter().find(|store| store.name == name.as_str()));
    let store = match open {
        Some(open) => Arc::clone(&open.store),
        None => stores::open_location(location, *access)
            .map_err(|error| usage(format!("the file store `{name}`: {error:#}")))?,
    };
    let options = FileAccessOptions {
        is_read_only: *access == FileAccess::ReadOnly,
        ..FileAccessOptions::default()
    };
    Ok(OpenStore {
        store: FileAccessStore { name: name.to_string(), store, options },
        access: *access,
    })
}

/// Opens the stores of `[files]`.
pub fn of_config(file: &ConfigFile, values: Values) -> crate::Result<Vec<OpenStore>> {
    let stores = Stores::new(file, values);
    file.config.files.iter().map(|(name, table)| of_table(file, &stores, name, table)).collect()
}

fn of_table(
    file: &ConfigFile,
    stores: &Stores<'_>,
    name: &str,
    table: &FilesTable,
) -> crate::Result<OpenStore> {
    let header = format!("[files.{name}");
    let wrong = |message: String| -> ConfigError { file.error_in_table(&header, message) };
    let access = match &table.access {
        None => FileAccess::ReadWrite,
        Some(access) if *access.get_ref() == FileAccess::CreateOnly => {
            let message = "the file tools have no access that only creates; write \"read-only\" \
                or \"read-write\"";
            return Err(file.error(access.span(), message).into());
        }
        Some(access) => *access.get_ref(),
    };
    let name = MountName::new(name).map_err(|error| wrong(error.to_string()))?;
    let (store, sharing): (Arc<dyn FileStore>, _) = match (&table.store, table.own_store()) {
        (Some(store), None) => {
            let mount = MountName::new(store.get_ref().as_str())
                .map_err(|error| file.error(store.span(), error.to_string()))?;
            (stores.get(&mount, store.span())?, stores.sharing(&mount))
        }
        (None, Some(config)) => {
            (stores.open_own(name.as_str(), &config, access)?, Stores::sharing_of(Some(&config)))
        }
        (Some(_), Some(_)) => {
            let message = "`store` names a store of [stores], whose directory, quota and \
                per-session belong there";
            return Err(wrong(message.to_owned()).into());
        }
        (None, None) => {
            let message = format!(
                "[files.{name}] needs one of: store = \"NAME\" (of [stores]), directory = \"…\", \
                 url = \"s3://…\", memory = true"
            );
            return Err(wrong(message).into());
        }
    };
    let default = FileAccessOptions::default();
    let options = FileAccessOptions {
        is_read_only: access == FileAccess::ReadOnly,
        require_delete_approval: table.delete_approval.unwrap_or(default.require_delete_approval),
        require_write_approval: table.write_approval.unwrap_or(default.require_write_approval),
        approvals: table.approvals.clone(),
        hidden: hidden(table, default.hidden)?,
        read_only: table.read_only.clone(),
        sharing,
        ..FileAccessOptions::default()
    };
    Ok(OpenStore { store: FileAccessStore { name: name.to_string(), store, options }, access })
}

/// Returns the paths that the tools hide: those of the table in addition to the default ones.
fn hidden(table: &FilesTable, default: PathPatterns) -> crate::Result<PathPatterns> {
    let Some(own) = &table.hidden else { return Ok(default) };
    let patterns = [default, own.clone()].into_iter().flat_map(Vec::<String>::from).collect();
    PathPatterns::new(patterns).map_err(|error| usage(error.to_string()))
}

fn usage(message: impl Into<String>) -> crate::Error {
    Error::Invalid(message.into())
}
