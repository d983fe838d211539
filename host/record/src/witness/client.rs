//! Offers checkpoints to a witness (`add-checkpoint`) and stores its signatures.
//!
//! The witness gets the signed state of the tree and a proof that it extends the one that the
//! witness has signed last; no line of the log. Redirects are not followed, and nothing comes from
//! the environment.

use std::path::Path;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, StatusCode, Url};

use super::lines::WitnessedLines;
use super::note::{SignedState, ahead_name, note_name};
use crate::checkpoint::encode_hash;
use crate::directory::LogDirectory;
use crate::http::{self, root_cause};
use crate::note::{NoteError, SIGNATURE_PREFIX, SigningKey};
use crate::{EvidenceError, WitnessKey};

/// Maximum bytes of a response that are read.
const RESPONSE_BYTES_MAX: usize = 64 * 1024;
/// Maximum characters of a response in a message.
const MESSAGE_CHARS_MAX: usize = 200;
/// Maximum number of requests for one state: the sizes may have to be learned, and another process
/// may be faster.
const ATTEMPTS_MAX: u32 = 3;
/// Content type of the size that a witness has signed.
const SIZE_TYPE: &str = "text/x.tlog.size";

/// Options of a witness.
#[derive(Debug, Clone)]
pub struct WitnessOptions {
    /// Submission prefix, such as `https://witness.example.com`. `/add-checkpoint` is appended.
    pub url: String,
    /// Key of the witness.
    pub key: WitnessKey,
    /// Time for one request, from connecting to the end of the response.
    pub timeout: Duration,
}

/// Client of a witness.
#[derive(Debug, Clone)]
pub struct WitnessClient {
    client: Client,
    url: Url,
    key: WitnessKey,
    timeout: Duration,
}

/// Error returned when a witness has not signed the state of a log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WitnessError {
    /// The address cannot be used.
    #[error("invalid address of a witness: {0}; write it as `https://witness.example.com`")]
    Url(String),
    /// The HTTP client cannot be built.
    #[error("the HTTP client of a witness cannot be built: {0}")]
    Client(String),
    /// The witness cannot be reached, or broke the connection.
    #[error("the witness `{name}` cannot be reached: {cause}")]
    Connection {
        /// Name of the witness.
        name: String,
        /// Cause.
        cause: String,
    },
    /// The witness has refused the checkpoint.
    #[error("the witness `{name}` answered HTTP {status}{message}; {advice}")]
    Status {
        /// Name of the witness.
        name: String,
        /// Status.
        status: u16,
        /// Message of the witness after a colon, or nothing.
        message: String,
        /// Advice about the status.
        advice: &'static str,
    },
    /// The witness has signed more checkpoints than the log has.
    #[error(
        "the witness `{name}` has signed {signed} checkpoints, the log has {found}: it was \
         replaced by an older state"
    )]
    Ahead {
        /// Name of the witness.
        name: String,
        /// Number of checkpoints that the witness has signed.
        signed: u64,
        /// Number of checkpoints of the log.
        found: u64,
    },
    /// The lines that prove what followed the state that the witness has signed are removed.
    #[error(
        "the witness `{name}` has last signed {signed} checkpoints, and the log has removed the \
         lines that prove what followed; start a log in a new directory"
    )]
    Removed {
        /// Name of the witness.
        name: String,
        /// Number of checkpoints that the witness has signed.
        signed: u64,
    },
    /// The signature is not one of the witness.
    #[error("the witness `{name}` returned no valid signature: {error}")]
    Signature {
        /// Name of the witness.
        name: String,
        /// Cause.
        error: NoteError,
    },
    /// The log cannot be read or written.
    #[error(transparent)]
    Log(#[from] EvidenceError),
    /// A thread ended before its work was done.
    #[error("the thread that reads the log has ended early")]
    Reader,
}

/// Answer of a witness.
enum WitnessAnswer {
    /// Signature lines.
    Signed(String),
    /// The witness has last signed another number of lines.
    OtherSize(u64),
}

