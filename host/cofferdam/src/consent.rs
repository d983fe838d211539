//! Asks for the operator's consent before a plugin is used: to changes of the plugin, and to
//! permissions that it requests beyond its grants.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use cofferdam_engine::{Approval, Grants, Mount, Plugin, PluginBatch};
use cofferdam_files::{Quota, StoreSharing};
use cofferdam_tool::permission::{RequestedLimits, SecretText};
use cofferdam_tool::{FileAccess, Limits, MountName, Permission};

use crate::compose::PluginSpec;
use crate::config::ConfigFile;
use crate::config::edit::{ConfigEditor, NewGrant};
use crate::error::Context as _;
use crate::flags;
use crate::folder_lock::FolderLock;
use crate::granting::Values;
use crate::pins::{PinComparison, Pins};
use crate::{Error, Operator, compose, granting, policy_files, remembered, stores};

/// Checks consent for all plugins of one start.
pub(crate) struct Consent {
    /// Accepted state, read on first use.
    pins: Option<Pins>,
    has_news: bool,
    /// Identifies these plugins and this version of the lock file.
    approval: Option<Approval>,
    /// True if the startup index holds the same approval. Plugins from the index are then not
    /// compared again.
    is_approved: bool,
    operator: Operator,
}

impl Consent {
    /// Creates the consent check for `specs`, which `batch` loads.
    pub(crate) fn new(specs: &[PluginSpec], batch: &PluginBatch, operator: &Operator) -> Self {
        let config =
            specs.iter().filter(|spec| spec.is_pinned).find_map(|spec| spec.config.as_deref());
        // Taken before the lock file is read, so that any later change of the file is noticed.
        let approval = config.and_then(|config| {
            let pinned =
                |spec: &PluginSpec| if spec.is_pinned { b"pinned".as_slice() } else { b"" };
            let parts =
                specs.iter().flat_map(|spec| [spec.options.name.as_str().as_bytes(), pinned(spec)]);
            Approval::of_file_ambient(&Pins::path_of(config), &parts.collect::<Vec<_>>())
        });
        let is_approved = approval.is_some() && approval == batch.approval();
        Self { pins: None, has_news: false, is_approved, approval, operator: operator.clone() }
    }

    /// Compares a plugin with its pin and asks for consent if it has changed. Skips a plugin that
    /// comes from the index (`was_known`) if the index is approved.
    pub(crate) fn check(
        &mut self,
        spec: &PluginSpec,
        plugin: &Plugin,
        was_known: bool,
    ) -> crate::Result<()> {
        let Some(config) = spec.config.as_deref().filter(|_| spec.is_pinned) else { return Ok(()) };
        if was_known && self.is_approved {
            return Ok(());
        }
        let pins = match &mut self.pins {
            Some(pins) => pins,
            none => none.insert(Pins::of_config_ambient(config)?),
        };
        self.has_news |= compare_with_pin(pins, plugin, config, &self.operator)?;
        Ok(())
    }

    /// Saves the accepted pins, and marks the index as approved if all plugins were compared
    /// (`is_complete`).
    pub(crate) fn end(self, batch: &PluginBatch, is_complete: bool) {
        if let Some(pins) = self.pins.filter(|_| self.has_news) {
            // Not fatal: the next run has no pin to compare with, so the operator gets a warning.
            if let Err(error) = pins.save() {
                self.operator.note(&format!(
                    "warning: a later change of plugins will not be noticed: {error:#}"
                ));
            }
        }
        batch.set_approval(self.approval.filter(|_| is_complete));
    }
}

/// Compares a plugin of a configuration with its pin, asks for consent if it has changed, and saves
/// the new pin.
pub(crate) fn check_pin(plugin: &Plugin, config: &Path, operator: &Operator) -> crate::Result<()> {
    let mut pins = Pins::of_config_ambient(config)?;
    if compare_with_pin(&mut pins, plugin, config, operator)?
        && let Err(error) = pins.save()
    {
        let name = &plugin.identity().name;
        operator
            .note(&format!("warning: a later change of `{name}` will not be noticed: {error:#}"));
    }
    Ok(())
}

