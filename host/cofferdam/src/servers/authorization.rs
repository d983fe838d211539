//! OAuth at remote servers: the kind of client, and the storage of tokens.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::Context as _;
use async_trait::async_trait;
use cofferdam_mcp::client::{
    Browser, CredentialFiles, CredentialStore, Loopback, MemoryCredentials, OAuthClient,
    OAuthSettings,
};
use toml::Spanned;

use crate::config::{ConfigFile, ServerOAuthTable};
use crate::granting::{ValueReader, Values};
use crate::{Operator, directories};

/// Name of the client's secret in redacted texts, which no secret of a configuration can have.
const CLIENT_SECRET: &str = "oauth client-secret";

/// Returns the OAuth settings of the server `name`.
pub(super) fn settings(
    file: &ConfigFile,
    name: &str,
    written: &Spanned<ServerOAuthTable>,
    reader: &mut ValueReader<'_>,
    operator: &Operator,
) -> crate::Result<OAuthSettings> {
    let table = written.get_ref();
    let secret = table.client_secret().map_err(|(span, message)| file.error(span, message))?;
    let secret = secret.map(|source| reader.value(&source)).transpose()?;
    if let Some(secret) = secret.as_ref().filter(|secret| !secret.expose().is_empty()) {
        reader.add_secret(CLIENT_SECRET, secret);
    }
    let secret = secret.map(|secret| secret.expose().to_owned());
    let client = match (table.machine, &table.client_id, secret) {
        (true, Some(id), Some(secret)) => OAuthClient::Host { id: id.clone(), secret },
        (true, ..) => {
            let message = "with `machine = true`, write `client-id` and `client-secret` as well";
            return Err(file.error(written.span(), message).into());
        }
        (false, None, Some(_)) => {
            return Err(file
                .error(written.span(), "a `client-secret` belongs to a `client-id`")
                .into());
        }
        (false, id, secret) => OAuthClient::Person {
            browser: browser(file, name, operator),
            registered: id.clone().map(|id| (id, secret)),
            metadata_url: table.client_metadata.clone(),
        },
    };
    let store: Arc<dyn CredentialStore> = match directory(name) {
        Ok(directory) => Arc::new(CredentialFiles::new_ambient(directory)),
        // Checking a configuration needs no credential store.
        Err(_) if reader.values() == Values::Leave => Arc::new(MemoryCredentials::default()),
        Err(error) => return Err(error),
    };
    let allows_private_addresses = table.private_addresses;
    Ok(OAuthSettings {
        client,
        issuer: table.issuer.clone(),
        scopes: table.scopes.clone(),
        store,
        allows_private_addresses,
    })
}

/// Returns the directory for tokens of one server.
fn directory(name: &str) -> crate::Result<PathBuf> {
    let directory = directories::state().context("there is no directory to keep tokens in")?;
    Ok(directory.join("servers").join(name))
}

fn browser(file: &ConfigFile, name: &str, operator: &Operator) -> Arc<dyn Browser> {
    let name = name.to_owned();
    if operator.can_log_in() {
        let operator = operator.clone();
        return Arc::new(Loopback::new(move |address| {
            operator.note(&format!("the server `{name}` asks you to log in; go to\n  {address}"));
        }));
    }
    let config = file.path.display();
    Arc::new(NoBrowser {
        what_to_do: format!("log in once with: cofferdam mcp login {name} --config {config}"),
    })
}

/// Browser for hosts whose operator cannot log in. Returns instructions as an error.
struct NoBrowser {
    what_to_do: String,
}

#[async_trait]
impl Browser for NoBrowser {
    async fn redirect_uri(&self) -> Result<String, String> {
        Err(self.what_to_do.clone())
    }

    async fn visit(&self, _address: &str) -> Result<String, String> {
        Err(self.what_to_do.clone())
    }
}
