//! Store of results in a bucket of JetStream, which all gateways of a tenant share.
//!
//! An operator can create the bucket beforehand, with other limits or placement. Otherwise it is
//! created with three replicas, or one if the server is not a member of a cluster.

use std::error::Error as _;
use std::time::Duration;

use async_nats::jetstream::context::{
    AccountErrorKind, CreateKeyValueError, CreateStreamError, CreateStreamErrorKind,
};
use async_nats::jetstream::kv::{Config, Operation, Store, UpdateError, UpdateErrorKind};
use async_nats::jetstream::{self, Context, ErrorCode};
use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::timeout;

use super::{NatsBus, NatsError};
use crate::bus::Bus as _;
use crate::keyed::{KeyedResults, StoreUnavailable, StoredEntry};
use crate::subject::{self, Tenant};

/// Maximum size of an entry in bytes, as of the store in memory.
const VALUE_BYTES_MAX: usize = 512 * 1024;
/// Smallest limit of a bucket for an entry: most results have less.
const VALUE_BYTES_MIN: usize = 16 * 1024;
/// Bytes for the headers of a message, which count as a part of the entry.
const HEADERS_BYTES: usize = 1024;
/// Maximum size of a bucket in bytes. Further calls with keys are refused; calls without are not
/// affected.
const BUCKET_BYTES_MAX: i64 = 1024 * 1024 * 1024;
/// Time after which an entry is forgotten, as in the store in memory.
const AGE_MAX: Duration = Duration::from_hours(24);
/// Shortest such time of a bucket. Callers repeat calls for longer than a call takes.
const AGE_MIN: Duration = Duration::from_hours(1);
/// Numbers of replicas to try.
const REPLICAS: [usize; 2] = [3, 1];
/// Maximum time to wait for one answer of JetStream, which answers in milliseconds or elects a
/// leader for seconds.
const ANSWER_WAIT: Duration = Duration::from_secs(2);
/// Maximum time to open the bucket.
const OPEN_WAIT: Duration = Duration::from_secs(10);

/// Results in a bucket of JetStream.
pub struct NatsResults {
    bucket: Store,
    value_bytes_max: usize,
}

impl NatsResults {
    /// Opens the bucket of a tenant, and creates it if it is missing.
    ///
    /// # Errors
    /// If JetStream is off, the bucket cannot be created, or its limits are too low.
    pub async fn open(bus: &NatsBus, tenant: &Tenant) -> Result<Self, NatsError> {
        let name = subject::results_bucket(tenant);
        let failed = |cause: String| NatsError::Bucket { bucket: name.clone(), cause };
        let opening = timeout(OPEN_WAIT, open_or_create(bus, &name)).await;
        let bucket =
            opening.map_err(|_| failed(format!("no answer in {} s", OPEN_WAIT.as_secs())))??;
        let value_bytes_max = value_bytes_max(&bucket, bus.message_bytes_max())?;
        Ok(Self { bucket, value_bytes_max })
    }

    /// Writes an entry if its last message has this number.
    async fn update(
        &self,
        name: &str,
        revision: u64,
        value: &Bytes,
    ) -> Result<Option<u64>, StoreUnavailable> {
        let written = timeout(ANSWER_WAIT, self.bucket.update(name, value.clone(), revision)).await;
        match written.map_err(|_| silent())? {
            Ok(revision) => Ok(Some(revision)),
            Err(error) if has_changed(&error) => Ok(None),
            Err(error) => Err(StoreUnavailable(error.to_string())),
        }
    }

    /// Returns the last message of an entry, and whether it is a marker of a deletion.
    async fn last(&self, name: &str) -> Result<Option<(StoredEntry, bool)>, StoreUnavailable> {
        let entry = timeout(ANSWER_WAIT, self.bucket.entry(name)).await.map_err(|_| silent())?;
        let entry = entry.map_err(|error| StoreUnavailable(error.to_string()))?;
        Ok(entry.map(|entry| {
            let is_marker = entry.operation != Operation::Put;
            (StoredEntry { value: entry.value, revision: entry.revision }, is_marker)
        }))
    }
}

#[async_trait]
impl KeyedResults for NatsResults {
    async fn read(&self, name: &str) -> Result<Option<StoredEntry>, StoreUnavailable> {
        let last = self.last(name).await?;
        Ok(last.and_then(|(entry, is_marker)| (!is_marker).then_some(entry)))
    }

