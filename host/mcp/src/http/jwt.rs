//! Tokens of an authorization server: this server is an OAuth resource server, and never passes a
//! token on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jsonwebtoken::jwk::{Jwk, JwkSet, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use parking_lot::RwLock;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex, OwnedMutexGuard};
use url::Url;

use super::PATH;
use crate::server::Principal;
use crate::web;

/// Time after which keys are fetched again.
const KEYS_AGE_MAX: Duration = Duration::from_secs(60 * 60);
/// Minimum time between two attempts to fetch the keys, which unknown key ids and old keys cause.
const KEYS_AGE_MIN: Duration = Duration::from_secs(30);
/// The same while no attempt has succeeded.
const FIRST_KEYS_PAUSE: Duration = Duration::from_secs(1);
/// Maximum size of an issuer's document, in bytes.
const DOCUMENT_BYTES_MAX: usize = 1 << 20;
/// Time for which clocks may differ, in seconds: a token counts as valid for so long before `nbf`
/// and after `exp`.
const LEEWAY_SECONDS: u64 = 60;
/// Accepted signature algorithms. All are asymmetric, so this server stores no signing key.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// Issuer whose tokens are accepted.
#[derive(Debug, Clone)]
pub struct OAuth {
    /// Issuer, as its tokens name it (`iss`).
    pub issuer: Url,
    /// Address of this server, as tokens for it name it (`aud`).
    pub resource: Url,
    /// Address of the issuer's keys, for issuers whose metadata does not contain it.
    pub keys: Option<Url>,
    /// Scopes that a token must have.
    pub scopes: Vec<String>,
    /// Access of individual subjects; all others get `others`.
    pub subjects: BTreeMap<String, SubjectAccess>,
    /// Access of all other subjects.
    pub others: SubjectAccess,
}

/// Plugins, stores and servers whose tools a subject may use; `None` means all.
#[derive(Debug, Clone, Default)]
pub struct SubjectAccess(pub Option<BTreeSet<String>>);

impl OAuth {
    pub(super) fn metadata(&self) -> String {
        let mut metadata = Map::from_iter([
            ("resource".to_owned(), self.resource.as_str().into()),
            ("authorization_servers".to_owned(), json!([self.issuer.as_str()])),
            ("bearer_methods_supported".to_owned(), json!(["header"])),
        ]);
        if !self.scopes.is_empty() {
            metadata.insert("scopes_supported".to_owned(), json!(self.scopes));
        }
        Value::Object(metadata).to_string()
    }

    pub(super) fn metadata_url(&self, path: &str) -> String {
        let mut url = self.resource.clone();
        url.set_path(&format!("{path}{PATH}"));
        url.set_query(None);
        url.to_string()
    }
}

/// Result of checking a token.
pub(super) enum TokenVerdict {
    Valid(Principal),
    Invalid,
    /// The token is valid but lacks a scope.
    TooNarrow,
    /// The issuer's keys cannot be fetched.
    Unknown,
}

/// Checks tokens.
pub(super) struct Tokens {
    oauth: OAuth,
    client: reqwest::Client,
    keys: RwLock<Option<Keys>>,
    /// Time of the last attempt to fetch them. Locked during an attempt.
    tried: Arc<Mutex<Option<Instant>>>,
}

#[derive(Clone)]
struct Keys {
    set: Arc<JwkSet>,
    since: Instant,
}

impl Keys {
    fn has(&self, kid: Option<&str>) -> bool {
        kid.is_none_or(|kid| self.set.find(kid).is_some())
    }
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
    #[serde(default)]
    scope: Option<String>,
    #[serde(default)]
    scp: Option<Value>,
}

impl Tokens {
    pub(super) fn new(oauth: OAuth) -> Result<Arc<Self>, String> {
        for url in [Some(&oauth.issuer), oauth.keys.as_ref()].into_iter().flatten() {
            let is_local = url
                .host_str()
                .is_some_and(|host| matches!(host, "localhost" | "127.0.0.1" | "[::1]"));
            if url.scheme() != "https" && !is_local {
                return Err(format!(
                    "{url} must be an https address: an attacker who changes its keys can issue tokens"
                ));
            }
        }
        let client = web::client().map_err(|error| error.to_string())?;
        Ok(Arc::new(Self { oauth, client, keys: RwLock::default(), tried: Arc::default() }))
    }

    pub(super) async fn check(self: &Arc<Self>, token: &str) -> TokenVerdict {
        let Ok(head) = decode_header(token) else { return TokenVerdict::Invalid };
        // Extensions that a receiver must understand (RFC 7515); this one knows none.
        if !ALGORITHMS.contains(&head.alg) || head.crit.is_some() {
            return TokenVerdict::Invalid;
        }
        let Some(keys) = self.keys(head.kid.as_deref()).await else { return TokenVerdict::Unknown };
        let jwk = match &head.kid {
            Some(kid) => keys.find(kid),
            // Without a key id, the key must be unambiguous.
            None => keys.keys.first().filter(|_| keys.keys.len() == 1),
        };
        let Some(key) = jwk.and_then(|jwk| DecodingKey::from_jwk(jwk).ok()) else {
            return TokenVerdict::Invalid;
        };
        let mut rules = Validation::new(head.alg);
        rules.leeway = LEEWAY_SECONDS;
        rules.set_issuer(&[
            self.oauth.issuer.as_str(),
            self.oauth.issuer.as_str().trim_end_matches('/'),
        ]);
        rules.set_audience(&[
            self.oauth.resource.as_str(),
            self.oauth.resource.as_str().trim_end_matches('/'),
        ]);
        rules.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        rules.validate_nbf = true;
        let Ok(token) = decode::<Claims>(token, &key, &rules) else { return TokenVerdict::Invalid };
        let has = scopes(&token.claims);
        if self.oauth.scopes.iter().any(|scope| !has.contains(scope.as_str())) {
            return TokenVerdict::TooNarrow;
        }
        let subject = token.claims.sub;
        if subject.is_empty() {
            return TokenVerdict::Invalid;
        }
        let access = self.oauth.subjects.get(&subject).unwrap_or(&self.oauth.others);
        TokenVerdict::Valid(Principal::new(format!("oauth:{subject}"), access.0.clone()))
    }

