//! `[servers.NAME]`: remote MCP servers whose tools are used like those of plugins.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use cofferdam_mcp::client::{Always, ApprovalMode, Extras, Generation, SelectionMode, TaskOptions};
use cofferdam_tool::permission::BoundHeader;
use serde::Deserialize;
use toml::{Spanned, Value};

use super::grants::{SpannedMessage, ValueSource, named, source};

/// Headers that the protocol sets itself, beside those that begin with `mcp-`.
const PROTOCOL_HEADERS: [&str; 3] = ["accept", "content-type", "last-event-id"];

/// Table of a server: either `command` or `url`, and the related settings.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a table")]
pub struct ServerTable {
    /// Program to start, and its arguments.
    pub command: Option<Spanned<Vec<String>>>,
    /// Environment variables of the program, beside those that are inherited to find and start
    /// programs.
    pub env: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// Working directory of the program.
    pub directory: Option<Spanned<PathBuf>>,
    /// Address of a server that speaks HTTP.
    pub(crate) url: Option<Spanned<String>>,
    /// Headers of every request.
    pub headers: BTreeMap<Spanned<String>, Spanned<Value>>,
    /// OAuth settings, used when the server asks for authorization.
    pub oauth: Option<Spanned<ServerOAuthTable>>,
    /// Tools to use, by the server's own names; all if omitted.
    pub tools: Option<Vec<String>>,
    /// Prefix of the tools' names.
    pub(crate) prefix: Option<String>,
    /// True if prompts are offered as tools.
    pub(crate) prompts: bool,
    /// Revision of the protocol to speak.
    protocol: Protocol,
    /// True if a change of the server's statements needs consent.
    pub(crate) pin: bool,
    /// True if the server may ask the caller questions.
    pub ask: bool,
    /// Tools that need the user's approval.
    approval: Option<Spanned<Value>>,
    /// Arguments that are sent although the server does not declare them.
    extras: Option<Spanned<Value>>,
    /// Part of a result to use.
    result: ResultSelection,
    /// Options of tasks.
    tasks: Option<Spanned<TasksTable>>,
    /// Time limits of the server.
    pub limits: ServerLimits,
}

/// Time to wait for a task if the configuration does not say. A server can turn any call into a
/// task, so that a call would have no limit otherwise.
const TASK_WAIT_DEFAULT: Duration = Duration::from_hours(1);

/// `[servers.NAME.oauth]`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a table")]
pub struct ServerOAuthTable {
    /// Issuer of the authorization server at which the client is registered.
    pub(crate) issuer: Option<String>,
    /// Client id that was registered with the authorization server beforehand.
    pub(crate) client_id: Option<String>,
    /// Secret of the client id.
    client_secret: Option<Spanned<Value>>,
    /// URL of the client's metadata document.
    pub(crate) client_metadata: Option<String>,
    /// True if the host authorizes as itself, without the operator.
    pub machine: bool,
    /// Scopes to request in addition to those that the server names.
    pub(crate) scopes: Vec<String>,
    /// True if authorization servers may be at private addresses.
    pub(crate) private_addresses: bool,
}

/// `[servers.NAME.limits]`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a table")]
pub struct ServerLimits {
    /// Maximum milliseconds until the connection is made and the tools are listed. A package runner
    /// may have to download a program first.
    pub(crate) connect_ms_max: u64,
    /// Maximum milliseconds of one call.
    pub wall_ms_max: u64,
}

/// `[servers.NAME.tasks]` (`MCP-22`), in seconds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a table")]
struct TasksTable {
    default_ttl: Option<f64>,
    max_task_wait: Option<f64>,
    cancel_remote_task_on_local_cancellation: bool,
}

/// `result` (`MCP-17`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ResultSelection {
    #[default]
    StructuredFirst,
    ContentFirst,
    Both,
    ContentOnly,
    StructuredOnly,
}

/// `protocol`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
enum Protocol {
    /// Latest revision that both sides support.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// Revisions with a handshake, up to this one.
    #[serde(rename = "2025-11-25")]
    Handshake,
    /// Revision without a handshake.
    #[serde(rename = "2026-07-28")]
    Stateless,
}

/// Source of a header's value.
#[derive(Debug)]
pub enum HeaderSource {
    /// String with placeholders for secrets: `Bearer ${secret:NAME}`.
    Text(BoundHeader),
    /// Name of the header, and the source of its complete value.
    Whole(String, ValueSource),
}

