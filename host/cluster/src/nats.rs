//! The bus over NATS: core publish and subscribe. Only [`NatsResults`] uses JetStream.
//!
//! This is the only module that names the client library. A lost connection is restored in the
//! background, with all subscriptions; what is published meanwhile waits in memory, up to the
//! capacity of the client.

mod credentials;
mod last_read;
mod results;
mod tls;

use std::error::Error as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{
    Client, ConnectError, ConnectErrorKind, ConnectOptions, Event, ServerAddr, ServerError,
    StatusCode, Subscriber,
};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;

use self::credentials::{CredentialsFile, NatsCredentials};
pub use self::results::NatsResults;
pub use self::tls::ClientCertificate;
use crate::bus::{Bus, BusError, BusMessage, BusState, Subscription};
use crate::frame::HEADER_BYTES_MAX;

/// Time to wait for the first connection.
const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// Interval in which a silent connection is tested. Two unanswered tests end it.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// Start of the server's message about a subscription that the user's permissions do not cover.
const SUBSCRIPTION_REFUSED: &str = "permissions violation for subscription";
/// Smallest `max_payload` of a server: a header, and a body that is worth a message.
const MESSAGE_BYTES_MIN: usize = 4 * HEADER_BYTES_MAX;

/// Address of a server, or of several of one cluster, and the credentials for it.
#[derive(Clone, Default)]
pub struct NatsOptions {
    /// Addresses: `nats://HOST:PORT` or `tls://HOST:PORT`, several separated by commas. They may
    /// contain a user and a password, or a token.
    pub servers: String,
    /// File with credentials, instead of those in the address, which other users of the machine can
    /// see: `USER:PASSWORD`, a token or the nkey seed of a user (`SU…`) in one line, or a JWT and a
    /// seed as `nsc` writes them (`.creds`). It is read again for each connection.
    pub credentials_file: Option<PathBuf>,
    /// Certificate for servers that ask for one (`verify`), or that take the user from it
    /// (`verify_and_map`). All connections are encrypted then.
    pub certificate: Option<ClientCertificate>,
    /// File with the certificates of authorities (PEM), instead of those of Mozilla.
    pub authorities_file: Option<PathBuf>,
    /// Name of the connection in the server's monitoring.
    pub name: String,
}

/// Error returned when no connection can be established. Each message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NatsError {
    /// The address is invalid.
    #[error("expected `nats://HOST:PORT` or `tls://HOST:PORT`, found `{found}`")]
    Address {
        /// The invalid address, without credentials.
        found: String,
    },
    /// No server answers.
    #[error("no NATS server answers at {servers}; start one (`nats-server`) or correct --cluster")]
    Unreachable {
        /// Addresses, without credentials.
        servers: String,
    },
    /// The server does not accept the credentials.
    #[error(
        "the NATS server at {servers} refuses the credentials; pass those of its configuration \
         with --cluster-credentials or in the address"
    )]
    Refused {
        /// Addresses, without credentials.
        servers: String,
    },
    /// TLS failed.
    #[error(
        "no secure connection to the NATS server at {servers}: {cause}; pass the authority of its \
         certificate with --cluster-ca, and a certificate with --cluster-cert if it asks for one"
    )]
    Tls {
        /// Addresses, without credentials.
        servers: String,
        /// Cause, as the client library says it.
        cause: String,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {cause}", .path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        cause: String,
    },
    /// Messages of the server are too small.
    #[error(
        "the NATS server allows messages of {found} bytes, and {MESSAGE_BYTES_MIN} are needed; \
         raise its `max_payload`"
    )]
    MessagesTooSmall {
        /// Limit of the server in bytes.
        found: usize,
    },
    /// JetStream is off.
    #[error(
        "JetStream is off at {servers}; start the servers with it (`nats-server -js`), or keep \
         results in memory (--cluster-results memory)"
    )]
    JetStreamOff {
        /// Addresses, without credentials.
        servers: String,
    },
    /// The bucket for results cannot be opened.
    #[error(
        "cannot create the bucket `{bucket}` in JetStream: {cause}; permit the subjects of \
         JetStream to the gateway's user, raise the limits of its account, or create the bucket \
         with `nats kv add`"
    )]
    Bucket {
        /// Name of the bucket.
        bucket: String,
        /// Cause, as the server or the client library says it.
        cause: String,
    },
    /// The limits of the bucket for results are too low.
    #[error(
        "the bucket `{bucket}` in JetStream allows {found}, and {needed} are needed; raise the \
         limit with `nats stream edit KV_{bucket}`"
    )]
    BucketTooSmall {
        /// Name of the bucket.
        bucket: String,
        /// Limit of the bucket.
        found: String,
        /// Smallest limit that is enough.
        needed: String,
    },
}

