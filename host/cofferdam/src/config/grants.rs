//! `[grants]` and `[plugins.NAME.grants]`: permissions that the operator offers.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;
use std::str::FromStr;

use cofferdam_tool::permission::{AddressRange, BoundHeader, ClockPrecision, HttpGrant, HttpRule};
use cofferdam_tool::{FileAccess, MountName, Permission, Policy, ToolName};
use serde::Deserialize;
use toml::{Spanned, Value};

/// Table of grants. Those of a plugin are added to those of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a table")]
pub struct GrantsTable {
    /// Access to stores by name. The plugin sees a store as `/<store>`.
    files: BTreeMap<String, Spanned<FileAccess>>,
    /// HTTP requests: rules, or tables with addresses and headers.
    http: Vec<Spanned<Value>>,
    /// Socket connections.
    sockets: Vec<Spanned<String>>,
    /// Environment variables, with the sources of their values.
    env: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// Configuration values, with their sources.
    config: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// Secrets that the guest may read.
    secrets: Vec<Spanned<String>>,
    /// Precision of the guest's clock.
    clock: Option<ClockPrecision>,
    /// True if the guest may draw random numbers.
    random: Option<bool>,
    /// Tools that the guest may call.
    tools: Vec<Spanned<String>>,
    /// Questions that the guest may ask the caller.
    ask: Vec<Spanned<String>>,
}

/// Source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueSource {
    /// Literal value in the file.
    Literal(String),
    /// Environment variable of the host.
    Env(String),
    /// Name of a secret.
    Secret(String),
}

/// Grants of one plugin: its policy, and the sources of its values.
#[derive(Debug, Default)]
pub struct OfferedGrants {
    /// Offered policy. The caller sets its limits.
    pub(crate) policy: Policy,
    /// Position of each store in the file, for error messages.
    pub(crate) files_at: BTreeMap<MountName, Range<usize>>,
    /// Environment variables.
    pub env: BTreeMap<String, ValueSource>,
    /// Configuration values.
    pub config: BTreeMap<String, ValueSource>,
}

/// Error with its position in the file.
pub type SpannedMessage = (Range<usize>, String);

impl GrantsTable {
    /// Returns whether plugins may change something in a store.
    pub(crate) fn may_write(&self, store: &str) -> bool {
        self.files.get(store).is_some_and(|access| *access.get_ref() != FileAccess::ReadOnly)
    }

    /// Returns whether plugins may read something in a store.
    pub(crate) fn names_store(&self, store: &str) -> bool {
        self.files.contains_key(store)
    }

    /// Adds these grants to `offered`. Replaces an earlier grant of the same name.
    pub fn add_to(&self, offered: &mut OfferedGrants) -> Result<(), SpannedMessage> {
        for (store, access) in &self.files {
            let name = MountName::new(store.as_str())
                .map_err(|error| (access.span(), error.to_string()))?;
            offered.files_at.insert(name.clone(), access.span());
            offered.policy.files.insert(name, *access.get_ref());
        }
        for entry in &self.http {
            offered.policy.http.push(http(entry)?);
        }
        for rule in &self.sockets {
            offered.policy.sockets.insert(parsed(rule.get_ref(), &rule.span())?);
        }
        for name in &self.secrets {
            offered.policy.secrets.insert(named("secret", name)?);
        }
        for tool in &self.tools {
            let name = ToolName::new(tool.get_ref().as_str());
            offered.policy.tools.insert(name.map_err(|error| (tool.span(), error.to_string()))?);
        }
        for kind in &self.ask {
            offered.policy.ask.insert(parsed(kind.get_ref(), &kind.span())?);
        }
        for (name, value) in &self.env {
            offered.policy.env.insert(named("env", name)?);
            offered.env.insert(name.get_ref().clone(), source(value)?);
        }
        for (key, value) in &self.config {
            offered.policy.config.insert(named("config", key)?);
            offered.config.insert(key.get_ref().clone(), source(value)?);
        }
        offered.policy.clock = self.clock.unwrap_or(offered.policy.clock);
        offered.policy.random = self.random.unwrap_or(offered.policy.random);
        Ok(())
    }
}

fn parsed<T: FromStr<Err: Display>>(text: &str, span: &Range<usize>) -> Result<T, SpannedMessage> {
    text.parse().map_err(|error| (span.clone(), format!("`{text}` {error}")))
}

/// Returns a name if it is valid for one kind of permission.
pub(super) fn named(kind: &str, name: &Spanned<String>) -> Result<String, SpannedMessage> {
    let permission: Permission = format!("{kind}:{}", name.get_ref()).parse().map_err(
        |error: cofferdam_tool::permission::InvalidPermission| (name.span(), error.to_string()),
    )?;
    match permission {
        Permission::Env(name) | Permission::Config(name) | Permission::Secret(name) => Ok(name),
        _ => Err((name.span(), format!("`{}` is not a name", name.get_ref()))),
    }
}