    /// Returns the issuer's keys. Fetches them again when they are old, or when `kid` is not among
    /// them. Only requests that have no key to continue with wait for that.
    async fn keys(self: &Arc<Self>, kid: Option<&str>) -> Option<Arc<JwkSet>> {
        let known = self.known();
        let has_key = known.as_ref().is_some_and(|keys| keys.has(kid));
        if has_key && known.as_ref().is_some_and(|keys| keys.since.elapsed() < KEYS_AGE_MAX) {
            return known.map(|keys| keys.set);
        }
        let tried = match Arc::clone(&self.tried).try_lock_owned() {
            Ok(tried) => tried,
            // Outdated keys are better than locking every client out.
            Err(_) if has_key => return known.map(|keys| keys.set),
            Err(_) => Arc::clone(&self.tried).lock_owned().await,
        };
        let pause = if known.is_some() { KEYS_AGE_MIN } else { FIRST_KEYS_PAUSE };
        if tried.is_none_or(|tried| tried.elapsed() >= pause) {
            // A client that hangs up does not end the attempt, which would not count otherwise.
            let attempt = tokio::spawn(Arc::clone(self).refresh(tried));
            // An error means that the task has panicked, which was reported.
            let _ = attempt.await;
        }
        self.known().map(|keys| keys.set)
    }

    /// Fetches the keys, and notes the attempt.
    async fn refresh(self: Arc<Self>, mut tried: OwnedMutexGuard<Option<Instant>>) {
        let fetched = self.fetch().await;
        let now = Instant::now();
        *tried = Some(now);
        if let Some(set) = fetched {
            let keys = Keys { set: Arc::new(set), since: now };
            *self.keys.write() = Some(keys);
        }
    }

    fn known(&self) -> Option<Keys> {
        self.keys.read().clone()
    }

    async fn fetch(&self) -> Option<JwkSet> {
        let keys = match &self.oauth.keys {
            Some(keys) => keys.clone(),
            None => self.discover().await?,
        };
        signing_keys(&self.get(keys).await?)
    }

    /// Returns the address of the keys from the issuer's metadata, in either of the two documents
    /// in use.
    async fn discover(&self) -> Option<Url> {
        let issuer = &self.oauth.issuer;
        let path = issuer.path().trim_end_matches('/');
        let paths = [
            format!("/.well-known/oauth-authorization-server{path}"),
            format!("{path}/.well-known/openid-configuration"),
        ];
        for path in paths {
            let mut url = issuer.clone();
            url.set_path(&path);
            let Some(document) = self.get(url).await else { continue };
            let Ok(document) = serde_json::from_slice::<Value>(&document) else { continue };
            let named = document.get("issuer").and_then(Value::as_str).unwrap_or_default();
            if named.trim_end_matches('/') != issuer.as_str().trim_end_matches('/') {
                continue;
            }
            let keys = document
                .get("jwks_uri")
                .and_then(Value::as_str)
                .and_then(|uri| Url::parse(uri).ok());
            if let Some(keys) = keys.filter(|keys| keys.scheme() == issuer.scheme()) {
                return Some(keys);
            }
        }
        None
    }

    async fn get(&self, url: Url) -> Option<Vec<u8>> {
        web::get(&self.client, url, DOCUMENT_BYTES_MAX).await
    }
}

/// Returns the keys of a document that may verify signatures. Those that cannot be read are left
/// out (RFC 7517).
fn signing_keys(document: &[u8]) -> Option<JwkSet> {
    let mut document: Value = serde_json::from_slice(document).ok()?;
    let keys = document.get_mut("keys")?.as_array_mut()?.drain(..);
    let keys = keys.filter_map(|key| serde_json::from_value(key).ok()).filter(may_verify);
    Some(JwkSet { keys: keys.collect() })
}

fn may_verify(key: &Jwk) -> bool {
    let use_fits =
        key.common.public_key_use.as_ref().is_none_or(|used| *used == PublicKeyUse::Signature);
    let operations = key.common.key_operations.as_ref();
    use_fits && operations.is_none_or(|operations| operations.contains(&KeyOperations::Verify))
}

/// Returns the scopes of a token, from either of the two claims in use.
fn scopes(claims: &Claims) -> BTreeSet<&str> {
    let texts = match &claims.scp {
        Some(Value::Array(scopes)) => scopes.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(scopes)) => vec![scopes.as_str()],
        _ => Vec::new(),
    };
    texts.into_iter().chain(claims.scope.as_deref()).flat_map(str::split_whitespace).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keys_for_signatures_are_kept() {
        let key = |id: &str, more: Value| {
            let mut key = json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": "A".repeat(43)});
            key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            key
        };
        let document = json!({"keys": [
            key("plain", json!({})),
            key("signs", json!({"use": "sig"})),
            key("verifies", json!({"key_ops": ["verify"]})),
            key("encrypts", json!({"use": "enc"})),
            key("other", json!({"use": "tls"})),
            key("wraps", json!({"key_ops": ["wrapKey", "sign"]})),
            7,
        ]});
        let kept = signing_keys(document.to_string().as_bytes()).unwrap();
        let ids = kept.keys.iter().map(|key| key.common.key_id.as_deref().unwrap());
        assert_eq!(ids.collect::<Vec<_>>(), ["plain", "signs", "verifies"]);
    }
}
