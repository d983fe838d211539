//! Converts `[servers.NAME]` to the settings of a connection. Checks every value and every
//! reference.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cofferdam_mcp::client::{
    Admission, HttpEndpoint, INHERITED, InvalidEndpoint, ServerEndpoint, ServerSettings,
    StdioCommand,
};
use cofferdam_tool::PluginName;
use cofferdam_tool::permission::SecretText;
use cofferdam_tool::redact::Redactor;
use http::{HeaderName, HeaderValue};

use super::authorization;
use super::pins::ServerPins;
use crate::Operator;
use crate::config::{ConfigError, ConfigFile, HeaderSource, ServerTable, SpannedMessage};
use crate::granting::{ValueReader, Values};

/// Extensions of files that interpreters run.
const SCRIPT_EXTENSIONS: [&str; 18] = [
    "bat", "cjs", "cmd", "exe", "jar", "js", "lua", "mjs", "mts", "php", "pl", "ps1", "py", "pyz",
    "rb", "sh", "ts", "wasm",
];

/// A selected server before it is connected.
#[derive(Clone)]
pub struct ServerSpec {
    /// Settings of the connection.
    pub settings: ServerSettings,
    /// Table of the configuration, to detect changes.
    pub table: ServerTable,
    /// Pins of the server; `None` with `pin = false`.
    pub pins: Option<Arc<ServerPins>>,
}

impl ServerSpec {
    /// Returns the name of the server.
    pub fn name(&self) -> &str {
        &self.settings.name
    }
}

/// Returns the servers of a configuration.
pub fn of_config(
    file: &ConfigFile,
    values: Values,
    operator: &Operator,
) -> crate::Result<Vec<ServerSpec>> {
    file.config.servers.keys().map(|name| of_name(file, name, values, operator)).collect()
}

/// Returns one server of a configuration.
///
/// # Errors
/// Returns an error if the configuration has no such server, or if its table is invalid.
pub fn of_name(
    file: &ConfigFile,
    name: &str,
    values: Values,
    operator: &Operator,
) -> crate::Result<ServerSpec> {
    let table = file.config.servers.get(name).ok_or_else(|| unknown(file, name))?;
    let header = format!("[servers.{name}");
    let in_table =
        |message: String| file.error_in_table(&header, format!("server `{name}`: {message}"));
    PluginName::new(name).map_err(|error| in_table(error.to_string()))?;
    if file.config.plugins.contains_key(name) {
        return Err(in_table("a plugin has this name already".to_owned()).into());
    }
    if table.limits.connect_ms_max == 0 || table.limits.wall_ms_max == 0 {
        return Err(in_table("a limit of 0 lets no call succeed".to_owned()).into());
    }
    let wrong = |(span, message): SpannedMessage| file.error(span, message);
    let mut reader = ValueReader::new(file, "servers", name, values);
    let endpoint = match (&table.command, &table.url) {
        (Some(_), None) => ServerEndpoint::Command(command(file, table, &mut reader)?),
        (None, Some(_)) => ServerEndpoint::Http(http(file, name, table, &mut reader, operator)?),
        _ => return Err(in_table("write either `command` or `url`".to_owned()).into()),
    };
    let mut settings = ServerSettings::new(name, endpoint);
    settings.admission =
        Admission { allowed_tools: table.tools.clone(), prefix: table.prefix.clone() };
    settings.approval = table.approval().map_err(wrong)?;
    settings.extras = table.extras().map_err(wrong)?;
    settings.tasks = table.tasks().map_err(wrong)?;
    settings.selection = table.selection();
    settings.loads_prompts = table.prompts;
    settings.generation = table.generation();
    settings.may_elicit = table.ask;
    settings.call_wait = Duration::from_millis(table.limits.wall_ms_max);
    settings.connect_wait = Duration::from_millis(table.limits.connect_ms_max);
    if values == Values::Read {
        let secrets = reader.secrets().iter().map(|(name, value)| (name.as_str(), value));
        let redactor = Redactor::new(secrets).map_err(|error| in_table(error.to_string()))?;
        settings.redactor = Some(Arc::new(redactor));
    }
    let pins = table.pin.then(|| Arc::new(ServerPins::new(name, &file.path, operator)));
    settings.review = pins.clone().map(|pins| pins as _);
    Ok(ServerSpec { settings, table: table.clone(), pins })
}