/// Like [`check_pin`], without saving. Returns whether there is something to save.
fn compare_with_pin(
    pins: &mut Pins,
    plugin: &Plugin,
    config: &Path,
    operator: &Operator,
) -> crate::Result<bool> {
    let name = &plugin.identity().name;
    match pins.compare(plugin) {
        PinComparison::Same => return Ok(false),
        PinComparison::New => {}
        PinComparison::Changed(difference) => {
            operator.note(&format!(
                "plugin `{name}` has changed since it was accepted:\n{}",
                difference.short()
            ));
            if difference.is_cut() {
                let config = shell_path(config);
                operator.note(&format!(
                    "  all of it: cofferdam approve {name} --full --config {config}"
                ));
            }
            if !operator.is_available() {
                let config = shell_path(config);
                return Err(Error::NotAccepted(format!(
                    "plugin `{name}` has changed since it was accepted; look at the change and run: cofferdam approve {name} \
                     --config {config}"
                )));
            }
            if !operator.confirm("Accept the change?") {
                return Err(Error::NotAccepted(format!(
                    "the change of plugin `{name}` was not accepted"
                )));
            }
        }
    }
    pins.accept(plugin);
    Ok(true)
}

/// Duration of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Term {
    /// Applies to this run only.
    Once,
    /// Applies to this run, and is written to the configuration or remembered for the component.
    Always,
}

/// Operator's answer to a request for grants.
enum GrantAnswer {
    All(Term),
    Each,
    Nothing,
}

/// Asks the operator, in one question, for all permissions that a plugin requests and does not
/// have. Widens `spec` by those that are granted, and returns whether there are any.
///
/// The new grants are read from the edited configuration, even if the edit is not saved. So a
/// directory that is granted once is the same directory that a lasting grant would write.
pub(crate) fn ask_for_missing(
    plugin: &Plugin,
    spec: &mut PluginSpec,
    operator: &Operator,
) -> crate::Result<bool> {
    let missing: Vec<_> =
        plugin.granted().missing.iter().map(|missing| &missing.permission).collect();
    let name = plugin.info().identity.name.to_string();
    if missing.is_empty() {
        return Ok(false);
    }
    let wishes: String =
        missing.iter().map(|wish| format!("\n  {}", wish.in_plain_words())).collect();
    if !operator.is_available() {
        if operator.is_refused() {
            operator
                .note(&format!("not granted to `{name}`, because --no-input was given:{wishes}"));
        }
        return Ok(false);
    }
    operator.note(&format!("`{name}` asks for more than it is given. It asks to:{wishes}"));
    let can_keep = spec.config.is_some() || remembered::path().is_some();
    let decision = decide(missing.len(), can_keep, operator);
    let file = spec.config.as_deref().map(ConfigEditor::open_ambient).transpose()?;
    let known = file.as_ref().map(ConfigEditor::config).transpose()?;
    let mut granted = Vec::new();
    for permission in missing {
        let term = match decision {
            GrantAnswer::All(term) => Some(term),
            GrantAnswer::Each => decide_one(permission, can_keep, operator),
            GrantAnswer::Nothing => None,
        };
        let Some(term) = term else { continue };
        match complete(permission, &spec.options.grants, known.as_ref(), operator)? {
            Some(grant) => granted.push((grant, term)),
            None => operator.note(&format!("not granted: to {}", permission.in_plain_words())),
        }
    }
    if granted.is_empty() {
        return Ok(false);
    }
    match file {
        Some(file) => use_and_keep(spec, file, &granted, operator)?,
        _ => use_and_remember(plugin, spec, &granted, operator)?,
    }
    Ok(true)
}

