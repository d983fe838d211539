//! Edits `cofferdam.toml` for `grant` and `revoke`. Preserves comments and formatting of the
//! operator.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::Context as _;
use cofferdam_tool::permission::ClockPrecision;
use cofferdam_tool::{FileAccess, Permission};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use crate::config::{ConfigError, ConfigFile};
use crate::{Error, starter};

/// A configuration that is being edited.
#[derive(Clone)]
pub struct ConfigEditor {
    /// Path by which the configuration is named.
    path: PathBuf,
    /// File that is edited.
    target: PathBuf,
    /// Content of the file before the edits.
    before: String,
    document: DocumentMut,
    /// Changes of grants so far, for the call log.
    changes: Vec<GrantChange>,
    /// True if a grant of a store, or a plugin, was added.
    extends_reach: bool,
}

/// Change of a grant.
#[derive(Debug, Clone)]
pub(crate) struct GrantChange {
    pub(crate) plugin: String,
    pub(crate) permission: String,
    pub(crate) is_added: bool,
}

/// A permission with the values that belong to it.
#[derive(Debug, Clone)]
pub struct NewGrant {
    /// Permission.
    pub permission: Permission,
    /// Directory of a store that the file does not have yet.
    pub directory: Option<PathBuf>,
    /// Value of an environment variable or configuration value. A variable without one is passed on
    /// from the host.
    pub value: Option<String>,
}

impl ConfigEditor {
    /// Opens a configuration. Returns an error if it is invalid.
    pub fn open_ambient(path: &Path) -> crate::Result<Self> {
        ConfigFile::read_ambient(path)?;
        let text = cofferdam_files::read_named_text_ambient(path, crate::config::CONFIG_BYTES_MAX);
        let text = text.with_context(|| format!("{} cannot be read", path.display()))?;
        let document =
            text.parse().with_context(|| format!("{} cannot be read", path.display()))?;
        let resolved = |found: std::io::Result<PathBuf>| {
            found
                .with_context(|| format!("{} cannot be resolved", path.display()))
                .map_err(Error::into_invalid)
        };
        // Edits the target of a symbolic link, so that the link stays.
        let target = resolved(path.canonicalize())?;
        let path = resolved(crate::trust::in_folder(path))?;
        Ok(Self { path, target, before: text, document, changes: Vec::new(), extends_reach: false })
    }

    /// Begins a configuration that does not exist yet. [`save`](Self::save) creates it.
    pub fn create_ambient(path: &Path) -> crate::Result<Self> {
        let absolute = std::path::absolute(path).context("the working directory is not known")?;
        let file_name = path.file_name().unwrap_or(path.as_os_str()).display().to_string();
        let header = starter::header(&file_name);
        let document = header.parse().context("the header is not a configuration")?;
        Ok(Self {
            path: absolute.clone(),
            target: absolute,
            before: String::new(),
            document,
            changes: Vec::new(),
            extends_reach: false,
        })
    }

    /// Adds a plugin without grants.
    ///
    /// # Errors
    /// Returns an error if the configuration has a plugin of that name.
    pub fn add_plugin(&mut self, name: &str, component: &str) -> crate::Result<()> {
        let plugins = table(self.document.as_table_mut(), &["plugins"])?;
        if plugins.contains_key(name) {
            return Err(Error::Invalid(format!(
                "{} has a plugin `{name}`; give the new one another name: --name NAME",
                self.path.display()
            )));
        }
        self.extends_reach = true;
        let mut entry = Table::new();
        entry.insert("component", component.into());
        plugins.insert(name, Item::Table(entry));
        self.keep_header(name)
    }

    /// Keeps the comments of a file without tables above the first plugin.
    fn keep_header(&mut self, name: &str) -> crate::Result<()> {
        let has_other = self.document.iter().any(|(key, _)| key != "plugins");
        let plugins = table(self.document.as_table_mut(), &["plugins"])?;
        if has_other || plugins.len() > 1 {
            return Ok(());
        }
        let header = self.document.trailing().as_str().unwrap_or_default().to_owned();
        self.document.set_trailing("");
        let plugins = table(self.document.as_table_mut(), &["plugins"])?;
        if let Some(Item::Table(entry)) = plugins.get_mut(name) {
            entry.decor_mut().set_prefix(format!("{header}\n"));
        }
        Ok(())
    }

