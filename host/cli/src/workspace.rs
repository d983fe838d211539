//! `--files` and `[files]`: the stores that the file-access tools work on.

use std::path::PathBuf;
use std::sync::Arc;

use cofferdam_files::{FileAccessOptions, FileAccessStore, FileAccessTools, FileStore};
use cofferdam_tool::{FileAccess, MountName};

use crate::config::{ConfigError, ConfigFile, FilesTable};
use crate::exit::UsageError;
use crate::offer::Values;
use crate::stores::Stores;
use crate::{offer, stores};

/// The name of the store of `--files` that is given no other.
const NAME: &str = "workspace";
/// The name of several stores together.
const TOGETHER: &str = "files";

const FORM: &str = "write --files STORE or --files NAME=STORE, where STORE is a directory, an address like s3://bucket/prefix, \
                    or `memory`; with `:ro` at the end for reading only";

/// A store that was opened, with what the tools may do there.
struct Opened {
    store: FileAccessStore,
    access: FileAccess,
}

/// The tools over the store that was typed and those of `file`, if there are any. Stores that can be written to must not
/// hold one of `deciding`, the files that decide about grants: a model could otherwise grant its tools whatever it wants.
/// A typed store that `before` has too stays open.
pub(crate) fn tools(
    typed: Option<&str>,
    file: Option<&ConfigFile>,
    values: Values,
    deciding: &[PathBuf],
    before: Option<&FileAccessTools>,
) -> anyhow::Result<Option<FileAccessTools>> {
    let typed = typed.map(|text| of_text(text, before)).transpose()?;
    let configured = file.map(|file| of_config(file, values)).transpose()?.unwrap_or_default();
    let opened: Vec<_> = typed.into_iter().chain(configured).collect();
    let deciding = if opened.is_empty() { Vec::new() } else { offer::policy_files(deciding) };
    for Opened { store, access } in &opened {
        offer::check_store(&format!("the file store `{}`", store.name), &*store.store, *access, &deciding)?;
    }
    let stores: Vec<_> = opened.into_iter().map(|opened| opened.store).collect();
    for (index, FileAccessStore { name, .. }) in stores.iter().enumerate() {
        if stores.iter().take(index).any(|other| other.name == *name) {
            let hint = "give the store of --files another name: --files NAME=STORE";
            return Err(usage(format!("there are two file stores called `{name}`; {hint}")));
        }
    }
    if stores.is_empty() {
        return Ok(None);
    }
    FileAccessTools::over(TOGETHER, stores).map(Some).map_err(|error| usage(error.to_string()))
}

/// Checks `[files]` and opens its stores without reading any value.
pub(crate) fn check(file: &ConfigFile) -> anyhow::Result<usize> {
    Ok(of_config(file, Values::Leave)?.len())
}

/// Reads `[NAME=]STORE[:ro|:rw]` and opens the store.
fn of_text(text: &str, before: Option<&FileAccessTools>) -> anyhow::Result<Opened> {
    let (name, place) = match text.split_once('=') {
        Some((name, place)) if !name.contains(['/', '.', ':']) => (name, place),
        _ => (NAME, text),
    };
    let name = MountName::new(name).map_err(|error| usage(format!("{error}: {FORM}")))?;
    let (place, access) = match place.rsplit_once(':') {
        Some((place, "ro")) => (place, FileAccess::ReadOnly),
        Some((place, "rw")) => (place, FileAccess::ReadWrite),
        _ => (place, FileAccess::ReadWrite),
    };
    let kept = before.and_then(|tools| tools.stores().iter().find(|store| store.name == name.as_str()));
    let store = match kept {
        Some(kept) => Arc::clone(&kept.store),
        None => {
            stores::open_typed(place, access).map_err(|error| usage(format!("--files: {error:#}; {FORM}")))?
        }
    };
    let options =
        FileAccessOptions { is_read_only: access == FileAccess::ReadOnly, ..FileAccessOptions::default() };
    Ok(Opened { store: FileAccessStore { name: name.to_string(), store, options }, access })
}

/// The stores of `[files]`.
fn of_config(file: &ConfigFile, values: Values) -> anyhow::Result<Vec<Opened>> {
    let stores = Stores::new(file, values);
    file.config.files.iter().map(|(name, table)| of_table(file, &stores, name, table)).collect()
}

fn of_table(
    file: &ConfigFile,
    stores: &Stores<'_>,
    name: &str,
    table: &FilesTable,
) -> anyhow::Result<Opened> {
    let header = format!("[files.{name}");
    let wrong = |message: String| -> ConfigError { file.error_in_table(&header, message) };
    let access = match &table.access {
        None => FileAccess::ReadWrite,
        Some(access) if *access.get_ref() == FileAccess::CreateOnly => {
            let message =
                "the file tools have no access that only creates; write \"read-only\" or \"read-write\"";
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
            let message =
                "`store` names a store of [stores], whose directory, quota and per-session belong there";
            return Err(wrong(message.to_owned()).into());
        }
        (None, None) => {
            let message = format!(
                "[files.{name}] needs one of: store = \"NAME\" (of [stores]), directory = \"…\", url = \"s3://…\", memory = true"
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
        hidden: table.hidden.clone().unwrap_or(default.hidden),
        read_only: table.read_only.clone(),
        sharing,
        ..FileAccessOptions::default()
    };
    Ok(Opened { store: FileAccessStore { name: name.to_string(), store, options }, access })
}

fn usage(message: impl Into<String>) -> anyhow::Error {
    UsageError(message.into()).into()
}