/// Widens `spec`, which comes from no configuration, by `granted`, and remembers the lasting grants
/// for its component.
fn use_and_remember(
    plugin: &Plugin,
    spec: &mut PluginSpec,
    granted: &[(NewGrant, Term)],
    operator: &Operator,
) -> crate::Result<()> {
    for (grant, _) in granted {
        widen(&mut spec.options.grants, &mut spec.options.limits, grant)?;
    }
    granting::check_mounts(
        &spec.options.grants.mounts,
        &policy_files::locate(&compose::policy_files_beside(spec)),
    )?;
    let lasting = granted.iter().filter(|(_, term)| *term == Term::Always);
    let lasting: Vec<_> = lasting.map(|(grant, _)| grant.clone()).collect();
    remember(plugin, &spec.options.grants.mounts, &lasting, operator)?;
    Ok(())
}

/// Remembers grants for a component and notes this to the operator. Returns the grants that cannot
/// be remembered.
fn remember(
    plugin: &Plugin,
    mounts: &[Mount],
    lasting: &[NewGrant],
    operator: &Operator,
) -> crate::Result<Vec<NewGrant>> {
    if lasting.is_empty() {
        return Ok(Vec::new());
    }
    let forgotten = remembered::remember(plugin, mounts, lasting)?;
    for grant in &forgotten {
        let wish = grant.permission.in_plain_words();
        operator.note(&format!(
            "granted for this run, and not remembered, for the store is not a directory: to {wish}"
        ));
    }
    if forgotten.len() < lasting.len() {
        let digest = &plugin.identity().digest;
        operator.note(&format!(
            "remembered for this component; to take it back: cofferdam revoke --remembered {digest}"
        ));
    }
    Ok(forgotten)
}

/// Widens `spec` by what the configuration with `granted` contains, and writes the lasting grants
/// to the file.
fn use_and_keep(
    spec: &mut PluginSpec,
    file: ConfigEditor,
    granted: &[(NewGrant, Term)],
    operator: &Operator,
) -> crate::Result<()> {
    let name = &spec.options.name.to_string();
    let (mut now, mut is_lasting) = (file, false);
    for (grant, term) in granted {
        is_lasting |= now.grant(name, grant)? && *term == Term::Always;
        if let Permission::Limit(..) = grant.permission {
            widen(&mut spec.options.grants, &mut spec.options.limits, grant)?;
        }
    }
    let now = now.config()?;
    let wider = compose::spec_of_config(&now, name, Values::Read)?.options.grants;
    let before = std::mem::replace(&mut spec.options.grants, wider);
    for mount in &mut spec.options.grants.mounts {
        // Reuses a store that is already open, so that it stays shared with other plugins.
        let same = |old: &&Mount| old.name == mount.name && old.access == mount.access;
        if let Some(old) = before.mounts.iter().find(same) {
            mount.store = Arc::clone(&old.store);
        }
    }
    granting::check_mounts(
        &spec.options.grants.mounts,
        &policy_files::locate(&compose::policy_files_of([&*spec])),
    )?;
    if is_lasting && let Some(config) = &spec.config {
        let _lock = FolderLock::take(config)?;
        // Read again, because another process may have changed it during the questions.
        let mut file = ConfigEditor::open_ambient(config)?;
        for (grant, _) in granted.iter().filter(|(_, term)| *term == Term::Always) {
            file.grant(name, grant)?;
        }
        file.save()?;
        operator.note(&format!("written to {}", config.display()));
    }
    Ok(())
}

fn decide(count: usize, can_keep: bool, operator: &Operator) -> GrantAnswer {
    let always = if can_keep { "[a]lways, " } else { "" };
    let (what, each) =
        if count == 1 { ("Grant it?", "") } else { ("Grant all of it?", "[e]ach by itself, ") };
    let answer =
        operator.choice(&format!("{what} [o]nce, {always}{each}[N]o: ")).to_ascii_lowercase();
    match answer.as_str() {
        "e" | "each" if count > 1 => GrantAnswer::Each,
        other => term(other, can_keep).map_or(GrantAnswer::Nothing, GrantAnswer::All),
    }
}

fn decide_one(permission: &Permission, can_keep: bool, operator: &Operator) -> Option<Term> {
    let always = if can_keep { "[a]lways, " } else { "" };
    let wish = permission.in_plain_words();
    term(
        &operator.choice(&format!("  {wish}? [o]nce, {always}[N]o: ")).to_ascii_lowercase(),
        can_keep,
    )
}