/// State to sign, with the lines that prove it.
struct OfferedState {
    directory: LogDirectory,
    key: SigningKey,
    lines: WitnessedLines,
    note: String,
}

impl WitnessOptions {
    /// Returns options with 10 seconds for a request.
    pub fn new(url: impl Into<String>, key: WitnessKey) -> Self {
        Self { url: url.into(), key, timeout: Duration::from_secs(10) }
    }
}

impl OfferedState {
    fn read(directory: &Path) -> Result<Option<Self>, EvidenceError> {
        let directory = LogDirectory::open(directory)?;
        let key = SigningKey::load(&directory)?.ok_or(EvidenceError::NoKey)?;
        let lines = WitnessedLines::update(&directory, &key)?;
        let size = lines.len();
        let Some(root) = lines.root(size).filter(|_| size > 0) else { return Ok(None) };
        let name = key.verifier().name();
        let note = key.sign(&format!("{name}\n{size}\n{}\n", encode_hash(&root)))?;
        Ok(Some(Self { directory, key, lines, note }))
    }

    /// Returns the body of a request, or `None` if the log cannot prove that it extends its first
    /// `old` lines.
    fn body(&self, old: u64) -> Option<String> {
        let mut body = format!("old {old}\n");
        for hash in self.lines.proof(old)? {
            body.push_str(&encode_hash(&hash));
            body.push('\n');
        }
        Some(format!("{body}\n{}", self.note))
    }
}

