//! What a person agrees to before a plugin is used: that it has changed, and what it asks for beyond what it is offered.

use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use cofferdam_engine::{Grants, Known, Mount, Plugin, seal_with_file};
use cofferdam_files::{Quota, Sharing};
use cofferdam_tool::{FileAccess, Limits, LimitsAsked, MountName, Permission, SecretText};

use crate::ask::{self, Answer};
use crate::compose::PluginSpec;
use crate::exit::ConsentError;
use crate::pins::{Compared, Pins};
use crate::policy_file::{NewGrant, PolicyFile};
use crate::{print, stores};

/// Consent to the plugins of one start.
pub(crate) struct Consent {
    /// What was accepted, once it is needed.
    pins: Option<Pins>,
    has_news: bool,
    /// Says that these plugins were compared with this version of what was accepted.
    seal: Option<[u8; 32]>,
    /// Whether what is known says so, so that nothing has to be compared again.
    is_sealed: bool,
}

impl Consent {
    /// For `specs`, of which `known` is known.
    pub(crate) fn new(specs: &[PluginSpec], known: &Known) -> Self {
        let config = specs.iter().filter(|spec| spec.is_pinned).find_map(|spec| spec.config.as_deref());
        // Before the file is read: a change from here on shows.
        let seal = config.and_then(|config| {
            let pinned = |spec: &PluginSpec| if spec.is_pinned { b"pinned".as_slice() } else { b"" };
            let parts = specs.iter().flat_map(|spec| [spec.options.name.as_str().as_bytes(), pinned(spec)]);
            seal_with_file(&Pins::path_of(config), &parts.collect::<Vec<_>>())
        });
        Self { pins: None, has_news: false, is_sealed: seal.is_some() && seal == known.seal(), seal }
    }

    /// Compares a plugin with what was accepted before, unless it `was_known` and compared then; a change needs consent.
    pub(crate) fn check(
        &mut self,
        spec: &PluginSpec,
        plugin: &Plugin,
        was_known: bool,
    ) -> anyhow::Result<()> {
        let Some(config) = spec.config.as_deref().filter(|_| spec.is_pinned) else { return Ok(()) };
        if was_known && self.is_sealed {
            return Ok(());
        }
        let pins = match &mut self.pins {
            Some(pins) => pins,
            none => none.insert(Pins::of_config_ambient(config)?),
        };
        self.has_news |= judge(pins, plugin, config)?;
        Ok(())
    }

    /// Writes what was accepted, and seals what is known if all of it was compared.
    pub(crate) fn end(self, known: &Known, is_complete: bool) {
        if let Some(pins) = self.pins.filter(|_| self.has_news) {
            // The next run compares with nothing, which is worth a word and no failure.
            if let Err(error) = pins.save() {
                print::note(&format!("warning: a later change of plugins will not be noticed: {error:#}"));
            }
        }
        known.set_seal(self.seal.filter(|_| is_complete));
    }
}

/// Compares a plugin of a configuration with what was accepted before; a change needs consent.
pub(crate) fn check_pin(plugin: &Plugin, config: &Path) -> anyhow::Result<()> {
    let mut pins = Pins::of_config_ambient(config)?;
    if judge(&mut pins, plugin, config)?
        && let Err(error) = pins.save()
    {
        let name = &plugin.identity().name;
        print::note(&format!("warning: a later change of `{name}` will not be noticed: {error:#}"));
    }
    Ok(())
}

/// The same without writing what was accepted. Answers whether there is something to write.
fn judge(pins: &mut Pins, plugin: &Plugin, config: &Path) -> anyhow::Result<bool> {
    let name = &plugin.identity().name;
    match pins.compare(plugin) {
        Compared::Same => return Ok(false),
        Compared::New => {}
        Compared::Changed(difference) => {
            print::note(&format!("plugin `{name}` has changed since it was accepted:\n{difference}"));
            if !ask::is_possible() {
                let config = config.display();
                bail!(ConsentError(format!(
                    "plugin `{name}` has changed since it was accepted; look at the change and run: cofferdam approve {name} \
                     --config {config}"
                )));
            }
            if !ask::yes("Accept the change?") {
                bail!(ConsentError(format!("the change of plugin `{name}` was not accepted")));
            }
        }
    }
    pins.accept(plugin);
    Ok(true)
}

/// Asks for everything that a plugin asks for and is not offered. Answers whether something was granted, and has then
/// widened `spec`.
pub(crate) fn ask_for_missing(plugin: &Plugin, spec: &mut PluginSpec) -> anyhow::Result<bool> {
    if !ask::is_possible() {
        return Ok(false);
    }
    let mut is_wider = false;
    for missing in &plugin.granted().missing {
        let permission = &missing.permission;
        let name = plugin.info().identity.name.as_str();
        let answer = ask::grant(name, &permission.in_plain_words(), spec.config.is_some());
        if answer == Answer::No {
            continue;
        }
        let Some(grant) = complete(permission, &spec.options.grants) else {
            print::note("nothing was granted");
            continue;
        };
        widen(&mut spec.options.grants, &mut spec.options.limits, &grant)?;
        is_wider = true;
        if let (Answer::Always, Some(config)) = (answer, &spec.config) {
            let mut file = PolicyFile::open_ambient(config)?;
            file.grant(name, &grant)?;
            file.save()?;
            print::note(&format!("written to {}", config.display()));
        }
    }
    Ok(is_wider)
}

