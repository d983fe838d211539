//! OAuth at remote servers: who logs in, and where tokens are kept.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use async_trait::async_trait;
use cofferdam_mcp::client::{
    Browser, CredentialFiles, CredentialStore, Loopback, MemoryCredentials, OAuthClient, OAuthSettings,
};
use toml::Spanned;

use crate::config::{ConfigFile, ServerOAuthTable};
use crate::offer::{Reader, Values};
use crate::{ask, directories, print};

/// Whether a person is asked to log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Login {
    /// The address to go to is printed.
    Asked,
    /// Nobody would see the address: the connection fails, and says what to do.
    Refused,
}

impl Login {
    /// A person is asked where standard error is a terminal.
    pub(crate) fn if_seen() -> Self {
        if !ask::is_refused() && std::io::IsTerminal::is_terminal(&std::io::stderr()) {
            Self::Asked
        } else {
            Self::Refused
        }
    }
}

/// How to authorise at the server `name`.
pub(super) fn settings(
    file: &ConfigFile,
    name: &str,
    written: &Spanned<ServerOAuthTable>,
    reader: &mut Reader<'_>,
    login: Login,
) -> anyhow::Result<OAuthSettings> {
    let table = written.get_ref();
    let secret = table.client_secret().map_err(|(span, message)| file.error(span, message))?;
    let secret = secret.map(|source| reader.value(&source)).transpose()?;
    let secret = secret.map(|secret| secret.expose().to_owned());
    let client = match (table.machine, &table.client_id, secret) {
        (true, Some(id), Some(secret)) => OAuthClient::Host { id: id.clone(), secret },
        (true, ..) => {
            let message = "with `machine = true`, write `client-id` and `client-secret` as well";
            return Err(file.error(written.span(), message).into());
        }
        (false, None, Some(_)) => {
            return Err(file.error(written.span(), "a `client-secret` belongs to a `client-id`").into());
        }
        (false, id, secret) => OAuthClient::Person {
            browser: browser(file, name, login),
            registered: id.clone().map(|id| (id, secret)),
            metadata_url: table.client_metadata.clone(),
        },
    };
    let store: Arc<dyn CredentialStore> = match directory(name) {
        Ok(directory) => Arc::new(CredentialFiles::new_ambient(directory)),
        // Whoever only checks a configuration needs no place for tokens.
        Err(_) if reader.values() == Values::Leave => Arc::new(MemoryCredentials::default()),
        Err(error) => return Err(error),
    };
    let allows_private_addresses = table.private_addresses;
    Ok(OAuthSettings { client, scopes: table.scopes.clone(), store, allows_private_addresses })
}

/// Tokens of each server are in a directory of their own.
fn directory(name: &str) -> anyhow::Result<PathBuf> {
    let directory = directories::state().context("there is no directory to keep tokens in")?;
    Ok(directory.join("servers").join(name))
}

fn browser(file: &ConfigFile, name: &str, login: Login) -> Arc<dyn Browser> {
    let name = name.to_owned();
    match login {
        Login::Asked => Arc::new(Loopback::new(move |address| {
            print::note(&format!("the server `{name}` asks you to log in; go to\n  {address}"));
        })),
        Login::Refused => Arc::new(Nobody {
            what_to_do: format!(
                "log in once with: cofferdam mcp login {name} --config {}",
                file.path.display()
            ),
        }),
    }
}

/// Where no person is.
struct Nobody {
    what_to_do: String,
}

#[async_trait]
impl Browser for Nobody {
    async fn redirect_uri(&self) -> Result<String, String> {
        Err(self.what_to_do.clone())
    }

    async fn visit(&self, _address: &str) -> Result<String, String> {
        Err(self.what_to_do.clone())
    }
}
