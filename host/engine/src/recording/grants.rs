//! Grants in a recording, and the grants of a replay.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cofferdam_files::{FileStore, PlaybackStore, StoreSharing};
use cofferdam_tool::permission::{ClockPrecision, HttpGrant, HttpRule, SecretText};
use cofferdam_tool::recording::{CallRecording, RecordedMount, RecordedPlugin};
use cofferdam_tool::{FileAccess, Limits, MountName, Permission};

use crate::host_api::PluginContext;
use crate::{Grants, Mount};

/// Maximum length of the placeholder of a secret, in bytes: more than any secret has.
const SECRET_BYTES_MAX: usize = 64 * 1024;

/// Returns plugin and grants of a call, without values of secrets.
pub(super) fn recorded_plugin(plugin: &PluginContext, limits: &Limits) -> RecordedPlugin {
    let grants = &*plugin.grants;
    let redacted = |values: &BTreeMap<String, SecretText>| {
        let value = |(name, value): (&String, &SecretText)| {
            (name.clone(), plugin.redactor.text(value.expose()).into_owned())
        };
        values.iter().map(value).collect()
    };
    let addresses: BTreeSet<_> = grants.http.iter().flat_map(|grant| &grant.addresses).collect();
    RecordedPlugin {
        component: None,
        name: plugin.identity.name.to_string(),
        digest: plugin.identity.digest.as_ref().to_owned(),
        permissions: permissions(grants).iter().map(ToString::to_string).collect(),
        all_tools: grants.all_tools,
        addresses: addresses.iter().map(ToString::to_string).collect(),
        mounts: mounts(&grants.mounts),
        env: redacted(&grants.env),
        config: redacted(&grants.config),
        secret_lengths: grants
            .secrets
            .iter()
            .filter(|(name, _)| grants.readable_secrets.contains(*name))
            .map(|(name, value)| (name.clone(), value.expose().len()))
            .collect(),
        limits: limits.clone(),
        shows_errors: plugin.shows_errors,
    }
}

/// Returns the granted permissions, except mounts, limits, variables and configuration values.
fn permissions(grants: &Grants) -> Vec<Permission> {
    let http = grants.http.iter().map(|grant| Permission::Http(grant.rule.clone()));
    http.chain(grants.sockets.iter().cloned().map(Permission::Socket))
        .chain([Permission::Clock(grants.clock)])
        .chain(grants.random.then_some(Permission::Random))
        .chain(grants.tools.iter().cloned().map(Permission::Tool))
        .chain(grants.ask.iter().copied().map(Permission::Ask))
        .collect()
}

fn mounts(mounts: &[Mount]) -> Vec<RecordedMount> {
    let mount = |mount: &Mount| {
        let is_same = |other: &&Mount| {
            std::ptr::addr_eq(Arc::as_ptr(&other.store), Arc::as_ptr(&mount.store))
        };
        let first = mounts.iter().find(is_same).unwrap_or(mount);
        RecordedMount {
            name: mount.name.to_string(),
            store: first.name.to_string(),
            access: mount.access.as_str().to_owned(),
            is_per_session: mount.sharing == StoreSharing::PerSession,
        }
    };
    mounts.iter().map(mount).collect()
}

/// Returns the grants of a replay: those of the recording, with stores that answer from it and
/// placeholders for secrets. `report` is called for each lookup that it does not contain.
pub(super) fn played_grants(
    recording: &CallRecording,
    report: &Arc<dyn Fn(String) + Send + Sync>,
) -> Grants {
    let plugin = &recording.plugin;
    let values = |values: &BTreeMap<String, String>| {
        values.iter().map(|(name, value)| (name.clone(), SecretText::new(value.as_str()))).collect()
    };
    let mut grants = Grants {
        mounts: played_mounts(recording, report),
        env: values(&plugin.env),
        config: values(&plugin.config),
        clock: ClockPrecision::Coarse,
        random: false,
        all_tools: plugin.all_tools,
        ..Grants::default()
    };
    let addresses: Vec<_> = plugin.addresses.iter().filter_map(|text| text.parse().ok()).collect();
    for (name, length) in &plugin.secret_lengths {
        grants.secrets.insert(name.clone(), SecretText::new(placeholder(name, *length)));
        grants.readable_secrets.insert(name.clone());
    }
    // Without sockets: what was said over them is not recorded, and a replay opens none.
    for text in &plugin.permissions {
        match text.parse() {
            Ok(Permission::Http(rule)) => grants.http.push(http(rule, &addresses)),
            Ok(Permission::Clock(precision)) => grants.clock = precision,
            Ok(Permission::Random) => grants.random = true,
            Ok(Permission::Tool(name)) => {
                grants.tools.insert(name);
            }
            Ok(Permission::Ask(kind)) => {
                grants.ask.insert(kind);
            }
            _ => {}
        }
    }
    grants
}

/// Returns a string of the length of a secret, but not longer than any secret is.
fn placeholder(name: &str, length: usize) -> String {
    let text = format!("replay-of-the-secret-{name}-");
    text.chars().cycle().take(length.min(SECRET_BYTES_MAX)).collect()
}

fn http(rule: HttpRule, addresses: &[cofferdam_tool::permission::AddressRange]) -> HttpGrant {
    HttpGrant { rule, addresses: addresses.to_vec(), headers: Vec::new() }
}

fn played_mounts(
    recording: &CallRecording,
    report: &Arc<dyn Fn(String) + Send + Sync>,
) -> Vec<Mount> {
    let mut stores: BTreeMap<String, Arc<dyn FileStore>> = BTreeMap::new();
    let mount = |mount: &RecordedMount| {
        let store = stores.entry(mount.store.clone()).or_insert_with(|| {
            let recorded = recording.stores.get(&mount.store).cloned().unwrap_or_default();
            Arc::new(PlaybackStore::new(&mount.store, recorded, Arc::clone(report)))
        });
        let access = FileAccess::ALL.into_iter().find(|access| access.as_str() == mount.access)?;
        let sharing =
            if mount.is_per_session { StoreSharing::PerSession } else { StoreSharing::Shared };
        let name = MountName::new(&*mount.name).ok()?;
        Some(Mount { name, store: Arc::clone(store), access, sharing })
    };
    recording.plugin.mounts.iter().filter_map(mount).collect()
}