    async fn write(
        &self,
        name: &str,
        expected: Option<u64>,
        value: Bytes,
    ) -> Result<Option<u64>, StoreUnavailable> {
        if let Some(revision) = expected {
            return self.update(name, revision, &value).await;
        }
        if let Some(revision) = self.update(name, 0, &value).await? {
            return Ok(Some(revision));
        }
        // An entry that an operator has deleted leaves a marker.
        match self.last(name).await? {
            Some((marker, true)) => self.update(name, marker.revision, &value).await,
            _ => Ok(None),
        }
    }

    fn value_bytes_max(&self) -> usize {
        self.value_bytes_max
    }

    fn is_shared(&self) -> bool {
        true
    }
}

async fn open_or_create(bus: &NatsBus, name: &str) -> Result<Store, NatsError> {
    let context = jetstream::new(bus.client.clone());
    let failed = |cause: String| NatsError::Bucket { bucket: name.to_owned(), cause };
    if let Err(error) = context.query_account().await {
        return Err(match error.kind() {
            AccountErrorKind::JetStreamUnavailable => {
                NatsError::JetStreamOff { servers: bus.servers.clone() }
            }
            AccountErrorKind::JetStream(error) if is_off(error.error_code()) => {
                NatsError::JetStreamOff { servers: bus.servers.clone() }
            }
            _ => failed(error.to_string()),
        });
    }
    // A failure is that of the creation as well, or the bucket is missing.
    if let Ok(bucket) = context.get_key_value(name).await {
        return Ok(bucket);
    }
    create(&context, name).await.map_err(|error| failed(error.to_string()))
}

async fn create(context: &Context, name: &str) -> Result<Store, CreateKeyValueError> {
    let [most, least] = REPLICAS.map(|num_replicas| Config {
        bucket: name.to_owned(),
        description: "Results of calls with idempotency keys".to_owned(),
        max_value_size: i32::try_from(VALUE_BYTES_MAX + HEADERS_BYTES).unwrap_or(i32::MAX),
        history: 1,
        max_age: AGE_MAX,
        max_bytes: BUCKET_BYTES_MAX,
        num_replicas,
        ..Config::default()
    });
    match context.create_key_value(most).await {
        Err(error) if is_single_server(&error) => context.create_key_value(least).await,
        created => created,
    }
}

/// Checks the limits of a bucket, which may be that of an operator. Returns the maximum size of an
/// entry.
fn value_bytes_max(bucket: &Store, message_bytes_max: usize) -> Result<usize, NatsError> {
    let config = &bucket.stream.cached_info().config;
    let too_small = |found: String, needed: String| NatsError::BucketTooSmall {
        bucket: bucket.name.clone(),
        found,
        needed,
    };
    if !config.max_age.is_zero() && config.max_age < AGE_MIN {
        let (found, needed) = (config.max_age.as_secs(), AGE_MIN.as_secs());
        return Err(too_small(format!("entries of {found} s"), format!("{needed} s")));
    }
    // Zero and negative numbers stand for no limit.
    let limit = usize::try_from(config.max_message_size).ok().filter(|limit| *limit > 0);
    let limit = limit.unwrap_or(usize::MAX).min(message_bytes_max);
    if limit < VALUE_BYTES_MIN + HEADERS_BYTES {
        let needed = VALUE_BYTES_MIN + HEADERS_BYTES;
        return Err(too_small(format!("values of {limit} bytes"), format!("{needed} bytes")));
    }
    Ok(VALUE_BYTES_MAX.min(limit - HEADERS_BYTES))
}

fn is_off(code: ErrorCode) -> bool {
    [ErrorCode::JETSTREAM_NOT_ENABLED, ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT].contains(&code)
}

fn is_single_server(error: &CreateKeyValueError) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<CreateStreamError>());
    let Some(CreateStreamErrorKind::JetStream(error)) = cause.map(CreateStreamError::kind) else {
        return false;
    };
    error.error_code() == ErrorCode::STREAM_REPLICAS_NOT_SUPPORTED
}

/// Returns whether an entry was not written because it has another revision. Clusters of servers
/// have an error of their own for changes that are on their way.
fn has_changed(error: &UpdateError) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        let code = error.downcast_ref::<jetstream::Error>().map(jetstream::Error::error_code);
        if code == Some(ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT) {
            return true;
        }
        cause = error.source();
    }
    error.kind() == UpdateErrorKind::WrongLastRevision
}

fn silent() -> StoreUnavailable {
    StoreUnavailable(format!("JetStream has not answered for {} s", ANSWER_WAIT.as_secs()))
}