impl WitnessClient {
    /// Returns a client. Nothing is sent yet.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub fn new(options: WitnessOptions) -> Result<Self, WitnessError> {
        let WitnessOptions { url, key, timeout } = options;
        let refused = |problem: &str| WitnessError::Url(problem.to_owned());
        let mut url = Url::parse(&url).map_err(|error| WitnessError::Url(error.to_string()))?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(refused("it is neither `https:` nor `http:`"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("it contains a user or a password"));
        }
        url.set_fragment(None);
        url.path_segments_mut()
            .map_err(|()| refused("nothing can be appended to it"))?
            .pop_if_empty()
            .push("add-checkpoint");
        let client = http::client(&[], timeout).map_err(WitnessError::Client)?;
        Ok(Self { client, url, key, timeout })
    }

    /// Returns the name of the witness.
    #[must_use]
    pub fn name(&self) -> &str {
        self.key.name()
    }

    /// Offers the checkpoints of a log, and stores the signature of the witness. Returns the number
    /// of checkpoints that the witness has signed. Nothing is sent if it has signed them before.
    ///
    /// # Errors
    /// If the log cannot be read, or the witness does not sign.
    pub async fn submit(&self, directory: &Path) -> Result<u64, WitnessError> {
        let mut old = None;
        for _ in 0..ATTEMPTS_MAX {
            let (path, key) = (directory.to_owned(), self.key.clone());
            let read = tokio::task::spawn_blocking(move || {
                let Some(offered) = OfferedState::read(&path)? else { return Ok(None) };
                let log = offered.key.verifier();
                // One that cannot be read is replaced.
                let signed = SignedState::read(&offered.directory, &key, log).ok().flatten();
                Ok::<_, EvidenceError>(Some((offered, signed.map_or(0, |signed| signed.size))))
            });
            let read = read.await.map_err(|_| WitnessError::Reader)??;
            let Some((offered, signed)) = read else { return Ok(0) };
            let size = offered.lines.len();
            if signed == size {
                return Ok(size);
            }
            let known = old.unwrap_or(signed);
            if known > size {
                return self.ahead(offered, known).await;
            }
            let body = offered.body(known);
            let removed = || WitnessError::Removed { name: self.name().to_owned(), signed: known };
            let body = body.ok_or_else(removed)?;
            match self.send(body).await? {
                WitnessAnswer::Signed(lines) => return self.store(offered, &lines).await,
                WitnessAnswer::OtherSize(other) => old = Some(other),
            }
        }
        Err(self.refused(StatusCode::CONFLICT, ""))
    }

    async fn send(&self, body: String) -> Result<WitnessAnswer, WitnessError> {
        let broken =
            |cause: String| WitnessError::Connection { name: self.name().to_owned(), cause };
        let exchange = async {
            let mut response = self.client.post(self.url.clone()).body(body).send().await?;
            let mut text = Vec::new();
            while let Some(chunk) = response.chunk().await? {
                text.extend_from_slice(&chunk);
                if text.len() >= RESPONSE_BYTES_MAX {
                    break;
                }
            }
            Ok::<_, reqwest::Error>((response.status(), response.headers().clone(), text))
        };
        let answered = tokio::time::timeout(self.timeout, exchange).await;
        let answered = answered.map_err(|_| broken("it gave no answer in time".to_owned()))?;
        let (status, headers, text) = answered.map_err(|error| broken(root_cause(&error)))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let is_size =
            headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes() == SIZE_TYPE.as_bytes());
        match status {
            StatusCode::OK => Ok(WitnessAnswer::Signed(text)),
            StatusCode::CONFLICT if is_size => match text.trim_end().parse() {
                Ok(size) => Ok(WitnessAnswer::OtherSize(size)),
                Err(_) => Err(self.refused(status, &text)),
            },
            _ => Err(self.refused(status, &text)),
        }
    }

    /// Checks the signature and stores it with the state.
    async fn store(&self, offered: OfferedState, lines: &str) -> Result<u64, WitnessError> {
        let own = format!("{SIGNATURE_PREFIX}{} ", self.name());
        let lines: String =
            lines.split_inclusive('\n').filter(|line| line.starts_with(&own)).collect();
        let note = format!("{}{lines}", offered.note);
        let name = || self.name().to_owned();
        let checked = self.key.check(&note);
        checked.map_err(|error| WitnessError::Signature { name: name(), error })?;
        let key = self.key.clone();
        let stored = tokio::task::spawn_blocking(move || {
            let size = offered.lines.len();
            // Another process may have stored a later state meanwhile.
            let log = offered.key.verifier();
            let last = SignedState::read(&offered.directory, &key, log).ok().flatten();
            if last.is_none_or(|last| last.size <= size) {
                offered.directory.write(&note_name(&key), note.as_bytes())?;
                offered.directory.remove(&ahead_name(&key))?;
            }
            Ok::<_, EvidenceError>(size)
        });
        Ok(stored.await.map_err(|_| WitnessError::Reader)??)
    }

    /// Notes in the log that the witness has signed more than the log has.
    async fn ahead(&self, offered: OfferedState, signed: u64) -> Result<u64, WitnessError> {
        let found = offered.lines.len();
        let file = ahead_name(&self.key);
        let noted = tokio::task::spawn_blocking(move || {
            offered.directory.write(&file, signed.to_string().as_bytes())
        });
        noted.await.map_err(|_| WitnessError::Reader)?.map_err(EvidenceError::from)?;
        Err(WitnessError::Ahead { name: self.name().to_owned(), signed, found })
    }

    fn refused(&self, status: StatusCode, text: &str) -> WitnessError {
        let shown = |c: char| if c.is_control() { ' ' } else { c };
        let message: String = text.trim().chars().take(MESSAGE_CHARS_MAX).map(shown).collect();
        let message = if message.is_empty() { message } else { format!(": {message}") };
        let status = status.as_u16();
        WitnessError::Status {
            name: self.name().to_owned(),
            status,
            message,
            advice: advice(status),
        }
    }
}

fn advice(status: u16) -> &'static str {
    match status {
        300..=399 => "redirects are not followed, so set `url` to the final address",
        403 => {
            "the witness knows the log by another key; give it the one of `cofferdam log checkpoint`"
        }
        404 => "the witness does not know the log; give it the key of `cofferdam log checkpoint`",
        409 => "the witness has signed another state of the log; `cofferdam log verify` says more",
        422 => "the log is not the one that the witness has signed before",
        429 | 500..=599 => "it is tried again with the next checkpoint",
        _ => "check `url` and the witness",
    }
}
