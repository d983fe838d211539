//! Table of requested, offered and granted permissions.

use std::collections::BTreeSet;

use cofferdam_engine::Plugin;
use cofferdam_tool::ask::QuestionKind;
use cofferdam_tool::permission::{ClockPrecision, HttpRule, Permissions, RequestedPermissions};
use cofferdam_tool::{FileAccess, Permission, Policy};
use serde_json::{Value, json};

/// Row of the table: one permission or limit.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// Subject of the row.
    pub what: String,
    /// Requested value.
    pub asked: String,
    pub(crate) offered: String,
    pub(crate) granted: String,
    /// The requested permission, or else the offered one. Limits have none.
    pub(crate) permission: Option<Permission>,
    /// Offered permissions that the row is about.
    pub(crate) revocable: Vec<Permission>,
}

impl Row {
    fn new(what: String, asked: &str, offered: &str, granted: &str) -> Self {
        let [asked, offered, granted] = [asked, offered, granted].map(str::to_owned);
        Self { what, asked, offered, granted, permission: None, revocable: Vec::new() }
    }

    /// Returns whether the plugin requests more than it is granted.
    pub(crate) fn is_missing(&self) -> bool {
        ![NO, ANY].contains(&self.asked.as_str()) && self.asked != self.granted
    }
}

const NO: &str = "-";
const YES: &str = "yes";
/// Request of a plugin that states none.
const ANY: &str = "any";

/// Returns the rows of a plugin: every permission that is requested or offered.
pub fn rows(plugin: &Plugin) -> Vec<Row> {
    compare(plugin.requested(), &plugin.offered(), &plugin.granted().policy)
}

fn compare(asked: &RequestedPermissions, offered: &Policy, granted: &Policy) -> Vec<Row> {
    let nothing = Permissions::default();
    let (permissions, is_stated) = match asked {
        RequestedPermissions::Stated(permissions) => (permissions.as_ref(), true),
        RequestedPermissions::Unstated | RequestedPermissions::UnstatedWithin(_) => {
            (&nothing, false)
        }
    };
    let mut rows = Vec::new();
    files(&mut rows, permissions, is_stated, offered, granted);
    http(&mut rows, &permissions.http, is_stated, offered, granted);
    let texts = |set: &BTreeSet<_>| set.iter().map(ToString::to_string).collect();
    names(
        &mut rows,
        is_stated,
        "socket",
        &texts(&permissions.sockets),
        &texts(&offered.sockets),
        &texts(&granted.sockets),
    );
    names(&mut rows, is_stated, "environment", &permissions.env, &offered.env, &granted.env);
    names(&mut rows, is_stated, "config", &permissions.config, &offered.config, &granted.config);
    names(&mut rows, is_stated, "secret", &permissions.secrets, &offered.secrets, &granted.secrets);
    let tools =
        |set: &BTreeSet<cofferdam_tool::ToolName>| set.iter().map(ToString::to_string).collect();
    names(
        &mut rows,
        is_stated,
        "tool",
        &tools(&permissions.tools),
        &tools(&offered.tools),
        &tools(&granted.tools),
    );
    let kinds =
        |set: &BTreeSet<QuestionKind>| set.iter().map(|kind| kind.as_str().to_owned()).collect();
    names(
        &mut rows,
        is_stated,
        "ask",
        &kinds(&permissions.ask),
        &kinds(&offered.ask),
        &kinds(&granted.ask),
    );
    let clock = if is_stated { permissions.clock.as_str() } else { ANY };
    let is_set = offered.clock != ClockPrecision::Coarse;
    rows.push(Row {
        permission: Some(Permission::Clock(permissions.clock)),
        revocable: is_set.then_some(Permission::Clock(offered.clock)).into_iter().collect(),
        ..Row::new("clock".to_owned(), clock, offered.clock.as_str(), granted.clock.as_str())
    });
    let random = |is_given: bool| if is_given { YES } else { NO };
    let (asked_random, what) = (random(permissions.random), "random numbers".to_owned());
    rows.push(Row {
        permission: Some(Permission::Random),
        revocable: offered.random.then_some(Permission::Random).into_iter().collect(),
        ..Row::new(what, asked_random, random(offered.random), random(granted.random))
    });
    limits(&mut rows, asked, offered, granted);
    rows
}