impl Default for ServerTable {
    fn default() -> Self {
        Self {
            command: None,
            env: BTreeMap::new(),
            directory: None,
            url: None,
            headers: BTreeMap::new(),
            oauth: None,
            tools: None,
            prefix: None,
            prompts: true,
            protocol: Protocol::default(),
            pin: true,
            ask: true,
            approval: None,
            extras: None,
            result: ResultSelection::default(),
            tasks: None,
            limits: ServerLimits::default(),
        }
    }
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self { connect_ms_max: 30_000, wall_ms_max: 600_000 }
    }
}

impl Default for TasksTable {
    fn default() -> Self {
        Self {
            default_ttl: None,
            max_task_wait: None,
            cancel_remote_task_on_local_cancellation: true,
        }
    }
}

impl ServerTable {
    /// Returns the configured environment variables.
    pub(crate) fn env(&self) -> Result<BTreeMap<String, ValueSource>, SpannedMessage> {
        self.env.iter().map(|(name, value)| Ok((named("env", name)?, source(value)?))).collect()
    }

    /// Returns the configured headers.
    pub(crate) fn headers(&self) -> Result<Vec<(HeaderSource, Range<usize>)>, SpannedMessage> {
        self.headers.iter().map(|(name, value)| Ok((header(name, value)?, value.span()))).collect()
    }

    /// Returns the tools that need approval (`MCP-13`).
    pub(crate) fn approval(&self) -> Result<ApprovalMode, SpannedMessage> {
        let Some(written) = &self.approval else { return Ok(ApprovalMode::default()) };
        let form = "write \"always\", \"never\", or lists of names: \
            { always = [\"delete\"], never = [\"read\"] }";
        let wrong = || (written.span(), form.to_owned());
        let table = match written.get_ref() {
            Value::String(mode) if mode == "always" => {
                return Ok(ApprovalMode::All(Always::AlwaysRequire));
            }
            Value::String(mode) if mode == "never" => {
                return Ok(ApprovalMode::All(Always::NeverRequire));
            }
            Value::Table(table) => table,
            _ => return Err(wrong()),
        };
        if table.keys().any(|key| !matches!(key.as_str(), "always" | "never")) {
            return Err(wrong());
        }
        let names = |key: &str| match table.get(key) {
            None => Ok(Vec::new()),
            Some(names) => names.clone().try_into().map_err(|_| wrong()),
        };
        Ok(ApprovalMode::Lists {
            always_require_approval: names("always")?,
            never_require_approval: names("never")?,
        })
    }

    /// Returns the arguments that are sent although the server does not declare them (`MCP-5`).
    pub(crate) fn extras(&self) -> Result<Extras, SpannedMessage> {
        let Some(written) = &self.extras else { return Ok(Extras::default()) };
        written.get_ref().clone().try_into().map_err(|_| {
            let form =
                "write a name, a list of names, or a table from a tool's name (or \"*\" for all) \
                 to either";
            (written.span(), form.to_owned())
        })
    }

    /// Returns the options of tasks.
    pub(crate) fn tasks(&self) -> Result<TaskOptions, SpannedMessage> {
        let Some(written) = &self.tasks else {
            return Ok(TaskOptions::default().with_max_task_wait(TASK_WAIT_DEFAULT));
        };
        let table = written.get_ref();
        let cancels = table.cancel_remote_task_on_local_cancellation;
        let wait = table.max_task_wait.unwrap_or(TASK_WAIT_DEFAULT.as_secs_f64());
        let options = TaskOptions::new(table.default_ttl, Some(wait), cancels);
        options.map_err(|error| (written.span(), error.to_string()))
    }

    /// Returns the generation of the protocol to speak.
    pub(crate) fn generation(&self) -> Generation {
        match self.protocol {
            Protocol::Auto => Generation::Auto,
            Protocol::Handshake => Generation::Handshake,
            Protocol::Stateless => Generation::Stateless,
        }
    }

    /// Returns the part of a result to use.
    pub(crate) fn selection(&self) -> SelectionMode {
        match self.result {
            ResultSelection::StructuredFirst => SelectionMode::StructuredFirst,
            ResultSelection::ContentFirst => SelectionMode::ContentFirst,
            ResultSelection::Both => SelectionMode::Both,
            ResultSelection::ContentOnly => SelectionMode::ContentOnly,
            ResultSelection::StructuredOnly => SelectionMode::StructuredOnly,
        }
    }

    /// Returns the sources of all values: variables, headers, and the OAuth client secret.
    pub fn sources(&self) -> Result<Vec<ValueSource>, SpannedMessage> {
        let headers = self.headers()?.into_iter().filter_map(|(header, _)| match header {
            HeaderSource::Whole(_, source) => Some(source),
            HeaderSource::Text(_) => None,
        });
        let oauth =
            self.oauth.as_ref().map_or(Ok(None), |oauth| oauth.get_ref().client_secret())?;
        Ok(self.env()?.into_values().chain(headers).chain(oauth).collect())
    }
}

