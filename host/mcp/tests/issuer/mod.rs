//! Authorization server for tests: its metadata, its key, and valid and invalid tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const KEY_ID: &str = "key-1";

pub(crate) struct Issuer {
    pub(crate) url: String,
    key: KeyPair,
    key_requests: Arc<AtomicUsize>,
}

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

impl Issuer {
    pub(crate) async fn start() -> Self {
        Self::start_slow(Duration::ZERO).await
    }

    /// Starts an issuer that takes `pause` to answer a request for its keys.
    pub(crate) async fn start_slow(pause: Duration) -> Self {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        // The public key consists of the byte 4, x and y.
        let point = key.public_key_raw();
        let coordinate = |range: std::ops::Range<usize>| URL_SAFE_NO_PAD.encode(&point[range]);
        let keys = json!({"keys": [{
            "kty": "EC", "crv": "P-256", "kid": KEY_ID, "alg": "ES256", "use": "sig",
            "x": coordinate(1..33), "y": coordinate(33..65),
        }]});
        let metadata = json!({"issuer": url, "jwks_uri": format!("{url}/keys")});
        let key_requests = Arc::<AtomicUsize>::default();
        let counter = Arc::clone(&key_requests);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = vec![0; 4096];
                let length = stream.read(&mut head).await.unwrap();
                let head = String::from_utf8_lossy(&head[..length]).into_owned();
                let (status, body) = match head.split(' ').nth(1) {
                    Some("/keys") => {
                        counter.fetch_add(1, Ordering::Relaxed);
                        tokio::time::sleep(pause).await;
                        ("200 OK", keys.to_string())
                    }
                    Some("/.well-known/openid-configuration") => ("200 OK", metadata.to_string()),
                    _ => ("404 Not Found", "{}".to_owned()),
                };
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
                // A client that has hung up reads no answer.
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Self { url, key, key_requests }
    }

    /// Returns the number of requests for the keys.
    pub(crate) fn key_requests(&self) -> usize {
        self.key_requests.load(Ordering::Relaxed)
    }

    pub(crate) fn token(&self, claims: &Value) -> String {
        sign(&self.key, claims)
    }

    /// Signs with a different key under the same key id.
    pub(crate) fn forged(&self, claims: &Value) -> String {
        sign(&KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap(), claims)
    }

    pub(crate) fn without_signature(&self, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        format!("{}.{}.", part(&json!({"alg": "none", "kid": KEY_ID})), part(claims))
    }

    /// Signs with an extension that receivers have to understand.
    pub(crate) fn with_critical_extension(&self, claims: &Value) -> String {
        let head = Header {
            kid: Some(KEY_ID.to_owned()),
            crit: Some(vec!["exp".to_owned()]),
            ..Header::new(Algorithm::ES256)
        };
        encode(&head, claims, &EncodingKey::from_ec_der(&self.key.serialize_der())).unwrap()
    }

    /// Signs with the public key as if it were a shared secret.
    pub(crate) fn signed_with_the_public_key(&self, claims: &Value) -> String {
        let head = Header { kid: Some(KEY_ID.to_owned()), ..Header::new(Algorithm::HS256) };
        encode(&head, claims, &EncodingKey::from_secret(self.key.public_key_raw())).unwrap()
    }
}

fn sign(key: &KeyPair, claims: &Value) -> String {
    let head = Header { kid: Some(KEY_ID.to_owned()), ..Header::new(Algorithm::ES256) };
    // Null marks a missing claim.
    let claims: Value = claims
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    encode(&head, &claims, &EncodingKey::from_ec_der(&key.serialize_der())).unwrap()
}
