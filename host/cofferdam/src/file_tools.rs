//! `--files` and `[files]`: the stores of the file-access tools.

use std::path::PathBuf;
use std::sync::Arc;

use cofferdam_files::{
    FileAccessOptions, FileAccessStore, FileAccessTools, FileStore, PathPatterns,
};
use cofferdam_tool::{FileAccess, MountName};

use crate::config::{ConfigError, ConfigFile, FilesTable};
use crate::granting::Values;
use crate::stores::Stores;
use crate::{Error, FilesStore, granting, policy_files, stores, text};

/// Default name of the store of `--files`.
const NAME: &str = "workspace";
/// Name of the source if there are several stores.
const TOGETHER: &str = "files";

/// An open store, with the access of the tools.
pub(crate) struct OpenStore {
    store: FileAccessStore,
    access: FileAccess,
    /// Location of the store.
    location: String,
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
    for OpenStore { store, access, .. } in &opened {
        granting::check_store(
            &format!("the file store `{}`", store.name),
            &*store.store,
            *access,
            &deciding,
        )?;
    }
    let digest = digest(&opened);
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
    let tools =
        FileAccessTools::over(TOGETHER, stores).map_err(|error| usage(error.to_string()))?;
    Ok(Some(tools.located(digest)))
}

/// Returns a digest of the names, the locations and the access of stores. Approvals hold for one
/// digest: one for a directory does not hold for another, nor for writing where it was for reading.
fn digest(stores: &[OpenStore]) -> String {
    let described = |OpenStore { store, access, location }: &OpenStore| {
        format!("{:?}\n", (&store.name, location, access.as_str()))
    };
    text::digest(stores.iter().map(described).collect::<String>().as_bytes())
}

/// Checks `[files]` and opens its stores without reading any value.
pub(crate) fn check(file: &ConfigFile) -> crate::Result<usize> {
    Ok(of_config(file, Values::Leave)?.len())
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
        location: location.to_string(),
    })
}

/// Opens the stores of `[files]`.
pub(crate) fn of_config(file: &ConfigFile, values: Values) -> crate::Result<Vec<OpenStore>> {
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
    let own = table.own_store();
    let (store, config): (Arc<dyn FileStore>, _) = match (&table.store, own.as_ref()) {
        (Some(store), None) => {
            let mount = MountName::new(store.get_ref().as_str())
                .map_err(|error| file.error(store.span(), error.to_string()))?;
            (stores.get(&mount, store.span())?, file.config.stores.get(mount.as_str()))
        }
        (None, Some(config)) => (stores.open_own(name.as_str(), config, access)?, Some(config)),
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
        sharing: Stores::sharing_of(config),
        ..FileAccessOptions::default()
    };
    Ok(OpenStore {
        store: FileAccessStore { name: name.to_string(), store, options },
        access,
        location: config.map(|config| file.location(config)).unwrap_or_default(),
    })
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

#[cfg(test)]
mod tests {
    use cofferdam_tool::ToolSource as _;

    use super::*;
    use crate::StoreLocation;

    #[test]
    fn an_approval_holds_for_one_directory_and_access() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let origin = |directory: &tempfile::TempDir, access| {
            let location = StoreLocation::Directory(directory.path().to_owned());
            let typed = FilesStore { name: None, location, access };
            let tools = tools(Some(&typed), None, Values::Leave, &[], None).unwrap().unwrap();
            tools.origin(&tools.definitions()[0].name).to_string()
        };
        let approved = origin(&one, FileAccess::ReadWrite);
        assert!(approved.starts_with("program:workspace@sha256:"), "{approved}");
        assert_eq!(origin(&one, FileAccess::ReadWrite), approved);
        assert_ne!(origin(&one, FileAccess::ReadOnly), approved);
        assert_ne!(origin(&other, FileAccess::ReadWrite), approved);
    }
}