fn term(answer: &str, can_keep: bool) -> Option<Term> {
    match answer {
        "o" | "once" => Some(Term::Once),
        "a" | "always" if can_keep => Some(Term::Always),
        _ => None,
    }
}

/// Returns the missing permissions of a plugin that the operator can grant with a plain yes: those
/// that need no directory, value or secret.
pub(crate) fn missing_without_details(plugin: &Plugin, spec: &PluginSpec) -> Vec<Permission> {
    let needs_nothing = |permission: &&Permission| match permission {
        Permission::Files(Some(name), _) => {
            spec.options.grants.mounts.iter().any(|mount| mount.name == *name)
        }
        Permission::Files(None, _)
        | Permission::Env(_)
        | Permission::Config(_)
        | Permission::Secret(_) => false,
        _ => true,
    };
    let missing = plugin.granted().missing.iter().map(|missing| &missing.permission);
    missing.filter(needs_nothing).cloned().collect()
}

/// Widens `spec` by those of `permissions` that are in [`missing_without_details`], and returns
/// their names.
///
/// If `is_lasting`, it also writes them to the configuration or remembers them for the component;
/// the next load applies them.
pub(crate) fn grant_without_details(
    plugin: &Plugin,
    spec: &mut PluginSpec,
    permissions: &BTreeSet<String>,
    is_lasting: bool,
    operator: &Operator,
) -> crate::Result<Vec<String>> {
    let missing = missing_without_details(plugin, spec).into_iter();
    let missing = missing.filter(|permission| permissions.contains(&permission.to_string()));
    let grants: Vec<_> =
        missing.map(|permission| NewGrant { permission, directory: None, value: None }).collect();
    let mut wider = spec.options.clone();
    for grant in &grants {
        widen(&mut wider.grants, &mut wider.limits, grant)?;
    }
    // A store that was read-only until now has not been checked for writing.
    granting::check_mounts(
        &wider.grants.mounts,
        &policy_files::locate(&compose::policy_files_beside(spec)),
    )?;
    match &spec.config {
        None if is_lasting && remembered::path().is_some() => {
            for grant in remember(plugin, &wider.grants.mounts, &grants, operator)? {
                widen(&mut spec.options.grants, &mut spec.options.limits, &grant)?;
            }
        }
        config => {
            if let Some(config) = config.as_ref().filter(|_| is_lasting) {
                let _lock = FolderLock::take(config)?;
                let mut file = ConfigEditor::open_ambient(config)?;
                for grant in &grants {
                    file.grant(spec.options.name.as_str(), grant)?;
                }
                file.save()?;
            }
            spec.options = wider;
        }
    }
    Ok(grants.iter().map(|grant| grant.permission.to_string()).collect())
}

/// Asks the operator for details that the permission lacks: a directory or a value. A store of that
/// name in `known` is used unchanged.
fn complete(
    permission: &Permission,
    grants: &Grants,
    known: Option<&ConfigFile>,
    operator: &Operator,
) -> crate::Result<Option<NewGrant>> {
    let mut grant = NewGrant { permission: permission.clone(), directory: None, value: None };
    match permission {
        Permission::Files(name, access) => {
            let is_known = |name: &MountName| {
                grants.mounts.iter().any(|mount| mount.name == *name)
                    || known.is_some_and(|file| file.config.stores.contains_key(name.as_str()))
            };
            if name.as_ref().is_some_and(is_known) {
                return Ok(Some(grant));
            }
            let name = match name {
                Some(name) => name.clone(),
                None => new_name("data", is_known)?,
            };
            let directory = operator.text(&format!("Directory for /{name}: "));
            if directory.is_empty() {
                return Ok(None);
            }
            grant.permission = Permission::Files(Some(name), *access);
            grant.directory =
                Some(std::path::absolute(directory).context("the working directory is not known")?);
        }
        Permission::Config(key) => grant.value = Some(operator.text(&format!("Value of {key}: "))),
        Permission::Secret(name) => {
            let is_there = match known {
                Some(file) => file.config.secrets.contains_key(name),
                None => grants.secrets.contains_key(name),
            };
            if !is_there {
                operator.note(&format!(
                    "name the source of the secret in the configuration: [secrets] {name} = {{ … }}"
                ));
                return Ok(None);
            }
        }
        Permission::Env(name) if std::env::var(name).is_err() => {
            operator.note(&format!("the environment variable {name} is not set here"));
            return Ok(None);
        }
        _ => {}
    }
    Ok(Some(grant))
}

