//! Edits `cofferdam.toml` for `grant` and `revoke`. Preserves comments and formatting of the
//! operator.

mod document;
mod form;
mod offer;
mod replace;

use std::path::{Path, PathBuf};

use cofferdam_tool::permission::{ClockPrecision, HttpRule, SocketRule};
use cofferdam_tool::{FileAccess, Permission, Policy};
use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use self::document::{from_env, keep_comments, push, remove, take_out};
pub use self::document::{set, table};
use self::form::TextForm;
use self::offer::{gives_to_all, is_wider, offers};
pub(crate) use self::replace::replace_private;
pub use self::replace::{check_replaceable, replace_file};
use crate::config::{ConfigError, ConfigFile, OfferedGrants};
use crate::error::Context as _;
use crate::{Error, granting, starter};

/// A configuration that is being edited.
#[derive(Clone)]
pub struct ConfigEditor {
    /// Path by which the configuration is named.
    path: PathBuf,
    /// File that is edited.
    target: PathBuf,
    /// Content of the file before the edits.
    before: String,
    /// Form of the file, which the edits keep.
    form: TextForm,
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
        let unreadable = || format!("{} cannot be read", path.display());
        let bytes = cofferdam_files::read_named_ambient(path, crate::config::CONFIG_BYTES_MAX);
        let before = String::from_utf8(bytes.with_context(unreadable)?).with_context(unreadable)?;
        let (form, plain) = TextForm::split(&before);
        let document = plain.parse().with_context(unreadable)?;
        let resolved = |found: std::io::Result<PathBuf>| {
            found
                .with_context(|| format!("{} cannot be resolved", path.display()))
                .map_err(Error::into_invalid)
        };
        // Edits the target of a symbolic link, so that the link stays.
        let target = resolved(path.canonicalize())?;
        let path = resolved(crate::trust::in_folder(path))?;
        let changes = Vec::new();
        Ok(Self { path, target, before, form, document, changes, extends_reach: false })
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
            form: TextForm::default(),
            document,
            changes: Vec::new(),
            extends_reach: false,
        })
    }

    /// Adds a plugin without grants.
    ///
    /// # Errors
    /// Returns an error if the configuration has a plugin of that name.
    pub(crate) fn add_plugin(&mut self, name: &str, component: &str) -> crate::Result<()> {
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
    pub(crate) fn remove_plugin(&mut self, name: &str) -> crate::Result<()> {
        self.plugin(name)?;
        let removed = table(self.document.as_table_mut(), &["plugins"])?.remove(name);
        if let Some(Item::Table(removed)) = removed {
            keep_comments(&mut self.document, &removed);
        }
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
            self.add_store(store.as_str(), directory)?;
        }
        let before = self.document.to_string();
        let path = match &grant.permission {
            Permission::Limit(..) => ["plugins", plugin, "limits"],
            _ => ["plugins", plugin, "grants"],
        };
        let grants = table(self.plugin(plugin)?, path.get(2..).unwrap_or_default())?;
        if let Some((key, text)) = list_entry(&grant.permission) {
            push(grants, key, &text, |text| is_entry(&grant.permission, text))?;
        }
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
            // Entries of lists.
            Permission::Http(_)
            | Permission::Socket(_)
            | Permission::Secret(_)
            | Permission::Tool(_)
            | Permission::Ask(_) => {}
        }
        Ok(self.document.to_string() != before)
    }

    /// Adds a store of a directory, unless the configuration has it already.
    fn add_store(&mut self, name: &str, directory: &Path) -> crate::Result<()> {
        let config = self.config()?;
        let Some(known) = config.config.stores.get(name) else {
            let mut entry = Table::new();
            entry.insert("directory", directory.display().to_string().into());
            let stores = table(self.document.as_table_mut(), &["stores"])?;
            stores.insert(name, Item::Table(entry));
            return Ok(());
        };
        let known_directory = known.directory.as_ref().map(|known| config.resolve(known.get_ref()));
        if known_directory.is_some_and(|known| is_same_directory(&known, directory)) {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "store `{name}` is already {}; leave out --directory to grant that one, or give the \
             store of {} another name",
            config.location(known),
            directory.display()
        )))
    }

    /// Removes a grant from a plugin. Returns whether anything has changed.
    ///
    /// # Errors
    /// Returns an error and changes nothing if `[grants]` gives the permission to all plugins.
    pub fn revoke(&mut self, plugin: &str, permission: &Permission) -> crate::Result<bool> {
        let before = self.document.clone();
        let revoked = self.try_revoke(plugin, permission);
        match revoked {
            Ok(true) => self.note(plugin, &permission.to_string(), false),
            _ => self.document = before,
        }
        revoked
    }

    fn try_revoke(&mut self, plugin: &str, permission: &Permission) -> crate::Result<bool> {
        let (before, _) = self.offered(plugin)?;
        if !offers(&before, permission) {
            return Ok(false);
        }
        let has_changed = self.take(plugin, permission)?;
        let (after, shared) = self.offered(plugin)?;
        if is_wider(&after, &before)
            || shared.is_some_and(|shared| gives_to_all(&shared, permission))
        {
            return Err(Error::Invalid(format!(
                "`{plugin}` could still {}, because [grants] gives it to all plugins; remove it \
                 from [grants], or write `default-grants = false` in [plugins.{plugin}] so that \
                 only its own grants apply",
                permission.in_plain_words()
            )));
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
        let grants = table(entry, &["grants"])?;
        if let Some((key, _)) = list_entry(permission) {
            take_out(grants, key, |text| is_entry(permission, text));
        }
        match permission {
            Permission::Files(Some(store), _) => remove(grants, "files", store.as_str()),
            Permission::Files(None, _) => drop(grants.remove("files")),
            Permission::Env(name) => remove(grants, "env", name),
            Permission::Config(key) => remove(grants, "config", key),
            Permission::Clock(ClockPrecision::Precise) => drop(grants.remove("clock")),
            // A plugin has a coarse clock and random numbers unless its grants say otherwise.
            Permission::Clock(ClockPrecision::Coarse) => {
                set(grants, "clock", ClockPrecision::Frozen.as_str().into());
            }
            Permission::Clock(ClockPrecision::Frozen) => {
                return Err(Error::Invalid(
                    "a frozen clock cannot be revoked, because it is the least that a plugin has"
                        .to_owned(),
                ));
            }
            Permission::Random => set(grants, "random", false.into()),
            _ => {}
        }
        Ok(self.document.to_string() != before)
    }

    /// Removes all grants from a plugin, including the default grants. A clock or random numbers
    /// that it did not have before stay away.
    pub fn revoke_all(&mut self, plugin: &str) -> crate::Result<()> {
        let (before, _) = self.offered(plugin)?;
        let entry = self.plugin(plugin)?;
        set(entry, "default-grants", false.into());
        let grants = table(entry, &["grants"])?;
        let keys: Vec<_> = grants.iter().map(|(key, _)| key.to_owned()).collect();
        keys.iter().filter(|key| *key != "clock" && *key != "random").for_each(|key| {
            grants.remove(key);
        });
        match before.clock {
            ClockPrecision::Frozen => set(grants, "clock", before.clock.as_str().into()),
            _ => drop(grants.remove("clock")),
        }
        match before.random {
            false => set(grants, "random", false.into()),
            true => drop(grants.remove("random")),
        }
        if grants.is_empty() {
            entry.remove("grants");
        }
        self.note(plugin, "*", false);
        Ok(())
    }

    /// Returns what a plugin is offered, and the part of it that `[grants]` gives to all plugins.
    fn offered(&mut self, plugin: &str) -> crate::Result<(Policy, Option<Policy>)> {
        self.plugin(plugin)?;
        let file = self.config()?;
        let Some(plugin) = file.config.plugins.get(plugin) else { return Ok(Default::default()) };
        let offered = granting::offered(&file, plugin)?.policy;
        let mut shared = OfferedGrants::default();
        let read = file.config.grants.add_to(&mut shared);
        read.map_err(|(span, message)| file.error(span, message))?;
        Ok((offered, plugin.default_grants.then_some(shared.policy)))
    }

    /// Writes the file if the result is a valid configuration, in which no plugin may write a file
    /// that controls grants. Records the changes of grants in the call log.
    pub fn save(&self) -> crate::Result<()> {
        let config = self.config()?;
        if self.extends_reach {
            crate::compose::check_reach_of_config(&config)?;
        }
        let text = self.form.apply(self.document.to_string());
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

/// Returns the list of grants that a permission is an entry of, and the entry.
fn list_entry(permission: &Permission) -> Option<(&'static str, String)> {
    Some(match permission {
        Permission::Http(rule) => ("http", rule.to_string()),
        Permission::Socket(rule) => ("sockets", rule.to_string()),
        Permission::Secret(name) => ("secrets", name.clone()),
        Permission::Tool(name) => ("tools", name.to_string()),
        Permission::Ask(kind) => ("ask", kind.as_str().to_owned()),
        _ => return None,
    })
}

/// Returns whether an entry of a list is this permission. A rule can be written in several ways.
fn is_entry(permission: &Permission, text: &str) -> bool {
    match permission {
        Permission::Http(rule) => text.parse().is_ok_and(|other: HttpRule| other == *rule),
        Permission::Socket(rule) => text.parse().is_ok_and(|other: SocketRule| other == *rule),
        other => list_entry(other).is_some_and(|(_, entry)| entry == text),
    }
}

fn is_same_directory(one: &Path, other: &Path) -> bool {
    let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    resolved(one) == resolved(other)
}

#[cfg(test)]
mod tests;
