//! Authentication of requests.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use cofferdam_tool::pattern::ToolPattern;
use http::{HeaderMap, StatusCode, header};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::jwt::{OAuth, TokenVerdict, Tokens};
use super::rate::{Counter, Rate};
use super::{METADATA_PATH, is_local};
use crate::server::Principal;

/// Maximum rate, over all clients, at which requests without a valid token get their own error.
/// Beyond it, the answer is 429.
const FAILURES: Rate = Rate { per_second: 20.0, burst: 50.0 };
/// Maximum length of a token in bytes. A longer one is invalid.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// Access rules.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Owners of tokens that the server issued itself.
    pub tokens: Vec<TokenAccess>,
    /// Rules for tokens that an authorization server issued.
    pub oauth: Option<OAuth>,
    /// True if every program on this machine may call without a token. Only the `Origin` check then
    /// stops a web page in a browser.
    pub is_open: bool,
}

/// Rights of a token's owner.
#[derive(Debug, Clone)]
pub struct TokenAccess {
    /// Name of the owner.
    pub name: String,
    /// SHA-256 of the token.
    pub sha256: [u8; 32],
    /// Plugins, stores and servers whose tools may be used; `None` means all.
    pub sources: Option<BTreeSet<String>>,
    /// Patterns for the names of the tools that may be used; `None` means all tools of the sources.
    pub tools: Option<Vec<ToolPattern>>,
    /// True if the owner may give grants.
    pub decides: bool,
}

/// Error returned for invalid access rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidAccess {
    /// The listener has no address.
    #[error("the listener has no address")]
    NoAddress,
    /// Every program on other machines could call.
    #[error(
        "{0} can be reached from other machines, so a token or OAuth is needed; listen on \
         127.0.0.1 to do without"
    )]
    OpenToOthers(SocketAddr),
    /// No client could call.
    #[error("no client could call: there is neither a token nor OAuth")]
    ClosedToAll,
    /// The OAuth section is invalid.
    #[error("OAuth: {0}")]
    OAuth(String),
}

/// Authenticates requests and admits them.
pub(super) struct Guard {
    access: Access,
    tokens: Option<Arc<Tokens>>,
    metadata_url: Option<String>,
    rate: Counter,
    failures: Counter,
}

/// Request that is not admitted.
#[derive(Debug)]
pub(super) struct DeniedRequest {
    pub(super) status: StatusCode,
    pub(super) message: &'static str,
    pub(super) challenge: Option<String>,
}

impl Guard {
    pub(super) fn new(
        access: Access,
        rate: Rate,
        address: SocketAddr,
    ) -> Result<Self, InvalidAccess> {
        let has_tokens = !access.tokens.is_empty() || access.oauth.is_some();
        if access.is_open && !is_local(address) {
            return Err(InvalidAccess::OpenToOthers(address));
        }
        if !access.is_open && !has_tokens {
            return Err(InvalidAccess::ClosedToAll);
        }
        let tokens =
            access.oauth.clone().map(Tokens::new).transpose().map_err(InvalidAccess::OAuth)?;
        let metadata_url = access.oauth.as_ref().map(|oauth| oauth.metadata_url(METADATA_PATH));
        Ok(Self {
            access,
            tokens,
            metadata_url,
            rate: Counter::new(rate),
            failures: Counter::new(FAILURES),
        })
    }

    /// Returns the document that tells an OAuth client where to get a token (RFC 9728).
    pub(super) fn metadata(&self) -> Option<String> {
        self.access.oauth.as_ref().map(OAuth::metadata)
    }

    /// Returns the principal that a request is from, if it is admitted.
    pub(super) async fn admit(&self, headers: &HeaderMap) -> Result<Principal, DeniedRequest> {
        let principal = match self.identify(headers).await {
            Ok(principal) => principal,
            // Slows down guessing for all clients together. Clients with a valid token are not
            // affected.
            Err(denied) if self.failures.admits("", Instant::now()) => return Err(denied),
            Err(_) => return Err(self.too_many()),
        };
        if !self.rate.admits(principal.name(), Instant::now()) {
            return Err(self.too_many());
        }
        Ok(principal)
    }

    /// Counts one more request of a principal. Returns whether it is admitted.
    pub(super) fn admits_another(&self, principal: &str) -> bool {
        self.rate.admits(principal, Instant::now())
    }

    async fn identify(&self, headers: &HeaderMap) -> Result<Principal, DeniedRequest> {
        let token = match bearer(headers) {
            // Nothing shows that this caller is the user who started the server.
            Bearer::None if self.access.is_open => return Ok(Principal::new("anybody", None)),
            Bearer::None => return Err(self.unauthorized("a bearer token is needed", None)),
            Bearer::Malformed => {
                return Err(self.unauthorized("the Authorization header cannot be read", None));
            }
            Bearer::Token(token) => token,
        };
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        // Compares all digests in constant time, whichever of them matches.
        let mut found = None;
        for access in &self.access.tokens {
            if bool::from(access.sha256.ct_eq(&digest)) {
                found = Some(access);
            }
        }
        if let Some(access) = found {
            let principal = Principal::new(access.name.as_str(), access.sources.clone());
            let principal = principal.limited_to(access.tools.clone());
            return Ok(if access.decides { principal.as_grantor() } else { principal });
        }
        let Some(tokens) = &self.tokens else {
            return Err(self.unauthorized("the token is not valid", Some("invalid_token")));
        };
        match tokens.check(token).await {
            TokenVerdict::Valid(principal) => Ok(principal),
            TokenVerdict::Invalid => {
                Err(self.unauthorized("the token is not valid", Some("invalid_token")))
            }
            TokenVerdict::TooNarrow => {
                let mut denied =
                    self.unauthorized("the token lacks a scope", Some("insufficient_scope"));
                denied.status = StatusCode::FORBIDDEN;
                Err(denied)
            }
            TokenVerdict::Unknown => Err(DeniedRequest {
                status: StatusCode::SERVICE_UNAVAILABLE,
                message: "the issuer's keys cannot be fetched",
                challenge: None,
            }),
        }
    }