    /// Removes a plugin with its grants.
    ///
    /// # Errors
    /// Returns an error if the configuration has no such plugin.
    pub fn remove_plugin(&mut self, name: &str) -> crate::Result<()> {
        self.plugin(name)?;
        table(self.document.as_table_mut(), &["plugins"])?.remove(name);
        self.note(name, "*", false);
        Ok(())
    }

    /// Adds a grant to a plugin. Returns whether anything has changed.
    pub fn grant(&mut self, plugin: &str, grant: &NewGrant) -> crate::Result<bool> {
        let has_changed = self.add(plugin, grant)?;
        if has_changed {
            self.extends_reach |= matches!(grant.permission, Permission::Files(..));
            self.note(plugin, &grant.permission.to_string(), true);
        }
        Ok(has_changed)
    }

    fn note(&mut self, plugin: &str, permission: &str, is_added: bool) {
        let (plugin, permission) = (plugin.to_owned(), permission.to_owned());
        self.changes.push(GrantChange { plugin, permission, is_added });
    }

    fn add(&mut self, plugin: &str, grant: &NewGrant) -> crate::Result<bool> {
        if let (Permission::Files(Some(store), _), Some(directory)) =
            (&grant.permission, &grant.directory)
        {
            let stores = table(self.document.as_table_mut(), &["stores"])?;
            if !stores.contains_key(store.as_str()) {
                let mut entry = Table::new();
                entry.insert("directory", directory.display().to_string().into());
                stores.insert(store.as_str(), Item::Table(entry));
            }
        }
        let before = self.document.to_string();
        let path = match &grant.permission {
            Permission::Limit(..) => ["plugins", plugin, "limits"],
            _ => ["plugins", plugin, "grants"],
        };
        let grants = table(self.plugin(plugin)?, path.get(2..).unwrap_or_default())?;
        match &grant.permission {
            Permission::Files(None, _) => {
                return Err(Error::Invalid("name the store: files:NAME=read-only".to_owned()));
            }
            Permission::Files(Some(store), access) => {
                let files = table(grants, &["files"])?;
                let known = files.get(store.as_str()).and_then(Item::as_str);
                let known = FileAccess::ALL.into_iter().find(|it| Some(it.as_str()) == known);
                match known.map(|known| (known, known.intersect(*access))) {
                    // A grant adds. Only `revoke` takes a larger one away.
                    Some((_, Some(both))) if both == *access => {}
                    Some((known, None)) => {
                        return Err(Error::Invalid(format!(
                            "`{plugin}` may {} /{store} already, which {access} does not include; \
                             grant files:{store}=read-write, or revoke the other first",
                            known.in_plain_words()
                        )));
                    }
                    _ => set(files, store.as_str(), access.as_str().into()),
                }
            }
            Permission::Http(rule) => push(grants, "http", &rule.to_string())?,
            Permission::Socket(rule) => push(grants, "sockets", &rule.to_string())?,
            Permission::Secret(name) => push(grants, "secrets", name)?,
            Permission::Tool(name) => push(grants, "tools", name.as_str())?,
            Permission::Ask(kind) => push(grants, "ask", kind.as_str())?,
            Permission::Env(name) => {
                let value = grant.value.clone().map_or_else(|| from_env(name), Value::from);
                set(table(grants, &["env"])?, name, value);
            }
            Permission::Config(key) => {
                let Some(value) = &grant.value else {
                    return Err(Error::Invalid(format!(
                        "missing `--value TEXT` for `config:{key}`"
                    )));
                };
                set(table(grants, &["config"])?, key, value.as_str().into());
            }
            Permission::Clock(precision) => {
                let known = grants.get("clock").and_then(Item::as_str);
                let known = ClockPrecision::ALL.into_iter().find(|it| Some(it.as_str()) == known);
                if known.is_none_or(|known| known < *precision) {
                    set(grants, "clock", precision.as_str().into());
                }
            }
            Permission::Random => set(grants, "random", true.into()),
            Permission::Limit(key, value) => {
                let value = i64::try_from(*value)
                    .context("a number of the configuration has at most 63 bits")?;
                set(grants, key, value.into());
            }
        }
        Ok(self.document.to_string() != before)
    }

