//! Authentication: challenges of registries, and tokens.

use std::time::{Duration, Instant};

use cofferdam_tool::permission::SecretText;
use data_encoding::BASE64;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use serde::Deserialize;

use crate::Credentials;
use crate::error::RegistryErrorKind;

/// Maximum size of a token response in bytes.
pub(super) const TOKEN_BYTES_MAX: u64 = 64 * 1024;
/// Lifetime of a token whose response states none, by the specification.
const TOKEN_LIFETIME: Duration = Duration::from_secs(60);
/// Maximum time for which a token is cached.
const TOKEN_LIFETIME_MAX: Duration = Duration::from_secs(3_600);
/// Token servers of registries that are on another host than the registry.
const KNOWN_REALMS: [(&str, &str); 1] = [("registry-1.docker.io", "auth.docker.io")];

/// Way in which a registry wants to be authenticated to.
#[derive(Debug, PartialEq)]
pub(super) enum Challenge {
    /// User name and password with each request.
    Basic,
    /// A token of a server.
    Bearer {
        /// Address of the server.
        realm: Url,
        /// Name of the registry for the server.
        service: Option<String>,
    },
}

/// Value of the header `Authorization`, with its expiry.
#[derive(Clone)]
pub(super) struct Authorization {
    pub(super) header: HeaderValue,
    pub(super) expires: Option<Instant>,
}

/// Response of a token server.
#[derive(Deserialize)]
struct TokenResponse {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<u64>,
}

impl Challenge {
    /// Reads the challenge of a response. Prefers tokens.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, RegistryErrorKind> {
        let mut has_basic = false;
        for value in headers.get_all(WWW_AUTHENTICATE) {
            let Ok(string) = value.to_str() else { continue };
            for challenge in http_auth::parse_challenges(string).unwrap_or_default() {
                if challenge.scheme.eq_ignore_ascii_case("basic") {
                    has_basic = true;
                } else if challenge.scheme.eq_ignore_ascii_case("bearer") {
                    let parameter = |name: &str| {
                        let found = challenge
                            .params
                            .iter()
                            .find(|(known, _)| known.eq_ignore_ascii_case(name));
                        found.map(|(_, value)| value.to_unescaped())
                    };
                    let realm = parameter("realm").and_then(|realm| Url::parse(&realm).ok());
                    let realm = realm.ok_or_else(|| {
                        RegistryErrorKind::Malformed("a challenge without a valid realm".to_owned())
                    })?;
                    return Ok(Self::Bearer { realm, service: parameter("service") });
                }
            }
        }
        if has_basic {
            return Ok(Self::Basic);
        }
        Err(RegistryErrorKind::Unauthorized(
            "access is denied, and the registry does not say how to log in".to_owned(),
        ))
    }
}

impl Authorization {
    pub(super) fn basic(username: &str, password: &SecretText) -> Result<Self, RegistryErrorKind> {
        let pair = BASE64.encode(format!("{username}:{}", password.expose()).as_bytes());
        Ok(Self { header: header(&format!("Basic {pair}"))?, expires: None })
    }

    /// Reads the response of a token server.
    pub(super) fn bearer(body: &[u8], now: Instant) -> Result<Self, RegistryErrorKind> {
        let malformed = || RegistryErrorKind::Malformed("a token response without a token".into());
        let response: TokenResponse = serde_json::from_slice(body).map_err(|_| malformed())?;
        let token = response.token.or(response.access_token).ok_or_else(malformed)?;
        let lifetime = response.expires_in.map_or(TOKEN_LIFETIME, Duration::from_secs);
        // Renewed a little earlier, so that it does not expire on the way.
        let lifetime = lifetime.min(TOKEN_LIFETIME_MAX).saturating_sub(Duration::from_secs(5));
        Ok(Self { header: header(&format!("Bearer {token}"))?, expires: now.checked_add(lifetime) })
    }

    pub(super) fn is_valid(&self, now: Instant) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }
}

/// Returns a header value that is not shown in logs.
fn header(value: &str) -> Result<HeaderValue, RegistryErrorKind> {
    let mut header = HeaderValue::from_str(value)
        .map_err(|_| RegistryErrorKind::Malformed("credentials with a control character".into()))?;
    header.set_sensitive(true);
    Ok(header)
}

/// Returns whether the credentials of `registry` may be sent to the token server `realm`: the same
/// host, a parent domain of it, a known server, or a host of `trusted`. Otherwise a registry could
/// have the credentials sent to any address.
pub(super) fn may_have_credentials(registry: &Url, realm: &Url, trusted: &[String]) -> bool {
    let (Some(host), Some(to)) = (registry.host_str(), realm.host_str()) else { return false };
    if realm.scheme() != registry.scheme() && realm.scheme() != "https" {
        return false;
    }
    let is_same = host == to && registry.port_or_known_default() == realm.port_or_known_default();
    let is_parent = to.contains('.')
        && host.strip_suffix(to).is_some_and(|rest| rest.ends_with('.'))
        && realm.domain().is_some();
    is_same
        || is_parent
        || KNOWN_REALMS.contains(&(host, to))
        || trusted.iter().any(|trusted| trusted == to)
}

