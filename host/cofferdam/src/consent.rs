//! Consent of the operator before a plugin is used: to changes of the plugin, and to permissions it
//! asks for beyond its grants.

use std::path::Path;
use std::sync::Arc;

use cofferdam_engine::{Approval, Grants, Mount, Plugin, PluginBatch};
use cofferdam_files::{Quota, StoreSharing};
use cofferdam_tool::permission::{LimitsAsked, SecretText};
use cofferdam_tool::{FileAccess, Limits, MountName, Permission};

use crate::compose::PluginSpec;
use crate::config::ConfigFile;
use crate::config::edit::{ConfigEditor, NewGrant};
use crate::error::Context as _;
use crate::folder_lock::FolderLock;
use crate::granting::Values;
use crate::pins::{PinComparison, Pins};
use crate::{Error, Operator, compose, granting, remembered, stores};

/// Consent to the plugins of one start.
pub(crate) struct Consent {
    /// Accepted state, read when it is first needed.
    pins: Option<Pins>,
    has_news: bool,
    /// Mark of these plugins and this version of the lock file.
    approval: Option<Approval>,
    /// True if the index has the same mark, so that plugins of the index need not be compared
    /// again.
    is_approved: bool,
    operator: Operator,
}

impl Consent {
    /// Creates the consent to `specs`, which `batch` loads.
    pub(crate) fn new(specs: &[PluginSpec], batch: &PluginBatch, operator: &Operator) -> Self {
        let config =
            specs.iter().filter(|spec| spec.is_pinned).find_map(|spec| spec.config.as_deref());
        // Before the file is read: a change from here on shows.
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

    /// Compares a plugin with what was accepted before, unless it `was_known` and compared then; a
    /// change needs consent.
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
        self.has_news |= judge(pins, plugin, config, &self.operator)?;
        Ok(())
    }

    /// Writes what was accepted, and marks the index as approved if all plugins were compared.
    pub(crate) fn end(self, batch: &PluginBatch, is_complete: bool) {
        if let Some(pins) = self.pins.filter(|_| self.has_news) {
            // The next run compares with nothing, which is worth a word and no failure.
            if let Err(error) = pins.save() {
                self.operator.note(&format!(
                    "warning: a later change of plugins will not be noticed: {error:#}"
                ));
            }
        }
        batch.set_approval(self.approval.filter(|_| is_complete));
    }
}

/// Compares a plugin of a configuration with what was accepted before; a change needs consent.
pub(crate) fn check_pin(plugin: &Plugin, config: &Path, operator: &Operator) -> crate::Result<()> {
    let mut pins = Pins::of_config_ambient(config)?;
    if judge(&mut pins, plugin, config, operator)?
        && let Err(error) = pins.save()
    {
        let name = &plugin.identity().name;
        operator
            .note(&format!("warning: a later change of `{name}` will not be noticed: {error:#}"));
    }
    Ok(())
}

/// The same without writing what was accepted. Answers whether there is something to write.
fn judge(
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
                let config = config.display();
                operator.note(&format!(
                    "  all of it: cofferdam approve {name} --full --config {config}"
                ));
            }
            if !operator.is_available() {
                let config = config.display();
                return Err(Error::NotAccepted(format!(
                    "plugin `{name}` has changed since it was accepted; look at the change and run: cofferdam approve {name} \
                     --config {config}"
                )));
            }
            if !operator.yes("Accept the change?") {
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
    /// For this run.
    Once,
    /// For this run, and written into the configuration or remembered for the component.
    Always,
}

/// Answer to a question for grants.
enum GrantAnswer {
    All(Term),
    Each,
    Nothing,
}

/// Asks, in one question, for everything that a plugin asks for and is not offered. Answers whether
/// something was granted, and has then widened `spec`.
///
/// Uses what the configuration says with the grants in it, whether it is written or not: a
/// directory that is granted once is the one that would be written.
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
            operator.note(&format!("not granted to `{name}`, for --no-input was given:{wishes}"));
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