    fn unauthorized(&self, message: &'static str, error: Option<&str>) -> DeniedRequest {
        let mut challenge = "Bearer".to_owned();
        let mut separator = ' ';
        let mut add = |name: &str, value: &str| {
            challenge.push_str(&format!("{separator}{name}=\"{value}\""));
            separator = ',';
        };
        if let Some(error) = error {
            add("error", error);
        }
        if let (Some(url), Some(oauth)) = (&self.metadata_url, &self.access.oauth) {
            add("resource_metadata", url);
            if !oauth.scopes.is_empty() {
                add("scope", &oauth.scopes.join(" "));
            }
        }
        DeniedRequest { status: StatusCode::UNAUTHORIZED, message, challenge: Some(challenge) }
    }

    fn too_many(&self) -> DeniedRequest {
        DeniedRequest {
            status: StatusCode::TOO_MANY_REQUESTS,
            message: "too many requests",
            challenge: None,
        }
    }
}

enum Bearer<'a> {
    None,
    Malformed,
    Token(&'a str),
}

fn bearer(headers: &HeaderMap) -> Bearer<'_> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (value, another) = (values.next(), values.next());
    match (value, another) {
        (None, _) => Bearer::None,
        (Some(_), Some(_)) => Bearer::Malformed,
        (Some(value), None) => {
            let token = value.to_str().ok().and_then(|text| {
                let (scheme, token) = text.split_once(' ')?;
                scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
            });
            match token {
                Some(token) if !token.is_empty() && token.len() <= TOKEN_BYTES_MAX => {
                    Bearer::Token(token)
                }
                _ => Bearer::Malformed,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(token: &str) -> Access {
        let sha256 = Sha256::digest(token.as_bytes()).into();
        let sources = Some(BTreeSet::from(["text".to_owned()]));
        Access {
            tokens: vec![TokenAccess {
                name: "ci".into(),
                sha256,
                sources,
                tools: None,
                decides: false,
            }],
            ..Access::default()
        }
    }

    fn headers(authorization: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in authorization {
            headers.append(header::AUTHORIZATION, value.parse().unwrap());
        }
        headers
    }

    fn local() -> SocketAddr {
        "127.0.0.1:1".parse().unwrap()
    }

    #[tokio::test]
    async fn only_the_owner_of_a_token_is_let_in() {
        let guard = Guard::new(access("t0ken"), Rate::default(), local()).unwrap();
        let principal = guard.admit(&headers(&["bearer t0ken"])).await.unwrap();
        assert_eq!(principal.name(), "ci");
        assert!(principal.may_use("text") && !principal.may_use("csv"));
        for bad in [
            &[][..],
            &["Bearer t0kem"],
            &["Bearer"],
            &["Bearer "],
            &["Basic t0ken"],
            &["Bearer t0ken", "Bearer t0ken"],
        ] {
            let denied = guard.admit(&headers(bad)).await.unwrap_err();
            assert_eq!(denied.status, StatusCode::UNAUTHORIZED, "{bad:?}");
            assert!(denied.challenge.unwrap().starts_with("Bearer"));
        }
    }

    #[tokio::test]
    async fn guessing_is_slowed_down_and_the_owner_is_not() {
        let guard = Guard::new(access("t0ken"), Rate::default(), local()).unwrap();
        let mut last = StatusCode::OK;
        for _ in 0..80 {
            last = guard.admit(&headers(&["Bearer x"])).await.unwrap_err().status;
        }
        assert_eq!(last, StatusCode::TOO_MANY_REQUESTS);
        assert!(guard.admit(&headers(&["Bearer t0ken"])).await.is_ok());
    }

    #[test]
    fn an_open_endpoint_is_local_and_a_closed_one_has_a_principal_to_admit() {
        let open = Access { is_open: true, ..Access::default() };
        let anywhere: SocketAddr = "0.0.0.0:1".parse().unwrap();
        assert!(Guard::new(open.clone(), Rate::default(), local()).is_ok());
        let error = |access, address| Guard::new(access, Rate::default(), address).err();
        assert_eq!(error(open, anywhere), Some(InvalidAccess::OpenToOthers(anywhere)));
        assert_eq!(error(Access::default(), local()), Some(InvalidAccess::ClosedToAll));
        assert!(Guard::new(access("t"), Rate::default(), anywhere).is_ok());
    }
}
