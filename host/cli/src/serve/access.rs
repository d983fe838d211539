//! Who may call over HTTP, from the flags and the configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context;
use cofferdam_mcp::{Access, HttpOptions, OAuth, Rate, SubjectAccess, TokenAccess, ToolPattern};
use sha2::{Digest, Sha256};

use crate::args::ServeArgs;
use crate::config::{ConfigFile, OAuthTable, ServeTable};
use crate::exit::UsageError;
use crate::{directories, print};

/// The options of the HTTP endpoint. Makes the token if nothing else lets anybody in, and then shows it.
pub(crate) fn http_options(args: &ServeArgs) -> anyhow::Result<HttpOptions> {
    let file = args.plugins.config.as_deref().map(ConfigFile::read_ambient).transpose()?;
    let mut options = HttpOptions::default();
    if let Some(file) = &file {
        let table = &file.config.serve;
        options.hosts.clone_from(&table.hosts);
        options.origins = origins(file, table)?;
        options.access = access(file, table)?;
        if let Some(rate) = &table.rate {
            let rate_table = rate.get_ref();
            if !(rate_table.per_second > 0.0 && rate_table.burst >= 1.0) {
                let message = "`per-second` must be above 0 and `burst` at least 1";
                return Err(file.error(rate.span(), message).into());
            }
            options.rate = Rate { per_second: rate_table.per_second, burst: rate_table.burst };
        }
    }
    if args.no_auth {
        if !options.access.tokens.is_empty() || options.access.oauth.is_some() {
            let message =
                "--no-auth lets everybody in, and the configuration names who may; leave one of them out";
            return Err(UsageError(message.to_owned()).into());
        }
        options.access.is_open = true;
    } else if args.token_file.is_some()
        || (options.access.tokens.is_empty() && options.access.oauth.is_none())
    {
        options.access.tokens.push(own_token(args)?);
    }
    Ok(options)
}

/// The token of whoever started the server.
fn own_token(args: &ServeArgs) -> anyhow::Result<TokenAccess> {
    let path = match &args.token_file {
        Some(path) => path.clone(),
        None => default_token_file()?,
    };
    let token = cofferdam_mcp::read_or_create(&path)
        .map_err(|error| UsageError(format!("the token file {}: {error}", path.display())))?;
    if token.is_new {
        print::note(&format!("token (shown once; it is kept in {}):\n  {}", path.display(), token.token));
    } else {
        print::note(&format!("clients need the token in {}", path.display()));
    }
    let sha256 = Sha256::digest(token.token.as_bytes()).into();
    Ok(TokenAccess { name: "owner".to_owned(), sha256, sources: None, tools: None, decides: true })
}

fn default_token_file() -> anyhow::Result<PathBuf> {
    let directory = directories::state().context("name a file with --token-file")?;
    directories::make_private(&directory).context("the directory for the token cannot be made")?;
    Ok(directory.join("http-token"))
}

fn access(file: &ConfigFile, table: &ServeTable) -> anyhow::Result<Access> {
    let mut tokens = Vec::new();
    for (name, token) in &table.tokens {
        let digest = token.digest.get_ref().strip_prefix("sha256:").and_then(bytes);
        let Some(sha256) = digest else {
            let message = "write `sha256:` and the 64 hexadecimal digits of the token's SHA-256, as `cofferdam mcp token` \
                           prints it; a token itself has no place in this file";
            return Err(file.error(token.digest.span(), message).into());
        };
        let (name, sources) = (format!("token:{name}"), token.sources.clone());
        let pattern = |tool: &toml::Spanned<String>| {
            ToolPattern::new(tool.get_ref()).map_err(|error| file.error(tool.span(), error.to_string()))
        };
        let tools = token.tools.as_ref().map(|tools| tools.iter().map(pattern).collect()).transpose()?;
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

/// Origins need a port to compare: browsers leave out the usual one.
fn origins(file: &ConfigFile, table: &ServeTable) -> anyhow::Result<Vec<String>> {
    let origin = |text: &toml::Spanned<String>| {
        let url = url::Url::parse(text.get_ref()).ok();
        let whole = url.as_ref().and_then(|url| {
            let (host, port) = (url.host_str()?, url.port_or_known_default()?);
            (url.path() == "/").then(|| format!("{}://{host}:{port}", url.scheme()))
        });
        whole.ok_or_else(|| file.error(text.span(), "write an origin such as https://app.example.com").into())
    };
    table.origins.iter().map(origin).collect()
}

fn bytes(hex: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}
