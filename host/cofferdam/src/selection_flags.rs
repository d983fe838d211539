//! Typed flags that select plugins, stores and grants. The command line and
//! the packages for other languages resolve them here, so that they mean the same.

use std::path::PathBuf;
use std::time::Duration;

use cofferdam_code::Language;
use cofferdam_tool::recording::RecordingLevel;
use cofferdam_tool::{FileAccess, Permission};

use crate::code_mode::{CodeOffer, CodeSelection};
use crate::config::ValueSource;
use crate::records::RecordMode;
use crate::{
    Error, FilesStore, OfferedPermission, PluginFile, Result, Selection, StoreLocation, StoreMount,
};

const MOUNT_FORM: &str = "write --mount NAME=STORE, NAME=STORE:ro for reading only, or NAME=STORE:create for creating only; STORE is a directory, \
                          an address like s3://bucket/prefix, or `memory`";
const FILES_FORM: &str = "write --files STORE or --files NAME=STORE, where STORE is a directory, an address like s3://bucket/prefix, \
                          or `memory`; with `:ro` at the end for reading only";

/// Values of the flags that select plugins, stores and grants.
#[derive(Debug, Clone, Default)]
pub struct SelectionFlags {
    /// `--plugin [NAME=]PATH`.
    pub plugins: Vec<String>,
    /// `--mount NAME=STORE[:ro|:create]`.
    pub mounts: Vec<String>,
    /// `--allow-http RULE`.
    pub allow_http: Vec<String>,
    /// `--allow-env NAME[=VALUE]`.
    pub allow_env: Vec<String>,
    /// `--secret NAME[=VARIABLE]`.
    pub secrets: Vec<String>,
    /// `--allow PERMISSION`.
    pub allow: Vec<String>,
    /// `--limit KEY=NUMBER`.
    pub limits: Vec<String>,
    /// `--config FILE`.
    pub config: Option<PathBuf>,
    /// `--files [NAME=]STORE`.
    pub files: Option<String>,
    /// `--skills DIR`.
    #[cfg(feature = "skills")]
    pub skills: Vec<PathBuf>,
    /// `--toolset NAME`.
    pub toolsets: Vec<String>,
    /// `--tools TOOL,…`.
    pub tools: Vec<String>,
    /// `--timeout TIME`.
    pub timeout: Option<Duration>,
    /// `--memory MIB`.
    pub memory_mib: Option<u64>,
    /// `--code`.
    pub code: Option<CodeOffer>,
    /// `--code-language LANGUAGE`.
    pub code_language: Option<Language>,
    /// Recording of calls in the call log.
    pub records: RecordMode,
    /// Calls that are recorded so that they can run again.
    pub recording: Option<RecordingLevel>,
}

impl SelectionFlags {
    /// Returns the selection that the flags describe.
    ///
    /// # Errors
    /// Returns an error for an invalid value, and for flags that need others.
    pub fn resolve(&self) -> Result<Selection> {
        let mounts = self.mounts.iter().map(|typed| mount(typed)).collect::<Result<Vec<_>>>()?;
        if self.plugins.is_empty() && !mounts.is_empty() {
            return Err(Error::invalid(
                "--mount is for plugins named with --plugin; a configuration has its own grants",
            ));
        }
        let permissions = self.permissions()?;
        if self.plugins.is_empty() && !permissions.is_empty() {
            return Err(Error::invalid(
                "--allow-http, --allow-env, --secret, --allow and --limit are for plugins named \
                 with --plugin; a configuration has its own grants",
            ));
        }
        Ok(Selection {
            config: self.config.clone(),
            plugins: self.plugins.iter().map(|typed| PluginFile::parse(typed)).collect(),
            mounts,
            permissions,
            files: self.files.as_deref().map(files).transpose()?,
            #[cfg(feature = "skills")]
            skills: self.skills.clone(),
            toolsets: self.toolsets.clone(),
            tools: self.tools.clone(),
            timeout: self.timeout,
            memory_bytes_max: self.memory_mib.map(|mebibytes| mebibytes << 20),
            records: self.records,
            recording: self.recording,
            code: CodeSelection {
                offer: self.code,
                language: self.code_language,
                ..CodeSelection::default()
            },
            ..Selection::default()
        })
    }