/// Returns the query of a token request with user name and password.
pub(super) fn token_query(realm: &Url, service: Option<&str>, scope: &str) -> Url {
    let mut url = realm.clone();
    {
        let mut query = url.query_pairs_mut();
        query.append_pair("scope", scope);
        if let Some(service) = service {
            query.append_pair("service", service);
        }
    }
    url
}

/// Returns the form of a token request with an identity token.
pub(super) fn refresh_form(token: &SecretText, service: Option<&str>, scope: &str) -> String {
    // The serializer of `Url` writes forms as well.
    let mut form = token_query(&placeholder(), service, scope);
    form.query_pairs_mut()
        .append_pair("grant_type", "refresh_token")
        .append_pair("client_id", "cofferdam")
        .append_pair("refresh_token", token.expose());
    form.query().unwrap_or_default().to_owned()
}

#[expect(clippy::expect_used, reason = "the address is a constant")]
fn placeholder() -> Url {
    Url::parse("https://localhost/").expect("a constant address is valid")
}

/// Returns the text of an error for a registry that wants other credentials.
pub(super) fn refused(credentials: Option<&Credentials>, registry: &str) -> RegistryErrorKind {
    RegistryErrorKind::Unauthorized(match credentials {
        Some(_) => format!(
            "the credentials for {registry} are rejected; log in again, such as with `docker login {registry}`"
        ),
        None => format!(
            "access is denied without credentials, or there is no such repository; log in, such as with `docker login {registry}`"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge(value: &'static str) -> Result<Challenge, RegistryErrorKind> {
        let mut headers = HeaderMap::new();
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(value));
        Challenge::of(&headers)
    }

    #[test]
    fn challenges_are_read_and_tokens_preferred() {
        assert_eq!(challenge("Basic realm=\"x\"").unwrap(), Challenge::Basic);
        let bearer = Challenge::Bearer {
            realm: Url::parse("https://ghcr.io/token").unwrap(),
            service: Some("ghcr.io".to_owned()),
        };
        for value in [
            "Bearer realm=\"https://ghcr.io/token\",service=\"ghcr.io\"",
            "Basic realm=\"x\", bearer REALM=\"https://ghcr.io/token\", service=ghcr.io",
        ] {
            assert_eq!(challenge(value).unwrap(), bearer, "{value}");
        }
        for value in ["", "Bearer", "Bearer realm=\"token\"", "Digest realm=\"x\", nonce=\"y\""] {
            challenge(value).unwrap_err();
        }
    }

    #[test]
    fn credentials_go_only_to_the_registrys_own_servers() {
        let may = |registry: &str, realm: &str| {
            let url = |string| Url::parse(string).unwrap();
            may_have_credentials(&url(registry), &url(realm), &["sso.corp.example".to_owned()])
        };
        assert!(may("https://ghcr.io/v2/", "https://ghcr.io/token"));
        assert!(may("https://registry.gitlab.com/v2/", "https://gitlab.com/jwt/auth"));
        assert!(may("https://registry-1.docker.io/v2/", "https://auth.docker.io/token"));
        assert!(may("https://a.example/v2/", "https://sso.corp.example/token"));
        assert!(may("http://localhost:5000/v2/", "http://localhost:5000/token"));
        for (registry, realm) in [
            ("https://ghcr.io/v2/", "https://evil.example/token"),
            ("https://ghcr.io/v2/", "http://ghcr.io/token"),
            ("https://ghcr.io/v2/", "https://ghcr.io:444/token"),
            ("https://ghcr.io/v2/", "https://ghcr.io.evil.example/token"),
            ("https://evilghcr.io/v2/", "https://ghcr.io/token"),
            ("https://ghcr.io/v2/", "https://io/token"),
            ("https://1.127.0.0.1/v2/", "https://127.0.0.1/token"),
            ("https://a.example/v2/", "http://sso.corp.example/token"),
        ] {
            let parsed = Url::parse(registry).is_ok();
            assert!(!parsed || !may(registry, realm), "{registry} {realm}");
        }
    }

    #[test]
    fn tokens_with_control_characters_are_refused() {
        let now = Instant::now();
        Authorization::bearer(br#"{"token":"a\nb"}"#, now).map(drop).unwrap_err();
        Authorization::bearer(br#"{}"#, now).map(drop).unwrap_err();
        let long = br#"{"access_token":"a","expires_in":18446744073709551615}"#;
        let token = Authorization::bearer(long, now).ok().unwrap();
        assert_eq!(token.header, "Bearer a");
        assert!(token.is_valid(now) && !token.is_valid(now + TOKEN_LIFETIME_MAX));
    }
}
