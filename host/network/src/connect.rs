//! Connects to one of the addresses of a host.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use cofferdam_tool::permission::{AddressRange, Host, HttpScheme};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::target::Target;
use crate::{AddressClass, NetworkError, NetworkStage, Resolver, address};

/// Connection with or without TLS.
pub(crate) enum NetworkStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Connects to `target` at an address that is public or in `granted`, or fails at `ends_at`.
pub(crate) async fn connect(
    resolver: &dyn Resolver,
    tls: &Arc<rustls::ClientConfig>,
    target: &Target,
    granted: &[AddressRange],
    ends_at: Instant,
) -> Result<NetworkStream, NetworkError> {
    let found = match &target.host {
        Host::Address(address) => vec![*address],
        Host::Name(name) => {
            let lookup = timeout_at(ends_at, resolver.addresses(name)).await;
            lookup
                .map_err(|_| NetworkError::Timeout(NetworkStage::Lookup))?
                .map_err(NetworkError::Lookup)?
        }
    };
    let first = *found.first().ok_or(NetworkError::NoAddress)?;
    let addresses = address::admitted(&found, granted);
    if addresses.is_empty() {
        return Err(NetworkError::AddressRefused {
            host: target.host.clone(),
            address: first.to_canonical(),
            class: AddressClass::of(first),
        });
    }
    let stream = tcp(&addresses, target.port, ends_at).await?;
    match target.scheme {
        HttpScheme::Http => Ok(NetworkStream::Plain(stream)),
        HttpScheme::Https => {
            let handshake =
                TlsConnector::from(Arc::clone(tls)).connect(server_name(&target.host)?, stream);
            let stream = timeout_at(ends_at, handshake).await;
            let stream =
                stream.map_err(|_| NetworkError::Timeout(NetworkStage::Tls))?.map_err(tls_error)?;
            Ok(NetworkStream::Tls(Box::new(stream)))
        }
    }
}

/// Tries the addresses in order, giving each an equal share of the remaining time.
async fn tcp(addresses: &[IpAddr], port: u16, ends_at: Instant) -> Result<TcpStream, NetworkError> {
    let mut last = NetworkError::NoAddress;
    for (tried, address) in addresses.iter().enumerate() {
        let left = ends_at.saturating_duration_since(Instant::now());
        let to_try = u32::try_from(addresses.len().saturating_sub(tried)).unwrap_or(1).max(1);
        let share = left.checked_div(to_try).unwrap_or(Duration::ZERO);
        last = match timeout(share, TcpStream::connect(SocketAddr::new(*address, port))).await {
            Ok(Ok(stream)) => {
                // Requests are written in one piece, so waiting for more data would only delay
                // them. A failure here does not justify failing the request.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => NetworkError::Connect(error),
            Err(_) => NetworkError::Timeout(NetworkStage::Connect),
        };
    }
    Err(last)
}

/// Returns the name that the certificate must be for: the host of the URL.
fn server_name(host: &Host) -> Result<ServerName<'static>, NetworkError> {
    match host {
        Host::Address(address) => Ok(ServerName::from(*address)),
        Host::Name(name) => ServerName::try_from(name.clone())
            .map_err(|error| NetworkError::Tls(io::Error::new(io::ErrorKind::InvalidInput, error))),
    }
}

fn tls_error(error: io::Error) -> NetworkError {
    match error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>()) {
        Some(cause @ rustls::Error::InvalidCertificate(_)) => {
            NetworkError::Certificate(cause.clone())
        }
        Some(cause @ rustls::Error::AlertReceived(_)) => NetworkError::TlsAlert(cause.clone()),
        _ => NetworkError::Tls(error),
    }
}

impl AsyncRead for NetworkStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for NetworkStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