    /// Removes a grant from a plugin. Returns whether anything has changed.
    pub fn revoke(&mut self, plugin: &str, permission: &Permission) -> crate::Result<bool> {
        let has_changed = self.take(plugin, permission)?;
        if has_changed {
            self.note(plugin, &permission.to_string(), false);
        }
        Ok(has_changed)
    }

    fn take(&mut self, plugin: &str, permission: &Permission) -> crate::Result<bool> {
        let before = self.document.to_string();
        let entry = self.plugin(plugin)?;
        if let Permission::Limit(key, _) = permission {
            return Ok(entry
                .get_mut("limits")
                .and_then(Item::as_table_like_mut)
                .is_some_and(|limits| limits.remove(key).is_some()));
        }
        let Some(grants) = entry.get_mut("grants").and_then(Item::as_table_like_mut) else {
            return Ok(false);
        };
        match permission {
            Permission::Files(Some(store), _) => remove(grants, "files", store.as_str()),
            Permission::Files(None, _) => drop(grants.remove("files")),
            Permission::Http(rule) => {
                let is_rule = |text: &str| {
                    text.parse()
                        .is_ok_and(|other: cofferdam_tool::permission::HttpRule| other == *rule)
                };
                take_out(grants, "http", is_rule);
            }
            Permission::Socket(rule) => take_out(grants, "sockets", |text| {
                text.parse()
                    .is_ok_and(|other: cofferdam_tool::permission::SocketRule| other == *rule)
            }),
            Permission::Secret(name) => take_out(grants, "secrets", |text| text == name),
            Permission::Tool(name) => take_out(grants, "tools", |text| text == name.as_str()),
            Permission::Ask(kind) => take_out(grants, "ask", |text| text == kind.as_str()),
            Permission::Env(name) => remove(grants, "env", name),
            Permission::Config(key) => remove(grants, "config", key),
            Permission::Clock(_) => drop(grants.remove("clock")),
            Permission::Random => set(grants, "random", false.into()),
            Permission::Limit(..) => {}
        }
        Ok(self.document.to_string() != before)
    }

    /// Removes all grants from a plugin, including the default grants.
    pub fn revoke_all(&mut self, plugin: &str) -> crate::Result<()> {
        let entry = self.plugin(plugin)?;
        entry.remove("grants");
        set(entry, "default-grants", false.into());
        self.note(plugin, "*", false);
        Ok(())
    }

    /// Writes the file if the result is a valid configuration, in which no plugin may write a file
    /// that controls grants. Records the changes of grants in the call log.
    pub fn save(&self) -> crate::Result<()> {
        let config = self.config()?;
        if self.extends_reach {
            crate::compose::check_reach_of_config(&config)?;
        }
        let text = self.document.to_string();
        replace_file(&self.target, text.as_bytes())
            .with_context(|| format!("{} cannot be written", self.path.display()))?;
        crate::trust::follow_edit(&self.path, &self.before, &text);
        crate::records::note_grants(&config, &self.changes);
        Ok(())
    }

    /// Returns the configuration with the edits.
    pub fn config(&self) -> Result<ConfigFile, ConfigError> {
        ConfigFile::parse(&self.path, &self.document.to_string())
    }

    fn plugin(&mut self, plugin: &str) -> crate::Result<&mut dyn TableLike> {
        let known = self.document.get("plugins").and_then(|plugins| plugins.get(plugin)).is_some();
        if !known {
            let (path, plugins) = (self.path.display(), self.document.get("plugins"));
            let names = plugins.and_then(Item::as_table_like).into_iter().flat_map(TableLike::iter);
            let names: Vec<_> = names.map(|(name, _)| name).collect();
            let known = match names.as_slice() {
                [] => "it has no plugins".to_owned(),
                names => format!("its plugins: {}", names.join(", ")),
            };
            return Err(Error::Invalid(format!("{path} has no plugin `{plugin}`; {known}")));
        }
        table(self.document.as_table_mut(), &["plugins", plugin])
    }
}

