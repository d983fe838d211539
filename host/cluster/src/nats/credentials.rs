//! Credentials for a server, from a file or an address. No message shows a secret.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_nats::{Auth, AuthError, ConnectOptions, ServerAddr};
use nkeys::{KeyPair, KeyPairType};

use super::NatsError;
use super::last_read::LastRead;

/// Maximum size of a file in bytes. A server takes a JWT of at most 4 KiB, unless its
/// `max_control_line` is larger.
const BYTES_MAX: usize = 64 * 1024;
/// Smallest length of a line that starts like the seed of a user, and is taken for one, so that
/// a damaged seed is not sent to the server as a token. A correct one has 58 characters.
const SEED_LENGTH_MIN: usize = 40;
/// Contents that are expected.
const EXPECTED: &str = "`USER:PASSWORD`, a token or an nkey seed (`SU…`) in one line, or the JWT and \
                        seed of a user as `nsc` writes them";

/// Credentials for a server.
pub(super) enum NatsCredentials {
    Password {
        user: String,
        password: String,
    },
    Token(String),
    /// Key of a user whose public key is in the configuration of the server.
    Key(Box<KeyPair>),
    /// Claims about a user that an account has signed, and the user's key.
    Jwt {
        jwt: String,
        key: Box<KeyPair>,
    },
}

impl NatsCredentials {
    pub(super) fn of_address(address: &ServerAddr) -> Option<Self> {
        let user = address.username()?.to_owned();
        Some(match address.password() {
            Some(password) => Self::Password { user, password: password.to_owned() },
            None => Self::Token(user),
        })
    }

    fn read_ambient(path: &Path) -> Result<Self, NatsError> {
        let failed = |cause: String| NatsError::File { path: path.to_owned(), cause };
        let file = File::open(path).map_err(|error| failed(error.to_string()))?;
        let mut text = String::new();
        let read = file.take(BYTES_MAX as u64 + 1).read_to_string(&mut text);
        read.map_err(|error| failed(error.to_string()))?;
        if text.len() > BYTES_MAX {
            return Err(failed(format!("expected {EXPECTED}, found over {BYTES_MAX} bytes")));
        }
        Self::parse(text.trim()).map_err(failed)
    }

    /// # Errors
    /// The cause, without any part of the text.
    fn parse(text: &str) -> Result<Self, String> {
        if text.contains("BEGIN NATS USER JWT") || text.contains("BEGIN USER NKEY SEED") {
            return Self::parse_creds(text);
        }
        match text {
            "" => Err(format!("expected {EXPECTED}, found nothing")),
            text if text.contains('\n') => Err(format!("expected {EXPECTED}, found several lines")),
            line => Self::parse_line(line),
        }
    }

    fn parse_line(line: &str) -> Result<Self, String> {
        if let Some((user, password)) = line.split_once(':') {
            return Ok(Self::Password { user: user.to_owned(), password: password.to_owned() });
        }
        if is_like_seed(line) || KeyPair::from_seed(line).is_ok() {
            return user_key(line).map(|key| Self::Key(Box::new(key)));
        }
        if KeyPair::from_public_key(line).is_ok() {
            return Err("expected the seed of a user (`SU…`), found a public key".to_owned());
        }
        Ok(Self::Token(line.to_owned()))
    }

    /// Parses a `.creds` file: a JWT and a seed, each in the line after one that says so.
    fn parse_creds(text: &str) -> Result<Self, String> {
        let after = |start: &str| {
            let mut lines = text.lines().map(str::trim);
            lines.find(|line| line.starts_with("---") && line.contains(start))?;
            lines.next().filter(|line| !line.is_empty() && !line.starts_with("---"))
        };
        let missing = |part: &str| {
            format!("expected the JWT and the seed of a user as `nsc` writes them, found no {part}")
        };
        let jwt = after("BEGIN NATS USER JWT").ok_or_else(|| missing("JWT"))?;
        let seed = after("BEGIN USER NKEY SEED").ok_or_else(|| missing("seed"))?;
        let is_base64 = |part: &str| {
            let is_in = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            !part.is_empty() && part.bytes().all(is_in)
        };
        if jwt.split('.').count() != 3 || !jwt.split('.').all(is_base64) {
            return Err(
                "the JWT is damaged: expected three parts in base64url, separated by dots; \
                        copy the file again"
                    .to_owned(),
            );
        }
        Ok(Self::Jwt { jwt: jwt.to_owned(), key: Box::new(user_key(seed)?) })
    }

    /// Returns options of a connection that uses these credentials.
    pub(super) fn connect_options(self) -> ConnectOptions {
        let credentials = Arc::new(self);
        ConnectOptions::with_auth_callback(move |nonce| {
            std::future::ready(credentials.answer(&nonce))
        })
    }

