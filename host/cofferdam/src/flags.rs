//! Permissions and stores as flags of the command line.

use cofferdam_tool::{FileAccess, MountName, Permission};

use crate::config::ValueSource;

/// Returns the flag that grants a permission to plugins of the command line, and its value, or
/// `None` if there is none. A store is written with the placeholder `DIR`.
pub(crate) fn permission(
    permission: &Permission,
    source: Option<&ValueSource>,
) -> Option<(&'static str, String)> {
    Some(match permission {
        Permission::Files(name, access) => {
            let name = name.as_ref().map_or("NAME", MountName::as_str);
            ("--mount", store(Some(name), "DIR", *access))
        }
        Permission::Config(_) => return None,
        Permission::Http(rule) => ("--allow-http", rule.to_string()),
        Permission::Env(name) => match source {
            Some(ValueSource::Literal(value)) => ("--allow-env", format!("{name}={value}")),
            _ => ("--allow-env", name.clone()),
        },
        Permission::Secret(name) => match source {
            Some(ValueSource::Env(variable)) => ("--secret", format!("{name}={variable}")),
            _ => ("--secret", name.clone()),
        },
        Permission::Limit(key, number) => ("--limit", format!("{key}={number}")),
        Permission::Socket(_)
        | Permission::Clock(_)
        | Permission::Random
        | Permission::Tool(_)
        | Permission::Ask(_) => ("--allow", permission.to_string()),
    })
}

/// Returns a store in the syntax of `--mount` and `--files`.
pub(crate) fn store(name: Option<&str>, location: &str, access: FileAccess) -> String {
    let name = name.map(|name| format!("{name}=")).unwrap_or_default();
    let access = match access {
        FileAccess::ReadOnly => ":ro",
        FileAccess::CreateOnly => ":create",
        FileAccess::ReadWrite => "",
    };
    format!("{name}{location}{access}")
}

/// Returns a flag in the form that a shell reads.
pub(crate) fn typed((flag, value): (&str, String)) -> String {
    format!("{flag} {}", word(&value))
}

/// Returns a string as one word of a shell. A plugin may have chosen it, and the operator may copy
/// it into a terminal.
pub(crate) fn word(string: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-=.:/,".contains(c);
    if !string.is_empty() && string.chars().all(is_plain) {
        return string.to_owned();
    }
    format!("'{}'", string.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_written_as_they_are_typed() {
        let flag = |text: &str| permission(&text.parse().unwrap(), None).map(typed);
        assert_eq!(flag("files:a=read-only").unwrap(), "--mount a=DIR:ro");
        assert_eq!(
            flag("http:GET https://a.example/").unwrap(),
            "--allow-http 'GET https://a.example/'"
        );
        assert_eq!(flag("clock:precise").unwrap(), "--allow clock:precise");
        assert_eq!(
            flag("http:GET https://a.example/';id;'").unwrap(),
            "--allow-http 'GET https://a.example/'\\'';id;'\\'''"
        );
        assert_eq!(flag("config:key"), None);
    }

    #[test]
    fn stores_are_written_as_they_are_typed() {
        assert_eq!(store(Some("x"), "/a", FileAccess::ReadOnly), "x=/a:ro");
        assert_eq!(store(None, "memory", FileAccess::ReadWrite), "memory");
        assert_eq!(store(None, "s3://b/p", FileAccess::CreateOnly), "s3://b/p:create");
    }
}
