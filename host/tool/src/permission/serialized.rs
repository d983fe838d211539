//! Serialized form of requested permissions, which a host caches from one start to the next:
//! reading it needs no manifest.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ClockPrecision, Permission, Permissions, RequestedLimits, RequestedPermissions};

/// Requested permissions as strings of single permissions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SerializedPermissions {
    is_stated: bool,
    permissions: Vec<String>,
}

impl SerializedPermissions {
    /// Returns the serialized form of `asked`, or `None` if it would not read back as the same.
    #[must_use]
    pub fn new(asked: &RequestedPermissions) -> Option<Self> {
        let permissions = match asked {
            RequestedPermissions::Unstated => Vec::new(),
            RequestedPermissions::UnstatedWithin(limits) => limits
                .entries()
                .into_iter()
                .map(|(key, value)| format!("limit:{key}={value}"))
                .collect(),
            RequestedPermissions::Stated(permissions) => {
                permissions.all().iter().map(ToString::to_string).collect()
            }
        };
        let serialized =
            Self { is_stated: matches!(asked, RequestedPermissions::Stated(_)), permissions };
        (serialized.to_requested().as_ref() == Some(asked)).then_some(serialized)
    }

    /// Returns the requested permissions, or `None` if a string is not a permission, which a string
    /// from [`new`](Self::new) always is.
    #[must_use]
    pub fn to_requested(&self) -> Option<RequestedPermissions> {
        let mut asked =
            Permissions { random: false, clock: ClockPrecision::Coarse, ..Permissions::default() };
        let mut limits = Map::new();
        for text in &self.permissions {
            match text.parse().ok()? {
                Permission::Files(Some(name), access) => drop(asked.files.insert(name, access)),
                Permission::Files(None, access) => asked.files_any = Some(access),
                Permission::Http(rule) => asked.http.push(rule),
                Permission::Socket(rule) => drop(asked.sockets.insert(rule)),
                Permission::Env(name) => drop(asked.env.insert(name)),
                Permission::Config(key) => drop(asked.config.insert(key)),
                Permission::Secret(name) => drop(asked.secrets.insert(name)),
                Permission::Clock(precision) => asked.clock = precision,
                Permission::Random => asked.random = true,
                Permission::Tool(name) => drop(asked.tools.insert(name)),
                Permission::Ask(kind) => drop(asked.ask.insert(kind)),
                Permission::Limit(key, value) => drop(limits.insert(key, value.into())),
            }
        }
        if !limits.is_empty() {
            asked.limits = serde_json::from_value::<RequestedLimits>(Value::Object(limits)).ok()?;
        }
        Some(match self.is_stated {
            true => RequestedPermissions::Stated(Box::new(asked)),
            false if asked.limits == RequestedLimits::default() => RequestedPermissions::Unstated,
            false => RequestedPermissions::UnstatedWithin(asked.limits),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileAccess;

    fn check_round_trip(asked: &RequestedPermissions) {
        let serialized = SerializedPermissions::new(asked).unwrap_or_else(|| panic!("{asked:?}"));
        assert_eq!(serialized.to_requested().as_ref(), Some(asked));
    }

    #[test]
    fn everything_that_can_be_asked_for_is_serialized() {
        check_round_trip(&RequestedPermissions::Unstated);
        let limits = RequestedLimits {
            wall_ms_max: Some(5),
            fuel_max: Some(u64::MAX),
            ..RequestedLimits::default()
        };
        check_round_trip(&RequestedPermissions::UnstatedWithin(limits.clone()));
        check_round_trip(&RequestedPermissions::Stated(Box::default()));
        check_round_trip(&RequestedPermissions::Stated(Box::new(Permissions {
            random: false,
            ..Permissions::default()
        })));
        check_round_trip(&RequestedPermissions::Stated(Box::new(Permissions {
            files: [(crate::MountName::new("notes").unwrap(), FileAccess::ReadWrite)].into(),
            files_any: Some(FileAccess::CreateOnly),
            http: ["GET https://b.example/v1", "https://*.a.example/"]
                .map(|r| r.parse().unwrap())
                .into(),
            sockets: ["tcp db.example:5432".parse().unwrap()].into(),
            env: ["LANG".to_owned()].into(),
            config: ["a.b".to_owned()].into(),
            secrets: ["gh".to_owned()].into(),
            clock: ClockPrecision::Precise,
            random: true,
            tools: ["word_count".parse().unwrap()].into(),
            ask: [crate::ask::QuestionKind::Elicitation].into(),
            limits,
        })));
        check_round_trip(&RequestedPermissions::Stated(Box::new(Permissions {
            clock: ClockPrecision::Frozen,
            ..Permissions::default()
        })));
    }

    #[test]
    fn an_unknown_permission_was_never_serialized() {
        let serialized = SerializedPermissions {
            is_stated: true,
            permissions: vec!["files".to_owned(), "nonsense:x".to_owned()],
        };
        assert_eq!(serialized.to_requested(), None);
    }
}