/// What a plugin asks for, is not offered, and can be given by a yes alone: nothing that takes a directory, a value or a secret.
pub(crate) fn missing_without_details(plugin: &Plugin, spec: &PluginSpec) -> Vec<Permission> {
    let needs_nothing = |permission: &&Permission| match permission {
        Permission::Files(Some(name), _) => {
            spec.options.grants.mounts.iter().any(|mount| mount.name == *name)
        }
        Permission::Files(None, _) | Permission::Env(_) | Permission::Config(_) | Permission::Secret(_) => {
            false
        }
        _ => true,
    };
    let missing = plugin.granted().missing.iter().map(|missing| &missing.permission);
    missing.filter(needs_nothing).cloned().collect()
}

/// Widens `spec` by all of [`missing_without_details`], and the configuration too if that `is_lasting` and there is one. Names
/// what was granted.
pub(crate) fn grant_without_details(
    plugin: &Plugin,
    spec: &mut PluginSpec,
    is_lasting: bool,
) -> anyhow::Result<Vec<String>> {
    let mut granted = Vec::new();
    for permission in missing_without_details(plugin, spec) {
        granted.push(permission.to_string());
        let grant = NewGrant { permission, directory: None, value: None };
        widen(&mut spec.options.grants, &mut spec.options.limits, &grant)?;
        if let Some(config) = spec.config.as_ref().filter(|_| is_lasting) {
            let mut file = PolicyFile::open_ambient(config)?;
            file.grant(spec.options.name.as_str(), &grant)?;
            file.save()?;
        }
    }
    Ok(granted)
}

/// Asks for what a permission does not say: a directory, a value.
fn complete(permission: &Permission, grants: &Grants) -> Option<NewGrant> {
    let mut grant = NewGrant { permission: permission.clone(), directory: None, value: None };
    match permission {
        Permission::Files(name, access) => {
            let is_known = |name: &MountName| grants.mounts.iter().any(|mount| mount.name == *name);
            if let Some(name) = name.as_ref().filter(|name| is_known(name)) {
                print::note(&format!("/{name} stays the directory that it is"));
                return Some(grant);
            }
            let directory = ask::line("Which directory? ");
            if directory.is_empty() {
                return None;
            }
            let name = name.clone().or_else(|| MountName::new("data").ok())?;
            grant.permission = Permission::Files(Some(name), *access);
            grant.directory = std::path::absolute(directory).ok();
            grant.directory.is_some().then_some(grant)
        }
        Permission::Config(key) => {
            grant.value = Some(ask::line(&format!("Value of {key}? ")));
            Some(grant)
        }
        Permission::Secret(name) => {
            print::note(&format!(
                "where the secret is kept stands in the configuration: [secrets] {name} = {{ … }}"
            ));
            grants.secrets.contains_key(name).then_some(grant)
        }
        _ => Some(grant),
    }
}

/// Adds a grant to what is offered.
fn widen(grants: &mut Grants, limits: &mut Limits, grant: &NewGrant) -> anyhow::Result<()> {
    match &grant.permission {
        Permission::Files(Some(name), access) => widen_files(grants, name, *access, grant)?,
        Permission::Files(None, _) => {}
        Permission::Http(rule) => grants.http.push(rule.clone().into()),
        Permission::Socket(rule) => drop(grants.sockets.insert(rule.clone())),
        Permission::Env(name) => {
            let value = std::env::var(name).unwrap_or_default();
            grants.env.insert(name.clone(), SecretText::new(value));
        }
        Permission::Config(key) => {
            grants.config.insert(key.clone(), SecretText::new(grant.value.clone().unwrap_or_default()));
        }
        Permission::Secret(name) => drop(grants.readable_secrets.insert(name.clone())),
        Permission::Clock(precision) => grants.clock = *precision,
        Permission::Random => grants.random = true,
        Permission::Tool(name) => drop(grants.tools.insert(name.clone())),
        Permission::Ask(kind) => drop(grants.ask.insert(*kind)),
        Permission::Limit(key, value) => {
            let one = serde_json::json!({ key.as_str(): value });
            if let Ok(patch) = serde_json::from_value::<LimitsAsked>(one) {
                *limits = patch.over(limits);
            }
        }
    }
    Ok(())
}

fn widen_files(
    grants: &mut Grants,
    name: &MountName,
    access: FileAccess,
    grant: &NewGrant,
) -> anyhow::Result<()> {
    let known = grants.mounts.iter().find(|mount| mount.name == *name);
    let directory = known.and_then(|mount| mount.store.root_ambient()).or(grant.directory.as_deref());
    let store = match (known, directory) {
        // It may have been opened for reading only.
        (_, Some(directory)) => stores::open_directory(directory, access, Quota::growth())?,
        (Some(mount), None) => Arc::clone(&mount.store),
        (None, None) => return Ok(()),
    };
    let sharing = known.map_or(Sharing::Shared, |mount| mount.sharing);
    let mount = Mount { sharing, ..Mount::new(name.clone(), store, access) };
    grants.mounts.retain(|mount| mount.name != *name);
    grants.mounts.push(mount);
    Ok(())
}

/// The commands and lines that would grant what a call was refused, for a person.
pub(crate) fn how_to_grant(plugin: &str, refused: &str, config: Option<&Path>) -> Option<String> {
    let permission: Permission = refused.parse().ok()?;
    let command = match config {
        Some(config) => format!("cofferdam grant {plugin} '{permission}' --config {}", config.display()),
        None => {
            return Some(format!(
                "it would take a configuration with [plugins.{plugin}.grants], see `cofferdam grant --help`"
            ));
        }
    };
    Some(format!("to grant it: {command}"))
}
