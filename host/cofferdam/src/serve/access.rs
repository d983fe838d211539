//! Access over HTTP, from the command line and the configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::Context as _;
use cofferdam_mcp::{Access, HttpOptions, OAuth, Rate, SubjectAccess, TokenAccess};
use cofferdam_tool::pattern::ToolPattern;
use data_encoding::HEXLOWER_PERMISSIVE;
use sha2::{Digest, Sha256};

use crate::config::{ConfigFile, OAuthTable, ServeTable};
use crate::{Error, Operator, directories};

/// Callers that an HTTP endpoint accepts in addition to those of the configuration.
#[derive(Debug, Clone, Default)]
pub struct HttpAccess {
    /// Configuration file.
    pub config: Option<PathBuf>,
    /// File with the bearer token of the operator, which is created if it is missing. If the
    /// configuration names no callers, the default is a file in the user's state directory.
    pub token_file: Option<PathBuf>,
    /// True if every program on this machine may call without a token.
    pub is_open: bool,
}

impl HttpAccess {
    /// Returns the options of the endpoint. If no other caller is accepted, creates the operator's
    /// token and shows it in a note.
    ///
    /// # Errors
    /// Returns an error if the configuration is invalid, or if the token cannot be read or created.
    pub fn options(&self, operator: &Operator) -> crate::Result<HttpOptions> {
        http_options(self, operator)
    }
}

fn http_options(access_options: &HttpAccess, operator: &Operator) -> crate::Result<HttpOptions> {
    let file = access_options.config.as_deref().map(ConfigFile::read_ambient).transpose()?;
    let mut options = file.as_ref().map(of_config).transpose()?.unwrap_or_default();
    if access_options.is_open {
        if !options.access.tokens.is_empty() || options.access.oauth.is_some() {
            let message = "an endpoint without authentication admits every client, and `tokens` or `oauth` in [serve] of \
                           the configuration limit who may connect; leave one of them out";
            return Err(Error::invalid(message));
        }
        options.access.is_open = true;
    } else if access_options.token_file.is_some()
        || (options.access.tokens.is_empty() && options.access.oauth.is_none())
    {
        options.access.tokens.push(own_token(access_options, operator)?);
    }
    Ok(options)
}

/// Returns the token of the user who started the server.
fn own_token(access: &HttpAccess, operator: &Operator) -> crate::Result<TokenAccess> {
    let path = match &access.token_file {
        Some(path) => path.clone(),
        None => default_token_file()?,
    };
    let token = cofferdam_mcp::read_or_create(&path)
        .map_err(|error| Error::Invalid(format!("the token file {}: {error}", path.display())))?;
    if token.is_new {
        operator.note(&format!(
            "token (shown once; it is stored in {}):\n  {}",
            path.display(),
            token.token
        ));
    } else {
        operator.note(&format!("clients need the token in {}", path.display()));
    }
    let sha256 = Sha256::digest(token.token.as_bytes()).into();
    Ok(TokenAccess { name: "owner".to_owned(), sha256, sources: None, tools: None, decides: true })
}

/// Returns the options that a configuration has for the endpoint.
///
/// # Errors
/// Returns an error if one of them is invalid.
pub(crate) fn of_config(file: &ConfigFile) -> crate::Result<HttpOptions> {
    let table = &file.config.serve;
    let mut options = HttpOptions {
        hosts: table.hosts.clone(),
        origins: origins(file, table)?,
        access: access(file, table)?,
        ..HttpOptions::default()
    };
    if let Some(rate) = &table.rate {
        let rate_table = rate.get_ref();
        if !(rate_table.per_second > 0.0 && rate_table.burst >= 1.0) {
            let message = "`per-second` must be above 0 and `burst` at least 1";
            return Err(file.error(rate.span(), message).into());
        }
        options.rate = Rate { per_second: rate_table.per_second, burst: rate_table.burst };
    }
    Ok(options)
}

fn default_token_file() -> crate::Result<PathBuf> {
    let directory =
        directories::state().context("there is no default file for the token, so name one")?;
    directories::make_private(&directory).context("the directory for the token cannot be made")?;
    Ok(directory.join("http-token"))
}

fn access(file: &ConfigFile, table: &ServeTable) -> crate::Result<Access> {
    let mut tokens = Vec::new();
    for (name, token) in &table.tokens {
        let digest = token.digest.get_ref().strip_prefix("sha256:").and_then(bytes);
        let Some(sha256) = digest else {
            let message = "write `sha256:` and the 64 hexadecimal digits of the token's SHA-256, as `cofferdam mcp token` \
                           prints it; do not write a token itself into this file";
            return Err(file.error(token.digest.span(), message).into());
        };
        let (name, sources) = (format!("token:{name}"), token.sources.clone());
        let pattern = |tool: &toml::Spanned<String>| {
            ToolPattern::new(tool.get_ref())
                .map_err(|error| file.error(tool.span(), error.to_string()))
        };
        let tools =
            token.tools.as_ref().map(|tools| tools.iter().map(pattern).collect()).transpose()?;
        tokens.push(TokenAccess { name, sha256, sources, tools, decides: false });
    }
    let oauth = table.oauth.as_ref().map(|oauth| self::oauth(oauth.get_ref()));
    Ok(Access { tokens, oauth, is_open: false })
}

fn oauth(table: &OAuthTable) -> OAuth {
    let subjects: BTreeMap<_, _> = table
        .subjects
        .iter()
        .map(|(subject, sources)| (subject.clone(), SubjectAccess(Some(sources.clone()))))
        .collect();
    OAuth {
        issuer: table.issuer.clone(),
        resource: table.resource.clone(),
        keys: table.keys.clone(),
        scopes: table.scopes.clone(),
        subjects,
        others: SubjectAccess(Some(table.sources.clone())),
    }
}

/// Returns the allowed origins with a port. Browsers omit the default port, but the comparison
/// needs one.
fn origins(file: &ConfigFile, table: &ServeTable) -> crate::Result<Vec<String>> {
    let origin = |text: &toml::Spanned<String>| {
        let url = url::Url::parse(text.get_ref()).ok();
        let whole = url.as_ref().and_then(|url| {
            let (host, port) = (url.host_str()?, url.port_or_known_default()?);
            (url.path() == "/").then(|| format!("{}://{host}:{port}", url.scheme()))
        });
        whole.ok_or_else(|| {
            file.error(text.span(), "write an origin such as https://app.example.com").into()
        })
    };
    table.origins.iter().map(origin).collect()
}

/// Decodes 64 hexadecimal digits.
fn bytes(hex: &str) -> Option<[u8; 32]> {
    HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).ok()?.try_into().ok()
}