/// Parses a rule as a string, or as a table with `to`, `addresses` and `headers`.
fn http(entry: &Spanned<Value>) -> Result<HttpGrant, SpannedMessage> {
    let span = entry.span();
    let wrong = |message: String| (span.clone(), message);
    let form = "write a rule such as \"GET https://api.example.com/\", or a table with `to`, \
        `addresses` and `headers`";
    let table = match entry.get_ref() {
        Value::String(rule) => return parsed::<HttpRule>(rule, &span).map(HttpGrant::from),
        Value::Table(table) => table,
        _ => return Err(wrong(form.to_owned())),
    };
    if let Some(unknown) =
        table.keys().find(|key| !matches!(key.as_str(), "to" | "addresses" | "headers"))
    {
        return Err(wrong(format!("unknown key `{unknown}`: {form}")));
    }
    let Some(rule) = table.get("to").and_then(Value::as_str) else {
        return Err(wrong(format!("`to` is missing: {form}")));
    };
    let mut grant = HttpGrant::from(parsed::<HttpRule>(rule, &span)?);
    for address in texts(table, "addresses").map_err(wrong)? {
        grant.addresses.push(parsed::<AddressRange>(address, &span)?);
    }
    for header in texts(table, "headers").map_err(wrong)? {
        grant.headers.push(parsed::<BoundHeader>(header, &span)?);
    }
    Ok(grant)
}

fn texts<'t>(table: &'t toml::Table, key: &str) -> Result<Vec<&'t str>, String> {
    let Some(value) = table.get(key) else { return Ok(Vec::new()) };
    let texts = value.as_array().and_then(|items| items.iter().map(Value::as_str).collect());
    texts.ok_or_else(|| format!("`{key}` is a list of strings"))
}

/// Parses a table of values like those of [`source`].
pub(crate) fn sources(
    values: &BTreeMap<String, Spanned<Value>>,
) -> Result<BTreeMap<String, ValueSource>, SpannedMessage> {
    values.iter().map(|(name, value)| Ok((name.clone(), source(value)?))).collect()
}

/// Parses a string, `{ env = "NAME" }` or `{ secret = "NAME" }`.
pub(super) fn source(value: &Spanned<Value>) -> Result<ValueSource, SpannedMessage> {
    let form =
        || (value.span(), "write a string, { env = \"NAME\" } or { secret = \"NAME\" }".to_owned());
    match value.get_ref() {
        Value::String(text) => Ok(ValueSource::Literal(text.clone())),
        Value::Table(table) if table.len() == 1 => match table.iter().next() {
            Some((kind, Value::String(name))) if kind == "env" => {
                Ok(ValueSource::Env(name.clone()))
            }
            Some((kind, Value::String(name))) if kind == "secret" => {
                Ok(ValueSource::Secret(name.clone()))
            }
            _ => Err(form()),
        },
        _ => Err(form()),
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_tool::ask::QuestionKind;

    use super::*;

    fn offered(text: &str) -> Result<OfferedGrants, String> {
        let table: GrantsTable =
            toml::from_str(text).map_err(|error| error.message().to_owned())?;
        let mut offered = OfferedGrants::default();
        table
            .add_to(&mut offered)
            .map_err(|(span, message)| format!("{}: {message}", span.start))?;
        Ok(offered)
    }

    #[test]
    fn grants_are_read() {
        let offered = offered(
            r#"
            files.notes = "read-only"
            http = [
                "GET https://api.example.com/v1",
                { to = "https://db.internal/", addresses = ["10.0.0.0/8"], headers = ["Authorization: Bearer ${secret:db}"] },
                "http://127.0.0.1:8080/",
            ]
            sockets = ["tcp db.internal:5432"]
            env = { LANG = "de", TOKEN = { secret = "db" }, HOME = { env = "HOME" } }
            secrets = ["db"]
            ask = ["form", "roots"]
            clock = "frozen"
            random = false
            "#,
        )
        .unwrap();
        assert_eq!(offered.policy.files.len(), 1);
        assert_eq!(offered.policy.http[1].addresses[0].to_string(), "10.0.0.0/8");
        assert_eq!(
            offered.policy.http[1].headers[0].to_string(),
            "authorization: Bearer ${secret:db}"
        );
        assert_eq!(offered.policy.http[2].addresses[0].to_string(), "127.0.0.1");
        assert_eq!(offered.env["TOKEN"], ValueSource::Secret("db".to_owned()));
        assert_eq!(offered.policy.clock, ClockPrecision::Frozen);
        assert!(!offered.policy.random);
        assert_eq!(offered.policy.ask, [QuestionKind::Elicitation, QuestionKind::Roots].into());
    }

    #[test]
    fn errors_have_a_line() {
        for (text, message) in [
            ("http = [\"ftp://a.example\"]", "8: `ftp://a.example` has a scheme"),
            ("http = [{ too = \"x\" }]", "8: unknown key `too`"),
            ("http = [{ addresses = [] }]", "8: `to` is missing"),
            (
                "http = [{ to = \"https://a.example\", addresses = [\"10.0.0.1/8\"] }]",
                "8: `10.0.0.1/8` ",
            ),
            (
                "http = [{ to = \"https://a.example\", headers = [\"Host: b\"] }]",
                "8: `Host: b` is a header",
            ),
            ("http = [1]", "8: write a rule"),
            ("env = { A = 1 }", "12: write a string"),
            ("env = { \"A=B\" = \"x\" }", "8: "),
            ("files = { \"a/b\" = \"read-only\" }", "18: "),
            ("ask = [\"forms\"]", "7: `forms` is not a kind of question"),
            ("network = true", "unknown field `network`"),
        ] {
            let found = offered(text).unwrap_err();
            assert!(found.starts_with(message), "{text}: {found}");
        }
    }
}
