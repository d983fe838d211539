//! A plugin whose grants pages show.

use cofferdam_inspector::{PermissionGrant, PluginGrants};

fn permission(subject: &str, permission: &str, granted: bool) -> PermissionGrant {
    let [offered, asked] = [if granted { "yes" } else { "-" }, "yes"].map(str::to_owned);
    let command = |verb: &str| format!("cofferdam {verb} web '{permission}' --config tools.toml");
    PermissionGrant {
        subject: subject.to_owned(),
        asked,
        granted: offered.clone(),
        offered,
        permission: Some(permission.parse().unwrap()),
        grant_command: (!granted).then(|| command("grant")),
        revoke_commands: granted.then(|| command("revoke")).into_iter().collect(),
    }
}

/// Returns a plugin with permissions that it has and lacks.
pub(crate) fn plugin() -> PluginGrants {
    PluginGrants {
        plugin: "web".to_owned(),
        permissions: vec![
            permission("http https://api.example.com/", "http:https://api.example.com/", true),
            permission("http https://old.example.com/", "http:https://old.example.com/", true),
            permission("http https://new.example.com/", "http:https://new.example.com/", false),
            permission("environment LANG", "env:LANG", true),
        ],
        problem: None,
    }
}