/// Connection to NATS.
pub struct NatsBus {
    client: Client,
    /// Addresses, without credentials.
    servers: String,
    /// True if the server has refused a subscription of the current connection.
    refuses_subscription: Arc<AtomicBool>,
}

impl NatsBus {
    /// Connects. The first connection must succeed; later ones are restored.
    ///
    /// # Errors
    /// [`NatsError`] if there is no connection.
    pub async fn connect_ambient(options: NatsOptions) -> Result<Self, NatsError> {
        let (addresses, servers) = addresses(&options.servers)?;
        let uses_tls = addresses.iter().any(|address| address.scheme() == "tls");
        let refuses_subscription = Arc::<AtomicBool>::default();
        let refusal = Arc::clone(&refuses_subscription);
        // The client library ignores credentials in addresses.
        let of_address = addresses.iter().find_map(NatsCredentials::of_address);
        let connect = match options.credentials_file {
            Some(path) => CredentialsFile::read_ambient(path)?.connect_options(),
            None => of_address.map_or_else(ConnectOptions::new, NatsCredentials::connect_options),
        };
        let tls = tls::config(options.authorities_file.as_deref(), options.certificate.as_ref())?;
        let connect = connect
            .name(&options.name)
            .connection_timeout(CONNECT_WAIT)
            .ping_interval(PING_INTERVAL)
            .require_tls(uses_tls || options.certificate.is_some())
            .tls_client_config(tls)
            .event_callback(move |event| {
                note_event(&event, &refusal);
                std::future::ready(())
            });
        let connecting = tokio::time::timeout(CONNECT_WAIT, connect.connect(addresses)).await;
        let client = match connecting {
            Err(_) => return Err(NatsError::Unreachable { servers }),
            Ok(connected) => connected.map_err(|error| not_connected(&error, servers.clone()))?,
        };
        let found = client.max_payload();
        if found < MESSAGE_BYTES_MIN {
            return Err(NatsError::MessagesTooSmall { found });
        }
        Ok(Self { client, servers, refuses_subscription })
    }
}

/// Logs an event of the connection, and notes in `refuses_subscription` what it says about that. A
/// new connection subscribes again.
fn note_event(event: &Event, refuses_subscription: &AtomicBool) {
    tracing::info!(%event, "connection to NATS");
    match event {
        Event::Connected => refuses_subscription.store(false, Ordering::Relaxed),
        Event::ServerError(ServerError::Other(message)) => {
            let start = message.get(..SUBSCRIPTION_REFUSED.len());
            if start.is_some_and(|start| start.eq_ignore_ascii_case(SUBSCRIPTION_REFUSED)) {
                refuses_subscription.store(true, Ordering::Relaxed);
            }
        }
        _ => {}
    }
}

fn not_connected(error: &ConnectError, servers: String) -> NatsError {
    match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            NatsError::Refused { servers }
        }
        ConnectErrorKind::Tls => NatsError::Tls { servers, cause: error.to_string() },
        _ => match tls_error(error) {
            Some(cause) => NatsError::Tls { servers, cause },
            None => NatsError::Unreachable { servers },
        },
    }
}