/// Returns `name`, with a number appended if a store of that name exists, because a newly typed
/// directory needs a store of its own.
fn new_name(name: &str, is_taken: impl Fn(&MountName) -> bool) -> crate::Result<MountName> {
    let named =
        |name: &str| MountName::new(name).map_err(|error| Error::invalid(error.to_string()));
    let mut free = named(name)?;
    for number in 2..100 {
        if !is_taken(&free) {
            break;
        }
        free = named(&format!("{name}{number}"))?;
    }
    Ok(free)
}

/// Adds a grant to the offered grants and limits.
pub(crate) fn widen(
    grants: &mut Grants,
    limits: &mut Limits,
    grant: &NewGrant,
) -> crate::Result<()> {
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
            grants
                .config
                .insert(key.clone(), SecretText::new(grant.value.clone().unwrap_or_default()));
        }
        Permission::Secret(name) => drop(grants.readable_secrets.insert(name.clone())),
        Permission::Clock(precision) => grants.clock = *precision,
        Permission::Random => grants.random = true,
        Permission::Tool(name) => drop(grants.tools.insert(name.clone())),
        Permission::Ask(kind) => drop(grants.ask.insert(*kind)),
        Permission::Limit(key, value) => {
            let one = serde_json::json!({ key.as_str(): value });
            if let Ok(patch) = serde_json::from_value::<RequestedLimits>(one) {
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
) -> crate::Result<()> {
    let known = grants.mounts.iter().find(|mount| mount.name == *name);
    let directory =
        known.and_then(|mount| mount.store.root_ambient()).or(grant.directory.as_deref());
    let store = match (known, directory) {
        // Opens the directory again, because it may have been opened read-only.
        (_, Some(directory)) => stores::mount_directory(directory, access, Quota::growth())?,
        (Some(mount), None) => Arc::clone(&mount.store),
        (None, None) => return Ok(()),
    };
    let sharing = known.map_or(StoreSharing::Shared, |mount| mount.sharing);
    let mount = Mount { sharing, ..Mount::new(name.clone(), store, access) };
    grants.mounts.retain(|mount| mount.name != *name);
    grants.mounts.push(mount);
    Ok(())
}

/// Returns a path as one word of a shell, for a command that the operator may copy.
#[must_use]
pub fn shell_path(path: &Path) -> String {
    flags::word(&path.display().to_string())
}

/// Returns the command that grants exactly the permission that a call was denied, or `None` if no
/// command can.
pub fn how_to_grant(plugin: &str, refused: &str, config: Option<&Path>) -> Option<String> {
    let permission = exact_permission(refused)?;
    Some(match config {
        Some(config) => {
            let permission = flags::word(&permission.to_string());
            let config = shell_path(config);
            format!("to grant it: cofferdam grant {plugin} {permission} --config {config}")
        }
        None => match flags::permission(&permission, None) {
            Some(flag) => format!("to grant it: {}", flags::typed(flag)),
            None => format!(
                "to grant it, use a configuration with [plugins.{plugin}.grants]; see `cofferdam \
                 grant --help`"
            ),
        },
    })
}

/// Returns the permission that a call was denied, or `None` if the parsed one would be wider.
pub(crate) fn exact_permission(refused: &str) -> Option<Permission> {
    let permission: Permission = refused.parse().ok()?;
    (permission.to_string() == refused).then_some(permission)
}
