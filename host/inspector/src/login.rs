//! One-time keys, and the browsers that logged in with them.
//!
//! The key is in the fragment of the address that the operator opens, which a browser neither
//! sends nor logs. A script posts it once and gets a cookie. Cookies do not distinguish ports, so
//! the name of the cookie contains the port, and its value is known to this process only.

use std::time::{Duration, Instant};

use data_encoding::BASE64URL_NOPAD;
use http::{HeaderMap, header};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::InspectorError;

/// Time in which a key has to be used.
const KEY_TIME_MAX: Duration = Duration::from_secs(5 * 60);
/// Maximum number of keys that are not used yet. A further key replaces the oldest.
const KEYS_MAX: usize = 16;
/// Maximum number of browsers. A further one replaces the oldest.
const BROWSERS_MAX: usize = 64;
/// Random bytes of a key, a cookie and the token of a page.
const SECRET_BYTES: usize = 32;

/// Keys and browsers of one inspector.
#[derive(Debug)]
pub(crate) struct Logins {
    cookie_name: String,
    keys: Mutex<Vec<IssuedKey>>,
    browsers: Mutex<Vec<Browser>>,
}

#[derive(Debug)]
struct IssuedKey {
    digest: [u8; 32],
    expires: Instant,
}

/// A browser that logged in.
#[derive(Debug, Clone)]
pub(crate) struct Browser {
    digest: [u8; 32],
    /// Value that pages send back with each change.
    pub(crate) page_token: String,
}

impl Logins {
    pub(crate) fn new(port: u16) -> Self {
        let cookie_name = format!("cofferdam_{port}");
        Self { cookie_name, keys: Mutex::default(), browsers: Mutex::default() }
    }

    /// Creates a key, with which one browser can log in within five minutes.
    pub(crate) fn new_key(&self) -> Result<String, InspectorError> {
        let key = new_secret()?;
        let mut keys = self.keys.lock();
        keys.retain(|key| key.expires > Instant::now());
        if keys.len() >= KEYS_MAX {
            keys.remove(0);
        }
        keys.push(IssuedKey { digest: digest(&key), expires: Instant::now() + KEY_TIME_MAX });
        Ok(key)
    }

    /// Uses a key up. Returns the `Set-Cookie` header for the browser, or `None` for a key that
    /// was never created, is used or is too old.
    pub(crate) fn log_in(&self, key: &str) -> Result<Option<String>, InspectorError> {
        let found = digest(key);
        let mut keys = self.keys.lock();
        let count = keys.len();
        keys.retain(|key| key.expires > Instant::now());
        let expired = count - keys.len();
        keys.retain(|key| !bool::from(key.digest.ct_eq(&found)));
        if count - expired == keys.len() {
            return Ok(None);
        }
        drop(keys);
        let (secret, page_token) = (new_secret()?, new_secret()?);
        let mut browsers = self.browsers.lock();
        if browsers.len() >= BROWSERS_MAX {
            browsers.remove(0);
        }
        browsers.push(Browser { digest: digest(&secret), page_token });
        let name = &self.cookie_name;
        Ok(Some(format!("{name}={secret}; Path=/; HttpOnly; SameSite=Strict")))
    }

    /// Returns the browser that a request is from. Several cookies may have the name: another
    /// program on this machine can set one.
    pub(crate) fn browser(&self, headers: &HeaderMap) -> Option<Browser> {
        let cookies = headers.get_all(header::COOKIE).iter();
        let cookies = cookies.filter_map(|value| value.to_str().ok());
        let pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == self.cookie_name).then_some(value)
        });
        let browsers = self.browsers.lock();
        let mut digests = pairs.take(BROWSERS_MAX).map(digest);
        digests.find_map(|found| {
            browsers.iter().find(|browser| browser.digest.ct_eq(&found).into()).cloned()
        })
    }
}

impl Browser {
    /// Returns whether a page of this browser has sent the token.
    pub(crate) fn is_own_token(&self, token: &[u8]) -> bool {
        self.page_token.as_bytes().ct_eq(token).into()
    }
}

fn new_secret() -> Result<String, InspectorError> {
    let mut random = [0; SECRET_BYTES];
    getrandom::fill(&mut random).map_err(|_| InspectorError::NoRandomNumbers)?;
    Ok(BASE64URL_NOPAD.encode(&random))
}

fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(cookie: &str) -> HeaderMap {
        let cookie = HeaderValue::from_str(cookie).unwrap();
        HeaderMap::from_iter([(header::COOKIE, cookie)])
    }

    #[test]
    fn a_key_is_used_once() {
        let logins = Logins::new(8080);
        let key = logins.new_key().unwrap();
        assert_eq!(key.len(), 43);
        assert!(logins.log_in("guess").unwrap().is_none());
        let cookie = logins.log_in(&key).unwrap().unwrap();
        assert!(
            cookie.starts_with("cofferdam_8080=") && cookie.contains("; HttpOnly; SameSite=Strict")
        );
        assert!(logins.log_in(&key).unwrap().is_none());
    }

    #[test]
    fn keys_expire() {
        let logins = Logins::new(8080);
        let key = logins.new_key().unwrap();
        logins.keys.lock()[0].expires = Instant::now();
        assert!(logins.log_in(&key).unwrap().is_none());
    }

    #[test]
    fn a_browser_is_known_by_the_cookie_of_this_port() {
        let logins = Logins::new(8080);
        let key = logins.new_key().unwrap();
        let cookie = logins.log_in(&key).unwrap().unwrap();
        let pair = cookie.split(';').next().unwrap();
        let browser = logins.browser(&headers(&format!("a=b; cofferdam_8080=x; {pair}"))).unwrap();
        assert!(browser.is_own_token(browser.page_token.as_bytes()));
        assert!(!browser.is_own_token(b"") && !browser.is_own_token(pair.as_bytes()));
        let other_port = pair.replace("8080", "8081");
        assert!(logins.browser(&headers(&other_port)).is_none());
        assert!(Logins::new(8080).browser(&headers(pair)).is_none());
        assert!(logins.browser(&headers("cofferdam_8080=")).is_none());
    }

    #[test]
    fn the_oldest_browser_makes_room() {
        let logins = Logins::new(1);
        let mut cookies = Vec::new();
        for _ in 0..=BROWSERS_MAX {
            let key = logins.new_key().unwrap();
            cookies.push(logins.log_in(&key).unwrap().unwrap());
        }
        let is_known = |cookie: &str| logins.browser(&headers(cookie)).is_some();
        assert!(!is_known(&cookies[0]) && is_known(&cookies[1]) && is_known(&cookies[64]));
    }
}