fn files(
    rows: &mut Vec<Row>,
    asked: &Permissions,
    is_stated: bool,
    offered: &Policy,
    granted: &Policy,
) {
    if let Some(access) = asked.files_any.filter(|_| offered.files.is_empty()) {
        rows.push(Row {
            permission: Some(Permission::Files(None, access)),
            ..Row::new("files of any store".to_owned(), &access.to_string(), NO, NO)
        });
    }
    let names: BTreeSet<_> = asked.files.keys().chain(offered.files.keys()).collect();
    for name in names {
        let wanted = asked.files.get(name).copied().or(asked.files_any);
        let shown = |access: Option<&cofferdam_tool::FileAccess>| {
            access.map_or(NO.to_owned(), ToString::to_string)
        };
        let asked = if is_stated { shown(wanted.as_ref()) } else { ANY.to_owned() };
        let (of_offer, of_grant) = (offered.files.get(name), granted.files.get(name));
        let permission = |access: FileAccess| Permission::Files(Some(name.clone()), access);
        rows.push(Row {
            permission: wanted.or(of_offer.copied()).map(permission),
            revocable: of_offer.copied().map(permission).into_iter().collect(),
            ..Row::new(format!("files /{name}"), &asked, &shown(of_offer), &shown(of_grant))
        });
    }
}

fn http(
    rows: &mut Vec<Row>,
    asked: &[HttpRule],
    is_stated: bool,
    offered: &Policy,
    granted: &Policy,
) {
    let overlap = |rule: &HttpRule, policy: &Policy| {
        let shared: Vec<_> =
            policy.http.iter().filter_map(|grant| rule.intersect(&grant.rule)).collect();
        match shared.as_slice() {
            [] => NO.to_owned(),
            shared if shared.contains(rule) => YES.to_owned(),
            parts => format!(
                "only {}",
                parts.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
            ),
        }
    };
    for rule in asked {
        let own = offered.http.iter().filter(|grant| rule.intersect(&grant.rule).is_some());
        rows.push(Row {
            permission: Some(Permission::Http(rule.clone())),
            revocable: own.map(|grant| Permission::Http(grant.rule.clone())).collect(),
            ..Row::new(
                format!("http {rule}"),
                YES,
                &overlap(rule, offered),
                &overlap(rule, granted),
            )
        });
    }
    for grant in &offered.http {
        if !asked.iter().any(|rule| rule.intersect(&grant.rule).is_some()) {
            let permission = Permission::Http(grant.rule.clone());
            let (asked, granted) = if is_stated { (NO, NO) } else { (ANY, YES) };
            rows.push(Row {
                permission: Some(permission.clone()),
                revocable: vec![permission],
                ..Row::new(format!("http {}", grant.rule), asked, YES, granted)
            });
        }
    }
}

fn names(
    rows: &mut Vec<Row>,
    is_stated: bool,
    kind: &str,
    asked: &BTreeSet<String>,
    offered: &BTreeSet<String>,
    granted: &BTreeSet<String>,
) {
    for name in asked.union(offered) {
        let is_in = |set: &BTreeSet<String>| if set.contains(name) { YES } else { NO };
        let of_ask = if is_stated { is_in(asked) } else { ANY };
        let word = if kind == "environment" { "env" } else { kind };
        let permission = format!("{word}:{name}").parse::<Permission>().ok();
        let is_offered = |_: &Permission| offered.contains(name);
        rows.push(Row {
            revocable: permission.clone().filter(is_offered).into_iter().collect(),
            permission,
            ..Row::new(format!("{kind} {name}"), of_ask, is_in(offered), is_in(granted))
        });
    }
}

