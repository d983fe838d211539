//! Resolves names to addresses.

use std::fmt;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Semaphore;

/// Maximum number of concurrent system lookups. Each holds a thread, even after its caller has
/// stopped waiting.
const LOOKUPS_MAX: usize = 32;

/// Resolves host names.
#[async_trait]
pub trait Resolver: fmt::Debug + Send + Sync {
    /// Returns the addresses of `name`, the preferred one first. Called once per request.
    ///
    /// # Errors
    /// If the name cannot be looked up.
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// Resolver of the system, with its search list, hosts file and cache.
#[derive(Debug)]
pub struct SystemResolver {
    permits: Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self { permits: Arc::new(Semaphore::new(LOOKUPS_MAX)) }
    }
}

#[async_trait]
impl Resolver for SystemResolver {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(io::Error::other)?;
        let name = name.to_owned();
        let lookup = tokio::task::spawn_blocking(move || {
            // The system's function cannot be interrupted, so the thread holds the permit until it
            // ends.
            let _permit = permit;
            let found = (name.as_str(), 0).to_socket_addrs()?;
            Ok(found.map(|address| address.ip()).collect())
        });
        lookup.await.map_err(io::Error::other)?
    }
}
