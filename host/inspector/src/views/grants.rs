//! Grants: what each plugin asks for and gets, and what recorded calls used of it.

use std::collections::BTreeMap;

use cofferdam_record::{CallFilter, CapabilityUse, Log, PluginUses, UtcTime};
use maud::{Markup, html};

use super::{layout, tools};
use crate::error::PageError;
use crate::grants::{PermissionGrant, PermissionUse, PluginGrants, is_refusal_of};
use crate::inspector::InspectorState;
use crate::query;
use crate::{format, text};

/// Time that uses are counted in.
const WINDOW: &str = "30d";
/// Maximum number of plugins on the page.
const PLUGINS_MAX: usize = 100;
/// Maximum number of permissions of a plugin.
const PERMISSIONS_MAX: usize = 200;
/// Maximum number of refused capabilities of a plugin, besides its permissions.
const REFUSED_MAX: usize = 50;

/// Returns the page.
pub(super) fn page(state: &InspectorState) -> Result<Markup, PageError> {
    let log = state.source.log()?;
    let since = UtcTime::parse_age_or_date(WINDOW).ok();
    let filter = CallFilter { since, ..CallFilter::default() };
    let (uses, damage) = log.map(|log| log.uses(&filter)).transpose()?.unwrap_or_default();
    let window = Window::of(log, since)?;
    let known = state.options.grants.as_ref().map(|grants| grants());
    let is_loading = matches!(known, Some(Ok(None)));
    let (known, problem) = match known.transpose() {
        Ok(known) => (known.flatten(), None),
        Err(problem) => (None, Some(problem)),
    };
    let plugins = plugins(known.as_deref().unwrap_or_default(), &uses);
    let more = plugins.len().saturating_sub(PLUGINS_MAX);
    let nothing = PluginUses::default();
    Ok(layout::page(
        "Grants",
        "/grants",
        &[],
        html! {
            h1 { "Grants" }
            p {
                "Uses are those of recorded calls, " (window.title()) ". A line of a call shows requests, \
                 connections, changed files, questions, calls of other tools and refusals. It does not show \
                 reads of files, clocks, random numbers, variables, configuration values and secrets."
            }
            @if let Some(problem) = &problem {
                p { "Permissions are not known: " (text::line(problem)) }
            } @else if is_loading {
                p role="status" data-reload {
                    "The plugins are loading. Until then, this page shows only what their calls used."
                }
            } @else if known.is_none() {
                p {
                    "What plugins ask for and get is shown with " code { "serve --inspector" } " and "
                    code { "inspect --web --config" } "."
                }
            }
            (tools::losses(&damage))
            @if plugins.is_empty() { p { "No plugin is known." } }
            @for (name, grants) in plugins.iter().take(PLUGINS_MAX) {
                (plugin(state, name, *grants, uses.get(*name).unwrap_or(&nothing), window))
            }
            @if more > 0 { p { (more) " more plugins" } }
        },
    ))
}

/// Time of the recorded calls.
#[derive(Clone, Copy)]
struct Window {
    /// Start of the log, if it is later than that of the window.
    began: Option<UtcTime>,
}

impl Window {
    fn of(log: Option<&Log>, since: Option<UtcTime>) -> Result<Self, PageError> {
        let began = log.map(Log::began).transpose()?.flatten();
        Ok(Self { began: began.filter(|began| since.is_some_and(|since| *began > since)) })
    }

    fn title(self) -> String {
        match self.began {
            None => "in 30 days".to_owned(),
            Some(began) => format!("since the log began on {} UTC", format::date_time(began)),
        }
    }
}

/// Returns the plugins that the host knows, and those that were called, by name.
fn plugins<'p>(
    known: &'p [PluginGrants],
    uses: &'p BTreeMap<String, PluginUses>,
) -> BTreeMap<&'p str, Option<&'p PluginGrants>> {
    let called = uses.keys().map(|name| (name.as_str(), None));
    let known = known.iter().map(|grants| (grants.plugin.as_str(), Some(grants)));
    called.chain(known).collect()
}