impl ServerOAuthTable {
    /// Returns the source of the client secret. The secret itself must not be in the file.
    pub(crate) fn client_secret(&self) -> Result<Option<ValueSource>, SpannedMessage> {
        let Some(written) = &self.client_secret else { return Ok(None) };
        match source(written)? {
            ValueSource::Literal(_) => Err((
                written.span(),
                "write { secret = \"NAME\" } or { env = \"NAME\" }".to_owned(),
            )),
            source => Ok(Some(source)),
        }
    }
}

fn header(name: &Spanned<String>, value: &Spanned<Value>) -> Result<HeaderSource, SpannedMessage> {
    let bound = |text: &str, span: Range<usize>| {
        let bound = format!("{}: {text}", name.get_ref()).parse::<BoundHeader>();
        bound.map_err(|error| (span, format!("the header `{}` {error}", name.get_ref())))
    };
    let checked = bound("", name.span())?.name;
    if checked.starts_with("mcp-") || PROTOCOL_HEADERS.contains(&checked.as_str()) {
        return Err((name.span(), format!("the header `{checked}` is set by the protocol")));
    }
    match source(value)? {
        ValueSource::Literal(text) => Ok(HeaderSource::Text(bound(&text, value.span())?)),
        whole => Ok(HeaderSource::Whole(checked, whole)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Result<ServerTable, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn a_server_about_which_nothing_is_said_has_these_settings() {
        let table = table("url = \"https://a.example/mcp\"").unwrap();
        assert_eq!((table.limits.connect_ms_max, table.limits.wall_ms_max), (30_000, 600_000));
        assert!(table.prompts && table.ask && table.tools.is_none() && table.prefix.is_none());
        assert_eq!(table.approval().unwrap(), ApprovalMode::default());
        assert_eq!(table.extras().unwrap(), Extras::default());
        let hour = Duration::from_hours(1);
        assert_eq!(table.tasks().unwrap(), TaskOptions::default().with_max_task_wait(hour));
        assert_eq!(table.selection(), SelectionMode::default());
    }

    #[test]
    fn all_forms_are_read() {
        let table = table(
            r#"
            env = { LANG = "de", TOKEN = { secret = "token" } }
            headers = { Authorization = "Bearer ${secret:token}", X-Team = { env = "TEAM" } }
            approval = { always = ["delete"] }
            extras = { "*" = "tenant", search = ["limit"] }
            result = "both"
            tasks = { default-ttl = 60, max-task-wait = 1.5 }
            oauth = { client-id = "a", client-secret = { secret = "b" }, machine = true }
            "#,
        )
        .unwrap();
        assert_eq!(table.env().unwrap()["TOKEN"], ValueSource::Secret("token".to_owned()));
        let headers = table.headers().unwrap();
        assert!(
            matches!(&headers[0].0, HeaderSource::Text(header) if header.name == "authorization")
        );
        assert!(
            matches!(&headers[1].0, HeaderSource::Whole(name, ValueSource::Env(_)) if name == "x-team")
        );
        assert!(table.approval().unwrap().requires(&["delete"]));
        assert!(
            table.extras().unwrap().has("any", "tenant")
                && !table.extras().unwrap().has("any", "limit")
        );
        assert_eq!(table.selection(), SelectionMode::Both);
        assert_eq!(table.tasks().unwrap().max_task_wait().unwrap().as_millis(), 1500);
        let sources = table.sources().unwrap();
        assert!(sources.contains(&ValueSource::Secret("b".to_owned())), "{sources:?}");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let found = |text: &str| {
            let table = table(text)?;
            let checks = [
                table.sources().err(),
                table.approval().err(),
                table.extras().err(),
                table.tasks().err(),
            ];
            checks.into_iter().flatten().next().map_or(Ok(()), |(_, message)| Err(message))
        };
        for (text, message) in [
            ("urls = 1", "unknown field `urls`"),
            ("result = \"all\"", "unknown variant `all`"),
            ("approval = \"sometimes\"", "write \"always\""),
            ("approval = { allways = [] }", "write \"always\""),
            ("extras = 1", "write a name"),
            ("tasks = { default-ttl = 0 }", "default_ttl must be greater than zero."),
            ("headers = { Host = \"a\" }", "the header `Host` "),
            (
                "headers = { Mcp-Session-Id = \"a\" }",
                "the header `mcp-session-id` is set by the protocol",
            ),
            ("headers = { A = \"${secret}\" }", "the header `A` "),
            ("env = { \"A=B\" = \"x\" }", ""),
            ("oauth = { client-secret = \"x\" }", "write { secret"),
        ] {
            let error = found(text).unwrap_err();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }
}