/// Returns the table at `path`. Creates missing tables.
pub fn table<'t>(
    root: &'t mut dyn TableLike,
    path: &[&str],
) -> crate::Result<&'t mut dyn TableLike> {
    let mut here = root;
    for key in path {
        let entry = here.entry(key).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        here = entry.as_table_like_mut().with_context(|| format!("`{key}` is not a table"))?;
    }
    Ok(here)
}

/// Sets a value and keeps the comment behind the old one.
pub fn set(table: &mut dyn TableLike, key: &str, mut value: Value) {
    if let Some(old) = table.get(key).and_then(Item::as_value) {
        *value.decor_mut() = old.decor().clone();
    }
    table.insert(key, Item::Value(value));
}

fn push(table: &mut dyn TableLike, key: &str, text: &str) -> crate::Result<()> {
    let item = table.entry(key).or_insert_with(|| Item::Value(Array::new().into()));
    let array = item.as_array_mut().with_context(|| format!("`{key}` is not a list"))?;
    if !array.iter().any(|value| value.as_str() == Some(text)) {
        array.push(text);
    }
    Ok(())
}

fn remove(table: &mut dyn TableLike, key: &str, name: &str) {
    if let Some(inner) = table.get_mut(key).and_then(Item::as_table_like_mut) {
        inner.remove(name);
    }
}

/// Removes entries from a list of strings, or of tables with `to`. The parser stores a comment
/// behind an entry as the prefix of the next one, so the comments before a removed entry are moved.
fn take_out(table: &mut dyn TableLike, key: &str, is_meant: impl Fn(&str) -> bool) {
    let Some(array) = table.get_mut(key).and_then(Item::as_array_mut) else { return };
    let mut comment = String::new();
    let mut index = 0;
    while let Some(value) = array.get_mut(index) {
        let text = value.as_str().or_else(|| value.as_inline_table()?.get("to")?.as_str());
        let is_gone = text.is_some_and(&is_meant);
        let before =
            value.decor().prefix().and_then(|raw| raw.as_str()).unwrap_or_default().to_owned();
        if is_gone {
            if before.contains('#') {
                comment.push_str(before.trim_end());
            }
            array.remove(index);
        } else {
            if !comment.is_empty() {
                value.decor_mut().set_prefix(format!("{comment}{before}"));
                comment.clear();
            }
            index += 1;
        }
    }
    if !comment.is_empty() {
        let trailing = array.trailing().as_str().unwrap_or_default();
        let trailing = if trailing.starts_with(['\n', '\r']) {
            trailing.to_owned()
        } else {
            format!("\n{trailing}")
        };
        array.set_trailing(format!("{comment}{trailing}"));
    }
}

fn from_env(name: &str) -> Value {
    let mut table = InlineTable::new();
    table.insert("env", name.into());
    Value::InlineTable(table)
}

/// Replaces a file with `bytes` atomically. Keeps the mode of the old file.
pub fn replace_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mode = std::fs::metadata(path).map(|old| old.permissions());
    replace(path, bytes, mode.ok().or_else(readable))
}

/// Replaces a file with `bytes` atomically. Only the user may read the new file.
pub fn replace_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    replace(path, bytes, None)
}

/// Returns an error if a file cannot be replaced atomically: its directory does not exist, or
/// cannot be written.
pub fn check_replaceable(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        return Err(std::io::ErrorKind::IsADirectory.into());
    }
    tempfile::NamedTempFile::new_in(folder_of(path)).map(drop)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Replaces a file. Temporary files are private, so without a `mode` the result is too.