/// Returns the command of a server, with the inherited and the configured environment variables.
fn command(
    file: &ConfigFile,
    table: &ServerTable,
    reader: &mut ValueReader<'_>,
) -> crate::Result<StdioCommand> {
    if let Some((name, _)) = table.headers.iter().next() {
        return Err(file.error(name.span(), "a program gets no headers; use `env`").into());
    }
    if let Some(oauth) = &table.oauth {
        return Err(file.error(oauth.span(), "OAuth is for a server with a `url`").into());
    }
    let Some(written) = &table.command else { return Ok(StdioCommand::default()) };
    let Some((program, arguments)) =
        written.get_ref().split_first().filter(|(first, _)| !first.is_empty())
    else {
        let message = "write the program and its arguments: [\"program\", \"argument\"]";
        return Err(file.error(written.span(), message).into());
    };
    let inherited =
        INHERITED.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
    let mut env: BTreeMap<String, String> = inherited.collect();
    let configured = table.env().map_err(|(span, message)| file.error(span, message))?;
    let configured = reader.all(&configured)?;
    env.extend(configured.into_iter().map(|(name, value)| (name, value.expose().to_owned())));
    Ok(StdioCommand {
        program: program_of(file, program),
        arguments: arguments.to_vec(),
        env: env.into_iter().collect(),
        directory: table.directory.as_ref().map(|path| absolute(&file.resolve(path.as_ref()))),
    })
}

/// Returns the path of a program. A name with a `/` is relative to the file; any other is found
/// through `PATH`.
fn program_of(file: &ConfigFile, program: &str) -> String {
    if program.contains('/') {
        absolute(&file.resolve(Path::new(program))).display().to_string()
    } else {
        program.to_owned()
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn http(
    file: &ConfigFile,
    name: &str,
    table: &ServerTable,
    reader: &mut ValueReader<'_>,
    operator: &Operator,
) -> crate::Result<HttpEndpoint> {
    if let Some((name, _)) = table.env.iter().next() {
        return Err(file
            .error(name.span(), "`env` is for a server with a `command`; use `headers`")
            .into());
    }
    if let Some(directory) = &table.directory {
        return Err(file
            .error(directory.span(), "`directory` is for a server with a `command`")
            .into());
    }
    let (url, span) =
        table.url.as_ref().map(|url| (url.get_ref().as_str(), url.span())).unwrap_or_default();
    let invalid = |error: InvalidEndpoint| file.error(span.clone(), error.to_string());
    let mut endpoint = HttpEndpoint::new(url).map_err(invalid)?;
    let headers = headers(file, table, reader)?;
    if !headers.is_empty() {
        endpoint = endpoint.with_headers(headers).map_err(invalid)?;
    }
    if let Some(oauth) = &table.oauth {
        let oauth = authorization::settings(file, name, oauth, reader, operator)?;
        endpoint = endpoint.with_oauth(oauth).map_err(invalid)?;
    }
    Ok(endpoint)
}

fn headers(
    file: &ConfigFile,
    table: &ServerTable,
    reader: &mut ValueReader<'_>,
) -> crate::Result<Vec<(HeaderName, HeaderValue)>> {
    let mut headers = Vec::new();
    for (header, span) in table.headers().map_err(|(span, message)| file.error(span, message))? {
        let (name, value) = match &header {
            HeaderSource::Whole(name, source) => (name, reader.value(source)?),
            HeaderSource::Text(bound) => {
                for secret in bound.value.secrets() {
                    reader.secret(secret)?;
                }
                // Secrets that were not read are missing in the reader, and replaced by an empty
                // string.
                let known = |name: &str| {
                    Some(reader.secrets().get(name).cloned().unwrap_or_else(|| SecretText::new("")))
                };
                let filled = bound.value.fill(known);
                let unknown =
                    |name: &str| file.error(span.clone(), format!("there is no secret `{name}`"));
                (&bound.name, filled.map_err(unknown)?)
            }
        };
        // The value may be a secret, so the message gives only its position.
        let wrong = || {
            file.error(
                span.clone(),
                format!("the header `{name}` has characters that no header has"),
            )
        };
        let parsed = HeaderName::try_from(name.as_str())
            .ok()
            .zip(HeaderValue::from_str(value.expose()).ok());
        headers.push(parsed.ok_or_else(wrong)?);
    }
    Ok(headers)
}

/// Returns the files and directories that control what the servers of a configuration do. A plugin
/// that can write one of them could run any program. Scripts need not exist yet.
pub fn deciding_files(file: &ConfigFile) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for table in file.config.servers.values() {
        let Some((program, arguments)) =
            table.command.as_ref().and_then(|line| line.get_ref().split_first())
        else {
            continue;
        };
        if program.contains('/') {
            files.push(file.resolve(Path::new(program)));
        }
        let directory = table.directory.as_ref().map(|path| file.resolve(path.as_ref()));
        let at = directory.clone().unwrap_or_default();
        let is_file = |path: &PathBuf| path.is_file() || (!path.exists() && is_script(path));
        files.extend(arguments.iter().map(|argument| at.join(argument)).filter(is_file));
        files.extend(directory);
    }
    files
}

/// Returns whether the extension of a file is that of a script or program.
fn is_script(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    SCRIPT_EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// Returns an error about a server that the configuration does not have.
pub fn unknown(file: &ConfigFile, name: &str) -> ConfigError {
    let known: Vec<_> = file.config.servers.keys().map(|name| format!("`{name}`")).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    file.error_in_table(
        "[servers",
        format!("there is no server `{name}`; servers of this file: {known}"),
    )
}