    /// Returns the answer to a server, which has sent a nonce to sign.
    fn answer(&self, nonce: &[u8]) -> Result<Auth, AuthError> {
        let mut auth = Auth::new();
        let key = match self {
            Self::Password { user, password } => {
                (auth.username, auth.password) = (Some(user.clone()), Some(password.clone()));
                return Ok(auth);
            }
            Self::Token(token) => {
                auth.token = Some(token.clone());
                return Ok(auth);
            }
            Self::Key(key) => {
                auth.nkey = Some(key.public_key());
                key
            }
            Self::Jwt { jwt, key } => {
                auth.jwt = Some(jwt.clone());
                key
            }
        };
        auth.signature = Some(key.sign(nonce).map_err(AuthError::new)?);
        Ok(auth)
    }
}

/// Credentials in a file, which is read again for each connection.
pub(super) struct CredentialsFile {
    path: PathBuf,
    last: LastRead<NatsCredentials>,
}

impl CredentialsFile {
    pub(super) fn read_ambient(path: PathBuf) -> Result<Self, NatsError> {
        let last = LastRead::new(NatsCredentials::read_ambient(&path)?);
        Ok(Self { path, last })
    }

    /// Returns options of a connection that uses these credentials.
    pub(super) fn connect_options(self) -> ConnectOptions {
        let file = Arc::new(self);
        ConnectOptions::with_auth_callback(move |nonce| {
            let file = Arc::clone(&file);
            let reading = tokio::task::spawn_blocking(move || {
                file.last.update(NatsCredentials::read_ambient(&file.path))
            });
            async move { reading.await.map_err(AuthError::new)?.answer(&nonce) }
        })
    }
}

/// Returns whether a line looks like the seed of a user, which may be damaged.
fn is_like_seed(line: &str) -> bool {
    line.starts_with("SU")
        && line.len() >= SEED_LENGTH_MIN
        && line.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

/// Returns the key of a user from its seed.
fn user_key(seed: &str) -> Result<KeyPair, String> {
    match KeyPair::from_seed(seed) {
        Ok(key) if key.key_pair_type() == KeyPairType::User => Ok(key),
        Ok(_) => Err("expected the seed of a user (`SU…`), found that of an account, an operator \
                      or a server"
            .to_owned()),
        Err(_) => Err(format!(
            "the nkey seed is damaged: expected 58 characters that end with their checksum, found \
             {} characters; copy it again",
            seed.chars().count()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn creds(jwt: &str, seed: &str) -> String {
        format!(
            "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
             ************************* IMPORTANT *************************\n\
             NKEY Seed printed below can be used to sign and prove identity.\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        )
    }

    fn parse(text: &str) -> Result<&'static str, String> {
        NatsCredentials::parse(text.trim()).map(|credentials| match credentials {
            NatsCredentials::Password { .. } => "password",
            NatsCredentials::Token(_) => "token",
            NatsCredentials::Key(_) => "seed",
            NatsCredentials::Jwt { .. } => "jwt",
        })
    }

    #[test]
    fn the_kind_of_credentials_follows_from_the_text() {
        let user = KeyPair::new_user();
        let seed = user.seed().unwrap();
        let text = creds("eyJ0.eyJz-_.c2ln", &seed);
        // Some editors leave out the last line feed, or write those of Windows.
        for text in [text.clone(), text.trim_end().to_owned(), text.replace('\n', "\r\n")] {
            assert_eq!(parse(&text), Ok("jwt"));
        }
        assert_eq!(parse(&format!("{seed}\n")), Ok("seed"));
        assert_eq!(parse(&format!("user:{seed}")), Ok("password"));
        for token in ["SU", "s3cret", "SUMMER-2026-WITH-A-LONG-TOKEN-THAT-IS-NOT-A-SEED-AT-ALL"] {
            assert_eq!(parse(token), Ok("token"));
        }
    }

    #[test]
    fn mistakes_are_one_line_without_the_secret() {
        let (user, account) = (KeyPair::new_user(), KeyPair::new_account());
        let (seed, of_account) = (user.seed().unwrap(), account.seed().unwrap());
        let other = if seed.ends_with('A') { "B" } else { "A" };
        let (short, _) = seed.split_at(57);
        let wrong = format!("{short}{other}");
        let jwt = "eyJ0.eyJz.c2ln";
        for (text, part) in [
            (String::new(), "found nothing"),
            ("u:p\nmore".to_owned(), "found several lines"),
            (short.to_owned(), "the nkey seed is damaged: expected 58 characters"),
            (wrong.clone(), "found 58 characters; copy it again"),
            (of_account.clone(), "found that of an account, an operator or a server"),
            (user.public_key(), "found a public key"),
            (creds(jwt, &wrong), "the nkey seed is damaged"),
            (creds(jwt, &of_account), "found that of an account"),
            (creds(jwt, ""), "found no seed"),
            (creds("", &seed), "found no JWT"),
            (creds("eyJ0.eyJz", &seed), "the JWT is damaged"),
            (creds("eyJ0.ey z.c2ln", &seed), "the JWT is damaged"),
        ] {
            let message = parse(&text).unwrap_err();
            assert!(message.contains(part), "{message}");
            for secret in [seed.split_at(20).0, of_account.split_at(20).0, "eyJ", "u:p"] {
                assert!(!message.contains(secret), "{message}");
            }
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }
}
