//! Permissions of plugins: what they ask for, what the operator offers, and what their calls get.

use std::sync::Arc;

use cofferdam_record::{CapabilityUse, PluginUses};
use cofferdam_tool::Permission;
use cofferdam_tool::permission::{FileAccess, HttpRule};

/// Returns the permissions of all plugins as they are now, `None` while they are loaded, or a
/// message for the operator. May block, but not for the time that loading takes.
pub type GrantSource = Arc<dyn Fn() -> Result<Option<Vec<PluginGrants>>, String> + Send + Sync>;

/// Permissions of one plugin.
#[derive(Debug, Clone, Default)]
pub struct PluginGrants {
    /// Configured name.
    pub plugin: String,
    /// Permissions and limits.
    pub permissions: Vec<PermissionGrant>,
    /// Reason why the permissions are not known, for the operator.
    pub problem: Option<String>,
}

/// A permission or limit that a plugin asks for, or that it is offered.
#[derive(Debug, Clone, Default)]
pub struct PermissionGrant {
    /// Subject, such as `files /notes`.
    pub subject: String,
    /// Value that the plugin asks for.
    pub asked: String,
    /// Value that the operator offers.
    pub offered: String,
    /// Value that calls get.
    pub granted: String,
    /// The permission, by which its uses are recognized in recorded calls. Limits have none.
    pub permission: Option<Permission>,
    /// Command that grants what is asked for and not granted.
    pub grant_command: Option<String>,
    /// Commands that take back what is offered.
    pub revoke_commands: Vec<String>,
}

/// Use of a permission in recorded calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PermissionUse {
    /// Calls used it.
    Used(CapabilityUse),
    /// No call used it.
    Unused,
    /// Lines of calls do not show it.
    Unrecorded,
}

impl PermissionUse {
    /// Returns the use of a permission in the calls of its plugin.
    pub(crate) fn of(permission: &Permission, uses: &PluginUses) -> Self {
        let found = match permission {
            Permission::Http(rule) => {
                let is_match = |host: &str, port| is_contact(rule, host, port);
                total(uses.hosts.iter().filter(|((host, port), _)| is_match(host, *port)))
            }
            Permission::Socket(rule) => {
                let host = rule.host.to_string();
                let is_match = |name: &str, port| name == host && port == rule.port;
                total(uses.hosts.iter().filter(|((host, port), _)| is_match(host, *port)))
            }
            Permission::Files(Some(mount), access) if *access != FileAccess::ReadOnly => {
                uses.mounts.get(mount.as_str()).copied()
            }
            Permission::Tool(tool) => uses.tools.get(tool.as_str()).copied(),
            Permission::Ask(_) => uses.questions,
            _ => return Self::Unrecorded,
        };
        found.map_or(Self::Unused, Self::Used)
    }
}

/// Returns whether a refused capability is what a permission is about.
pub(crate) fn is_refusal_of(permission: &Permission, capability: &str) -> bool {
    match (permission, capability.parse::<Permission>()) {
        (Permission::Http(rule), Ok(Permission::Http(refused))) => {
            rule.intersect(&refused).is_some()
        }
        (Permission::Files(mount, _), Ok(Permission::Files(refused, _))) => *mount == refused,
        (Permission::Clock(_), Ok(Permission::Clock(_))) => true,
        (permission, Ok(refused)) => *permission == refused,
        (_, Err(_)) => false,
    }
}

/// Returns whether a request to a host may have been one that a rule allows. Its method and path
/// are not recorded.
fn is_contact(rule: &HttpRule, host: &str, port: u16) -> bool {
    ["https", "http"].iter().any(|scheme| {
        let contacted = format!("{scheme}://{host}:{port}/").parse::<HttpRule>();
        contacted.is_ok_and(|contacted| rule.intersect(&contacted).is_some())
    })
}

/// Returns the sum of uses.
fn total<'u, K: 'u>(uses: impl Iterator<Item = (K, &'u CapabilityUse)>) -> Option<CapabilityUse> {
    uses.map(|(_, uses)| *uses).reduce(CapabilityUse::and)
}

#[cfg(test)]
mod tests {
    use cofferdam_record::UtcTime;

    use super::*;

    fn uses() -> PluginUses {
        let one = CapabilityUse::once(UtcTime::from_micros(5));
        let mut uses = PluginUses::default();
        uses.hosts.insert(("api.example.com".to_owned(), 443), one);
        uses.hosts.insert(("db.example.com".to_owned(), 5432), one);
        uses.mounts.insert("notes".to_owned(), one);
        uses.tools.insert("word_count".to_owned(), one);
        uses.questions = Some(one);
        uses
    }

    #[test]
    fn uses_are_recognized_if_they_are_recorded() {
        let uses = uses();
        let used = |text: &str| match PermissionUse::of(&text.parse().unwrap(), &uses) {
            PermissionUse::Used(_) => "used",
            PermissionUse::Unused => "unused",
            PermissionUse::Unrecorded => "unrecorded",
        };
        for (permission, expected) in [
            ("http:GET https://api.example.com/v1", "used"),
            ("http:https://*.example.com/", "used"),
            ("http:http://api.example.com/", "unused"),
            ("http:https://other.example/", "unused"),
            ("socket:tcp db.example.com:5432", "used"),
            ("socket:tcp db.example.com:5433", "unused"),
            ("files:notes=read-write", "used"),
            ("files:other=create-only", "unused"),
            ("files:notes=read-only", "unrecorded"),
            ("tool:word_count", "used"),
            ("tool:other", "unused"),
            ("env:LANG", "unrecorded"),
            ("random", "unrecorded"),
        ] {
            assert_eq!(used(permission), expected, "{permission}");
        }
    }

    #[test]
    fn refusals_belong_to_the_permission_that_they_are_about() {
        let is_refusal = |permission: &str, capability: &str| {
            is_refusal_of(&permission.parse().unwrap(), capability)
        };
        assert!(is_refusal("http:https://a.example/", "http:GET https://a.example/x"));
        assert!(!is_refusal("http:https://a.example/", "http:GET https://b.example/"));
        assert!(is_refusal("files:notes=read-only", "files:notes=read-write"));
        assert!(is_refusal("clock:coarse", "clock:precise"));
        assert!(is_refusal("env:LANG", "env:LANG"));
        assert!(!is_refusal("random", "wasi:sockets/tcp"));
    }
}