fn plugin(
    state: &InspectorState,
    name: &str,
    grants: Option<&PluginGrants>,
    uses: &PluginUses,
    window: Window,
) -> Markup {
    let permissions = grants.map(|grants| grants.permissions.as_slice()).unwrap_or_default();
    let more = permissions.len().saturating_sub(PERMISSIONS_MAX);
    let head = ["Permission", "Asked", "Offered", "Granted", "Used", "Refused", "Commands"];
    html! {
        h2 { (text::line(name)) }
        p {
            @match uses.calls {
                None => { "Not called " (window.title()) "." }
                Some(calls) => {
                    (layout::link(name, |name| query::address("/", [("plugin", name)])))
                    " was called " (format::counted(calls.calls, "time")) ", last "
                    (layout::time(calls.last)) "."
                }
            }
        }
        @if let Some(problem) = grants.and_then(|grants| grants.problem.as_deref()) {
            p { "Its permissions are not known: " (text::line(problem)) }
        }
        @if !permissions.is_empty() {
            (layout::table(&text::plain_line(name), &head, html! {
                @for permission in permissions.iter().take(PERMISSIONS_MAX) {
                    (row(permission, uses, window))
                }
            }))
        }
        @if more > 0 { p { (more) " more permissions" } }
        (refused(state, name, permissions, uses))
        @if uses.is_cut { p { "Not all hosts and refusals of this plugin are counted: there are too many." } }
    }
}

fn row(permission: &PermissionGrant, uses: &PluginUses, window: Window) -> Markup {
    let refusals = permission.permission.as_ref().map(|permission| {
        let own = uses.refused.iter();
        own.filter(move |(name, _)| is_refusal_of(permission, name)).map(|(_, uses)| *uses)
    });
    let refused = refusals.into_iter().flatten().reduce(CapabilityUse::and);
    html! {
        tr {
            th scope="row" { (text::line(&permission.subject)) }
            td { (text::line(&permission.asked)) }
            td { (text::line(&permission.offered)) }
            td { (text::line(&permission.granted)) }
            td { (used(permission, uses, window)) }
            td { @if let Some(refused) = refused { (times(refused)) } }
            td {
                @if let Some(command) = &permission.grant_command { (command_of("To grant", command)) }
                @for command in &permission.revoke_commands { (command_of("To revoke", command)) }
            }
        }
    }
}

fn used(permission: &PermissionGrant, uses: &PluginUses, window: Window) -> Markup {
    let Some(kind) = &permission.permission else { return html! {} };
    let is_offered = !permission.revoke_commands.is_empty() || permission.granted != "-";
    match PermissionUse::of(kind, uses) {
        PermissionUse::Used(uses) => times(uses),
        PermissionUse::Unused if !is_offered => html! {},
        PermissionUse::Unused => html! { strong { "never used" } " " (window.title()) },
        PermissionUse::Unrecorded => html! { span.aside { "not recorded" } },
    }
}

fn times(uses: CapabilityUse) -> Markup {
    html! { (format::counted(uses.calls, "call")) ", last " (layout::time(uses.last)) }
}

/// Returns advice, which can be copied if it is a command.
fn command_of(title: &str, command: &str) -> Markup {
    html! {
        div {
            (title) ": "
            @if command.starts_with("cofferdam ") { (layout::command(command)) }
            @else { (text::line(command)) }
        }
    }
}

/// Returns the refused capabilities that no permission of the plugin is about.
fn refused(
    state: &InspectorState,
    plugin: &str,
    permissions: &[PermissionGrant],
    uses: &PluginUses,
) -> Markup {
    let known: Vec<_> = permissions.iter().filter_map(|known| known.permission.as_ref()).collect();
    let is_other = |name: &str| !known.iter().any(|permission| is_refusal_of(permission, name));
    let others: BTreeMap<_, _> = uses.refused.iter().filter(|(name, _)| is_other(name)).collect();
    if others.is_empty() {
        return html! {};
    }
    let more = others.len().saturating_sub(REFUSED_MAX);
    let advice = |capability: &str| (state.options.grant_advice)(plugin, capability);
    html! {
        h3 { "Refused, and asked for in no manifest" }
        ul {
            @for (capability, uses) in others.iter().take(REFUSED_MAX) {
                li {
                    code { (text::line(capability)) } " " (times(**uses))
                    @if let Some(command) = advice(capability) { (command_of("To grant", &command)) }
                }
            }
        }
        @if more > 0 { p { (more) " more" } }
    }
}