/// Adds the limits that the plugin requests, and always those of memory and time.
fn limits(rows: &mut Vec<Row>, asked: &RequestedPermissions, offered: &Policy, granted: &Policy) {
    let asked = match asked {
        RequestedPermissions::Stated(permissions) => permissions.limits.entries(),
        RequestedPermissions::UnstatedWithin(limits) => limits.entries(),
        RequestedPermissions::Unstated => Vec::new(),
    };
    let all = |policy: &Policy| serde_json::to_value(&policy.limits).unwrap_or_default();
    let (offered, granted) = (all(offered), all(granted));
    let shown = |limits: &Value, key: &str| match limits.get(key) {
        None | Some(Value::Null) => "none".to_owned(),
        Some(value) => value.to_string(),
    };
    for key in ["memory-bytes-max", "wall-ms-max"] {
        if !asked.iter().any(|(name, _)| *name == key) {
            let row = |limits| shown(limits, key);
            rows.push(Row::new(format!("limit {key}"), NO, &row(&offered), &row(&granted)));
        }
    }
    for (key, value) in asked {
        let (of_offer, of_grant) = (shown(&offered, key), shown(&granted, key));
        rows.push(Row::new(format!("limit {key}"), &value, &of_offer, &of_grant));
    }
}

/// Formats rows as text with a heading.
pub fn text(rows: &[Row]) -> String {
    let heading = Row::new(String::new(), "asked", "offered", "granted");
    let lines: Vec<_> = std::iter::once(&heading).chain(rows).collect();
    let width = |column: fn(&Row) -> &str| {
        lines.iter().map(|row| column(row).chars().count()).max().unwrap_or(0)
    };
    let (what, asked, offered) = (width(|r| &r.what), width(|r| &r.asked), width(|r| &r.offered));
    let line = |row: &&Row| {
        let line = format!(
            "{:what$}  {:asked$}  {:offered$}  {}",
            row.what, row.asked, row.offered, row.granted
        );
        line.trim_end().to_owned()
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Formats rows as JSON.
pub fn json(rows: &[Row]) -> Value {
    let row = |row: &Row| json!({"what": row.what, "asked": row.asked, "offered": row.offered, "granted": row.granted});
    rows.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use cofferdam_tool::MountName;
    use cofferdam_tool::permission::HttpGrant;

    use super::*;

    #[test]
    fn the_three_columns_show_what_is_missing() {
        let rule = |text: &str| text.parse::<HttpRule>().unwrap();
        let asked = Permissions {
            files: [(MountName::new("notes").unwrap(), FileAccess::ReadWrite)].into(),
            http: vec![rule("https://a.example/"), rule("https://b.example/")],
            env: ["LANG".to_owned()].into(),
            ..Permissions::default()
        };
        let offered = Policy {
            files: [(MountName::new("notes").unwrap(), FileAccess::ReadOnly)].into(),
            http: vec![
                HttpGrant::from(rule("GET https://a.example/")),
                HttpGrant::from(rule("https://c.example/")),
            ],
            ..Policy::default()
        };
        let asked = RequestedPermissions::Stated(Box::new(asked));
        let granted = asked.granted_of(&offered).policy;
        let text = text(&compare(&asked, &offered, &granted));
        insta::assert_snapshot!(text, @"
                                 asked       offered                      granted
        files /notes             read-write  read-only                    read-only
        http https://a.example/  yes         only GET https://a.example/  only GET https://a.example/
        http https://b.example/  yes         -                            -
        http https://c.example/  -           yes                          -
        environment LANG         yes         -                            -
        clock                    coarse      coarse                       coarse
        random numbers           yes         yes                          yes
        limit memory-bytes-max   -           67108864                     67108864
        limit wall-ms-max        -           30000                        30000
        ");
    }
}
