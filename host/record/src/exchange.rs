//! Requests to models with their replies, with which a conversation can run again: redacted and
//! stored, and read back.
//!
//! Messages are JSON of the agent, which this crate does not interpret. A long message is stored
//! once, whatever the number of requests that repeat it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::cleaner::Cleaner;
use crate::directory::LogDirectory;
use crate::entry::PayloadDigest;
use crate::payloads::{PayloadStore, read_blob};
use crate::recordings::INLINE_BYTES_MAX;
use crate::{LogEvent, RecordError, TimedEvent};

/// Version of the format of stored exchanges.
const VERSION: u32 = 1;
/// Maximum bytes of the messages of an exchange. A longer one is not stored.
const BYTES_MAX: usize = 8 * 1024 * 1024;
/// Member of a stored message that names its blob.
const STORED: &str = "stored";

/// Request to a model, and its reply.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ModelExchange {
    /// Messages of the request, as JSON.
    pub request: Vec<Value>,
    /// Messages of the reply, as JSON.
    pub reply: Vec<Value>,
    /// True if something was removed as a secret before the exchange was stored.
    pub is_redacted: bool,
    bytes: usize,
}

/// An exchange as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredExchange {
    version: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_redacted: bool,
    request: Vec<Value>,
    reply: Vec<Value>,
}

impl ModelExchange {
    /// Makes an exchange of messages. Returns `None` if they are too long to be stored.
    #[must_use]
    pub fn new(request: Vec<Value>, reply: Vec<Value>) -> Option<Self> {
        let mut bytes = 0_usize;
        for message in request.iter().chain(&reply) {
            bytes = bytes.saturating_add(message.to_string().len());
            if bytes > BYTES_MAX {
                return None;
            }
        }
        Some(Self { request, reply, is_redacted: false, bytes })
    }

    /// Returns the length of the messages in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl PayloadStore {
    /// Redacts an exchange and stores it, whatever the mode.
    pub(crate) fn add_exchange(
        &mut self,
        exchange: ModelExchange,
        cleaner: &Cleaner,
    ) -> Result<PayloadDigest, RecordError> {
        let ModelExchange { request, reply, mut is_redacted, .. } = exchange;
        let mut store = |messages: Vec<Value>| -> Result<Vec<Value>, RecordError> {
            messages
                .into_iter()
                .map(|mut message| {
                    is_redacted |= cleaner.message(&mut message);
                    let text = message.to_string();
                    if text.len() <= INLINE_BYTES_MAX && message.get(STORED).is_none() {
                        return Ok(message);
                    }
                    let PayloadDigest { hash, .. } = self.keep(text.as_bytes())?;
                    Ok(Value::Object(Map::from_iter([(STORED.to_owned(), hash.into())])))
                })
                .collect()
        };
        let (request, reply) = (store(request)?, store(reply)?);
        let stored = StoredExchange { version: VERSION, is_redacted, request, reply };
        self.keep(&serde_json::to_vec(&stored).map_err(failure)?)
    }
}

/// Reads the exchange of a model's reply. Returns `None` if it was not stored, or a part of it was
/// removed by retention.
pub(crate) fn read_exchange(
    directory: &LogDirectory,
    event: &TimedEvent,
) -> Result<Option<ModelExchange>, RecordError> {
    let LogEvent::Model { exchange: Some(digest), .. } = &event.event else { return Ok(None) };
    let Some(json) = read_blob(directory, &digest.hash)? else { return Ok(None) };
    let stored: StoredExchange = serde_json::from_slice(&json).map_err(failure)?;
    if stored.version != VERSION {
        return Err(RecordError::ExchangeVersion { found: stored.version, known: VERSION });
    }
    let read = |message: Value| match message.get(STORED).and_then(Value::as_str) {
        None => Ok(Some(message)),
        Some(hash) => {
            let json = read_blob(directory, hash)?;
            json.map(|json| serde_json::from_slice(&json).map_err(failure)).transpose()
        }
    };
    let all = |messages: Vec<Value>| messages.into_iter().map(read).collect::<Result<_, _>>();
    let (request, reply): (Option<Vec<_>>, Option<Vec<_>>) =
        (all(stored.request)?, all(stored.reply)?);
    let Some((request, reply)) = request.zip(reply) else { return Ok(None) };
    let exchange = ModelExchange::new(request, reply);
    Ok(exchange.map(|exchange| ModelExchange { is_redacted: stored.is_redacted, ..exchange }))
}

fn failure(error: serde_json::Error) -> RecordError {
    RecordError::file("exchange", std::io::Error::from(error))
}
