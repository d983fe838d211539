//! Authorization server that a client belongs to.
//!
//! An MCP server names its authorization server. What was registered at one authorization server, a
//! secret or a code for it, must not be sent to another that a server names instead.

use rmcp::transport::auth::AuthorizationMetadata;
use url::Url;

use super::{ADDRESS_BYTES_MAX, OAuthClient, OAuthSettings};
use crate::client::ConnectError;
use crate::client::limits::cut;

/// Checks that a client may be used at the authorization server that `server` names.
///
/// With a configured issuer, the metadata must be of that issuer. Otherwise, a client that was
/// registered beforehand belongs to the server's own origin, and one that authorization servers
/// know by its metadata document to the origin of the issuer. A client that is registered now is
/// known only to the authorization server that it is registered at.
pub(super) fn check(
    settings: &OAuthSettings,
    server: &Url,
    metadata: &AuthorizationMetadata,
) -> Result<(), ConnectError> {
    let found = metadata.issuer.as_deref();
    if let Some(expected) = &settings.issuer {
        return match found.is_some_and(|found| is_same(found, expected)) {
            true => Ok(()),
            false => Err(ConnectError::OtherIssuer {
                expected: expected.clone(),
                found: shown(found.unwrap_or("none")),
            }),
        };
    }
    let endpoints = [&metadata.authorization_endpoint, &metadata.token_endpoint];
    let are_at = |origin: &Url| {
        let parsed = endpoints.map(|endpoint| Url::parse(endpoint).ok());
        parsed.iter().all(|url| url.as_ref().is_some_and(|url| url.origin() == origin.origin()))
    };
    let is_bound = match &settings.client {
        OAuthClient::Host { .. } | OAuthClient::Person { registered: Some(_), .. } => {
            are_at(server)
        }
        OAuthClient::Person { metadata_url: Some(_), .. } => match found.map(Url::parse) {
            Some(Ok(issuer)) => are_at(&issuer),
            _ => are_at(server),
        },
        OAuthClient::Person { .. } => true,
    };
    if is_bound {
        return Ok(());
    }
    Err(ConnectError::UnknownIssuer { found: shown(found.unwrap_or(&metadata.token_endpoint)) })
}

/// Returns whether two issuers are the same, with or without a final `/`.
fn is_same(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

fn shown(issuer: &str) -> String {
    cut(issuer, ADDRESS_BYTES_MAX).escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;

    use super::*;
    use crate::client::oauth::{Browser, MemoryCredentials};

    struct NoBrowser;

    #[async_trait]
    impl Browser for NoBrowser {
        async fn redirect_uri(&self) -> Result<String, String> {
            Err(String::new())
        }

        async fn visit(&self, _address: &str) -> Result<String, String> {
            Err(String::new())
        }
    }

    fn metadata(issuer: Option<&str>, authorize: &str, token: &str) -> AuthorizationMetadata {
        let mut metadata = AuthorizationMetadata::default();
        metadata.issuer = issuer.map(str::to_owned);
        metadata.authorization_endpoint = authorize.to_owned();
        metadata.token_endpoint = token.to_owned();
        metadata
    }

    fn allows(
        client: &OAuthClient,
        issuer: Option<&str>,
        metadata: &AuthorizationMetadata,
    ) -> bool {
        let settings = OAuthSettings {
            client: client.clone(),
            issuer: issuer.map(str::to_owned),
            scopes: Vec::new(),
            store: Arc::new(MemoryCredentials::default()),
            allows_private_addresses: false,
        };
        check(&settings, &Url::parse("https://mcp.example/mcp").unwrap(), metadata).is_ok()
    }

    #[test]
    fn what_was_registered_at_one_server_does_not_go_to_another() {
        let person = |registered: Option<&str>, metadata_url: Option<&str>| OAuthClient::Person {
            browser: Arc::new(NoBrowser),
            registered: registered.map(|id| (id.to_owned(), None)),
            metadata_url: metadata_url.map(str::to_owned),
        };
        let host = OAuthClient::Host { id: "c".to_owned(), secret: "s".to_owned() };
        let own =
            metadata(Some("https://mcp.example"), "https://mcp.example/a", "https://mcp.example/t");
        let company = metadata(
            Some("https://idp.example/"),
            "https://idp.example/a",
            "https://api.example/t",
        );
        let mixed =
            metadata(Some("https://mcp.example"), "https://idp.example/a", "https://mcp.example/t");
        let legacy = metadata(None, "https://mcp.example/a", "https://mcp.example/t");
        for client in [&host, &person(Some("c"), None)] {
            assert!(allows(client, None, &own) && allows(client, None, &legacy));
            assert!(!allows(client, None, &company) && !allows(client, None, &mixed));
            assert!(allows(client, Some("https://idp.example"), &company));
            for other in [&own, &mixed, &legacy] {
                assert!(!allows(client, Some("https://idp.example"), other));
            }
        }
        let portable = person(None, Some("https://client.example/metadata.json"));
        assert!(allows(&portable, None, &own));
        assert!(!allows(&portable, None, &mixed) && !allows(&portable, None, &company));
        assert!(allows(&portable, Some("https://idp.example"), &company));
        assert!(allows(&person(None, None), None, &mixed));
    }
}