fn replace(path: &Path, bytes: &[u8], mode: Option<std::fs::Permissions>) -> std::io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder_of(path))?;
    file.write_all(bytes)?;
    if let Some(mode) = mode {
        file.as_file().set_permissions(mode)?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Returns the mode of a new file, which others may read because it contains no secrets. On
/// Windows, the file gets the access list of its directory.
#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems have no modes")]
fn readable() -> Option<std::fs::Permissions> {
    use std::os::unix::fs::PermissionsExt;
    Some(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable() -> Option<std::fs::Permissions> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
# My plugins.
[stores.notes] # where I write
directory = \"notes\"

[plugins.csv] # tables
component = \"csv.wasm\"
grants.files.notes = \"read-only\" # no more than that

[plugins.gh]
component = \"gh.wasm\"

[plugins.gh.grants]
# the API
http = [
    \"GET https://api.example.com/\", # reading
    { to = \"POST https://api.example.com/\", headers = [\"Authorization: ${secret:gh}\"] },
]
";

    fn edit(text: &str, change: impl FnOnce(&mut ConfigEditor)) -> String {
        let mut file = ConfigEditor {
            changes: Vec::new(),
            extends_reach: false,
            path: PathBuf::from("cofferdam.toml"),
            target: PathBuf::from("cofferdam.toml"),
            before: text.to_owned(),
            document: text.parse().unwrap(),
        };
        change(&mut file);
        let text = file.document.to_string();
        ConfigFile::parse(Path::new("cofferdam.toml"), &text)
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        text
    }

    fn granted(text: &str, plugin: &str, permission: &str) -> String {
        edit(text, |file| {
            let permission = permission.parse().unwrap();
            let grant =
                NewGrant { permission, directory: Some("dir".into()), value: Some("v".to_owned()) };
            file.grant(plugin, &grant).unwrap();
        })
    }

    #[test]
    fn a_grant_changes_its_line_and_no_other() {
        let text = granted(FILE, "csv", "files:notes=read-write");
        assert_eq!(text, FILE.replace("\"read-only\" # no", "\"read-write\" # no"));
        let text = granted(FILE, "gh", "http:https://b.example/v1");
        assert!(
            text.contains("# reading\n") && text.contains("\"https://b.example/v1\""),
            "{text}"
        );
        assert_eq!(
            granted(&text, "gh", "http:https://b.example/v1"),
            text,
            "granting twice changes nothing"
        );
    }

    #[test]
    fn a_grant_takes_nothing_away() {
        let wide = granted(&granted(FILE, "csv", "files:out=read-write"), "csv", "clock:precise");
        assert_eq!(granted(&wide, "csv", "files:out=read-only"), wide);
        assert_eq!(granted(&wide, "csv", "clock:coarse"), wide);
        let create = granted(FILE, "csv", "files:out=create-only");
        edit(&create, |file| {
            let permission = "files:out=read-only".parse().unwrap();
            let grant = NewGrant { permission, directory: None, value: None };
            let error = file.grant("csv", &grant).unwrap_err().to_string();
            assert!(error.contains("grant files:out=read-write, or revoke"), "{error}");
        });
        assert!(granted(&create, "csv", "files:out=read-write").contains("read-write"));
    }

    #[test]
    fn everything_can_be_granted_and_revoked() {
        for permission in [
            "files:out=create-only",
            "http:GET https://b.example/",
            "socket:tcp b.example:1",
            "env:LANG",
            "config:units",
            "secret:gh",
            "clock:precise",
            "tool:word_count",
            "ask:form",
            "limit:wall-ms-max=5",
        ] {
            for plugin in ["csv", "gh"] {
                let with = granted(FILE, plugin, permission);
                assert_ne!(with, FILE);
                assert!(
                    with.starts_with("# My plugins.\n[stores.notes] # where I write\n"),
                    "{with}"
                );
                let permission: Permission = permission.parse().unwrap();
                let without =
                    edit(&with, |file| assert!(file.revoke(plugin, &permission).unwrap()));
                edit(&without, |file| assert!(!file.revoke(plugin, &permission).unwrap()));
            }
        }
        let text = edit(FILE, |file| {
            let rule = "http:POST https://api.example.com/".parse().unwrap();
            assert!(file.revoke("gh", &rule).unwrap());
        });
        assert!(text.contains("# reading") && !text.contains("POST"), "{text}");
    }

    #[test]
    fn revoking_everything_takes_default_grants_too() {
        let text = edit(FILE, |file| file.revoke_all("gh").unwrap());
        assert!(text.contains("default-grants = false") && !text.contains("http"), "{text}");
    }

    #[test]
    fn an_unknown_plugin_is_an_error() {
        let mut file = ConfigEditor {
            changes: Vec::new(),
            extends_reach: false,
            path: PathBuf::from("c.toml"),
            target: PathBuf::from("c.toml"),
            before: FILE.to_owned(),
            document: FILE.parse().unwrap(),
        };
        assert!(
            file.revoke("missing", &Permission::Random)
                .unwrap_err()
                .to_string()
                .contains("has no plugin `missing`")
        );
    }
}