/// Widens `spec`, which no configuration names, by `granted`, and remembers for its component those
/// that are to stay.
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
        &granting::policy_files(&compose::deciding_beside(spec)),
    )?;
    let lasting = granted.iter().filter(|(_, term)| *term == Term::Always);
    let lasting: Vec<_> = lasting.map(|(grant, _)| grant.clone()).collect();
    remember(plugin, &spec.options.grants.mounts, &lasting, operator)?;
    Ok(())
}

/// Remembers grants for a component, and says so. Returns those that cannot be remembered.
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

/// Widens `spec` by what the configuration says with `granted` in it, and writes those that are to
/// stay.
fn use_and_keep(
    spec: &mut PluginSpec,
    file: ConfigEditor,
    granted: &[(NewGrant, Term)],
    operator: &Operator,
) -> crate::Result<()> {
    let name = &spec.options.name.to_string();
    let (mut now, mut kept, mut is_kept) = (file.clone(), file, false);
    for (grant, term) in granted {
        now.grant(name, grant)?;
        if *term == Term::Always {
            is_kept |= kept.grant(name, grant)?;
        }
        if let Permission::Limit(..) = grant.permission {
            widen(&mut spec.options.grants, &mut spec.options.limits, grant)?;
        }
    }
    let now = now.config()?;
    let wider = compose::spec_of_config(&now, name, Values::Read)?.options.grants;
    let before = std::mem::replace(&mut spec.options.grants, wider);
    for mount in &mut spec.options.grants.mounts {
        // A store that was open already is shared with the plugins that have it.
        let same = |old: &&Mount| old.name == mount.name && old.access == mount.access;
        if let Some(old) = before.mounts.iter().find(same) {
            mount.store = Arc::clone(&old.store);
        }
    }
    granting::check_mounts(
        &spec.options.grants.mounts,
        &granting::policy_files(&compose::deciding([&*spec])),
    )?;
    if is_kept {
        kept.save()?;
        if let Some(config) = &spec.config {
            operator.note(&format!("written to {}", config.display()));
        }
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

/// Returns the permissions that a plugin asks for, does not have, and that need no further value:
/// no directory, value or secret.
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

/// Widens `spec` by all of [`missing_without_details`]. If that `is_lasting`, the configuration is
/// widened too, or the grants are remembered for the component: loading it again applies them.
/// Names what was granted.
pub(crate) fn grant_without_details(
    plugin: &Plugin,
    spec: &mut PluginSpec,
    is_lasting: bool,
    operator: &Operator,
) -> crate::Result<Vec<String>> {
    let missing = missing_without_details(plugin, spec).into_iter();
    let grants: Vec<_> =
        missing.map(|permission| NewGrant { permission, directory: None, value: None }).collect();
    let mut wider = spec.options.clone();
    for grant in &grants {
        widen(&mut wider.grants, &mut wider.limits, grant)?;
    }
    // A directory that could be read only has not been checked for writing yet.
    granting::check_mounts(
        &wider.grants.mounts,
        &granting::policy_files(&compose::deciding_beside(spec)),
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

/// Asks for what a permission does not say: a directory, a value. A store that `known` has is the
/// one that is granted.
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

/// `name`, with a number if there is a store of that name: what is typed is for a store of its own.
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

/// Adds a grant to what is offered.
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
) -> crate::Result<()> {
    let known = grants.mounts.iter().find(|mount| mount.name == *name);
    let directory =
        known.and_then(|mount| mount.store.root_ambient()).or(grant.directory.as_deref());
    let store = match (known, directory) {
        // It may have been opened for reading only.
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

/// The command that would grant what a call was refused, and no more; `None` if no command can.
pub fn how_to_grant(plugin: &str, refused: &str, config: Option<&Path>) -> Option<String> {
    let permission: Permission = refused.parse().ok()?;
    // Something that is read as more than it says is not offered.
    if permission.to_string() != refused {
        return None;
    }
    Some(match config {
        Some(config) => {
            format!(
                "to grant it: cofferdam grant {plugin} '{permission}' --config {}",
                config.display()
            )
        }
        None => format!(
            "it would take a configuration with [plugins.{plugin}.grants], see `cofferdam grant \
             --help`"
        ),
    })
}