    /// Resolves the flags that grant permissions.
    fn permissions(&self) -> Result<Vec<OfferedPermission>> {
        let parse = |permission: String| {
            permission.parse::<Permission>().map_err(|error| Error::invalid(error.to_string()))
        };
        let with = |permission: String, value: Option<ValueSource>| {
            Ok(OfferedPermission { permission: parse(permission)?, value })
        };
        let http = self.allow_http.iter().map(|rule| with(format!("http:{rule}"), None));
        let env = self.allow_env.iter().map(|typed| match typed.split_once('=') {
            Some((name, value)) => {
                with(format!("env:{name}"), Some(ValueSource::Literal(value.to_owned())))
            }
            None => with(format!("env:{typed}"), None),
        });
        let secrets = self.secrets.iter().map(|typed| match typed.split_once('=') {
            Some((name, variable)) => {
                with(format!("secret:{name}"), Some(ValueSource::Env(variable.to_owned())))
            }
            None => with(format!("secret:{typed}"), None),
        });
        let others = self.allow.iter().map(|typed| {
            let permission = parse(typed.clone())?;
            let flag = match &permission {
                Permission::Files(..) => "--mount NAME=STORE",
                Permission::Config(_) => "--config FILE with [plugins.NAME.grants.config]",
                _ => return Ok(OfferedPermission { permission, value: None }),
            };
            Err(Error::invalid(format!("`{typed}` needs more than a name; use {flag}")))
        });
        let limits = self.limits.iter().map(|typed| with(format!("limit:{typed}"), None));
        http.chain(env).chain(secrets).chain(others).chain(limits).collect()
    }
}

impl PluginFile {
    /// Parses `[NAME=]PATH`. Without a name, the plugin gets the name of the file.
    #[must_use]
    pub fn parse(typed: &str) -> Self {
        match typed.split_once('=') {
            Some((name, path)) if !name.contains(['/', '.']) => {
                Self { name: Some(name.to_owned()), component: PathBuf::from(path) }
            }
            _ => Self { name: None, component: PathBuf::from(typed) },
        }
    }
}

/// Parses `NAME=DIR[:ro|:rw|:create]`.
fn mount(typed: &str) -> Result<StoreMount> {
    let Some((name, directory)) = typed.split_once('=') else {
        return Err(Error::invalid(format!("`{typed}` is not a mount: {MOUNT_FORM}")));
    };
    let (directory, access) = match directory.rsplit_once(':') {
        Some((directory, "ro")) => (directory, FileAccess::ReadOnly),
        Some((directory, "create")) => (directory, FileAccess::CreateOnly),
        Some((directory, "rw")) => (directory, FileAccess::ReadWrite),
        _ => (directory, FileAccess::ReadWrite),
    };
    if directory.is_empty() {
        return Err(Error::invalid(format!("`{typed}` names no directory: {MOUNT_FORM}")));
    }
    Ok(StoreMount { name: name.to_owned(), location: StoreLocation::parse(directory), access })
}

/// Parses `[NAME=]STORE[:ro|:rw]`.
fn files(typed: &str) -> Result<FilesStore> {
    let (name, location) = match typed.split_once('=') {
        Some((name, location)) if !name.contains(['/', '.', ':']) => {
            (Some(name.to_owned()), location)
        }
        _ => (None, typed),
    };
    let (location, access) = match location.rsplit_once(':') {
        Some((location, "ro")) => (location, FileAccess::ReadOnly),
        Some((location, "rw")) => (location, FileAccess::ReadWrite),
        _ => (location, FileAccess::ReadWrite),
    };
    if location.is_empty() {
        return Err(Error::invalid(format!("`{typed}` names no store: {FILES_FORM}")));
    }
    Ok(FilesStore { name, location: StoreLocation::parse(location), access })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_and_stores_are_resolved() {
        let flags = SelectionFlags {
            plugins: vec!["words=./text.wasm".into(), "./a=b/c.wasm".into()],
            mounts: vec!["data=./notes:ro".into()],
            files: Some("notes=memory".into()),
            memory_mib: Some(2),
            ..SelectionFlags::default()
        };
        let selection = flags.resolve().unwrap();
        let names: Vec<_> = selection.plugins.iter().map(|plugin| plugin.name.as_deref()).collect();
        assert_eq!(names, [Some("words"), None]);
        assert_eq!(selection.mounts[0].access, FileAccess::ReadOnly);
        let files = selection.files.unwrap();
        assert_eq!((files.name.as_deref(), files.location), (Some("notes"), StoreLocation::Memory));
        assert_eq!(selection.memory_bytes_max, Some(2 << 20));
    }

    #[test]
    fn grants_without_a_plugin_are_refused() {
        let flags = SelectionFlags { limits: vec!["cpu-ms-max=1".into()], ..Default::default() };
        let error = flags.resolve().unwrap_err().to_string();
        assert!(
            error.ends_with(
                "are for plugins named with --plugin; a configuration has its own grants"
            )
        );
    }

    #[test]
    fn a_store_needs_a_location() {
        let flags = SelectionFlags { files: Some("a=:ro".into()), ..Default::default() };
        assert!(flags.resolve().unwrap_err().to_string().starts_with("`a=:ro` names no store"));
        let plugins = vec!["a.wasm".into()];
        let flags = SelectionFlags { plugins, mounts: vec!["a".into()], ..Default::default() };
        assert!(flags.resolve().unwrap_err().to_string().starts_with("`a` is not a mount"));
    }
}