/// Returns the failure of a handshake, which the client library reports as one of the connection.
fn tls_error(error: &ConnectError) -> Option<String> {
    let io = error.source()?.downcast_ref::<std::io::Error>()?;
    let cause = io.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(cause.to_string())
}

/// Returns the addresses, and how a message shows them: without credentials.
fn addresses(written: &str) -> Result<(Vec<ServerAddr>, String), NatsError> {
    let mut addresses = Vec::new();
    let mut shown = Vec::new();
    for address in written.split(',').map(str::trim) {
        // Credentials may be in front of the host.
        let found = || address.rsplit('@').next().unwrap_or_default().to_owned();
        let parsed: ServerAddr =
            address.parse().map_err(|_| NatsError::Address { found: found() })?;
        if !["nats", "tls"].contains(&parsed.scheme()) || parsed.host().is_empty() {
            return Err(NatsError::Address { found: found() });
        }
        shown.push(format!("{}:{}", parsed.host(), parsed.port()));
        addresses.push(parsed);
    }
    Ok((addresses, shown.join(", ")))
}

#[async_trait]
impl Bus for NatsBus {
    async fn publish(
        &self,
        subject: &str,
        reply: Option<&str>,
        payload: Bytes,
    ) -> Result<(), BusError> {
        let (bytes, bytes_max) = (payload.len(), self.message_bytes_max());
        if bytes > bytes_max {
            return Err(BusError::TooLarge { bytes, bytes_max });
        }
        let subject = subject.to_owned();
        let published = match reply {
            Some(reply) => self.client.publish_with_reply(subject, reply.to_owned(), payload).await,
            None => self.client.publish(subject, payload).await,
        };
        published.map_err(disconnected)
    }

    async fn subscribe(
        &self,
        subject: &str,
        group: Option<&str>,
    ) -> Result<Box<dyn Subscription>, BusError> {
        let subject = subject.to_owned();
        let subscriber = match group {
            Some(group) => self.client.queue_subscribe(subject, group.to_owned()).await,
            None => self.client.subscribe(subject).await,
        };
        let subscriber = subscriber.map_err(disconnected)?;
        // The server must know the subscription before others learn its subject from this node.
        self.flush().await?;
        Ok(Box::new(NatsSubscription { subscriber }))
    }

    async fn flush(&self) -> Result<(), BusError> {
        self.client.flush().await.map_err(disconnected)
    }

    fn message_bytes_max(&self) -> usize {
        self.client.max_payload()
    }

    fn state(&self) -> BusState {
        match self.client.connection_state() {
            State::Connected if self.refuses_subscription.load(Ordering::Relaxed) => {
                BusState::SubscriptionRefused
            }
            State::Connected => BusState::Connected,
            State::Pending | State::Disconnected => BusState::Disconnected,
        }
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        tokio::spawn(task);
    }
}

struct NatsSubscription {
    subscriber: Subscriber,
}

#[async_trait]
impl Subscription for NatsSubscription {
    async fn next(&mut self) -> Option<BusMessage> {
        let message = self.subscriber.next().await?;
        Some(BusMessage {
            subject: message.subject.into_string(),
            reply: message.reply.map(|reply| reply.into_string()),
            payload: message.payload,
            is_undeliverable: message.status == Some(StatusCode::NO_RESPONDERS),
        })
    }

    async fn close(&mut self) {
        // An error means that the connection is closed, and the subscription with it.
        let _ = self.subscriber.drain().await;
    }
}

fn disconnected(error: impl std::fmt::Display) -> BusError {
    BusError::Disconnected(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_credentials() {
        let (parsed, shown) = addresses("nats://user:secret@a:4222, tls://b:4333").unwrap();
        assert_eq!((parsed.len(), shown.as_str()), (2, "a:4222, b:4333"));
        let error = addresses("http://user:secret@a:1").err().unwrap().to_string();
        assert_eq!(error, "expected `nats://HOST:PORT` or `tls://HOST:PORT`, found `a:1`");
        assert!(addresses("").is_err());
    }
}
