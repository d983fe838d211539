//! From names to addresses.

use std::fmt;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Semaphore;

/// Lookups of the system that are under way at one time. Each holds a thread, also when nobody
/// waits for it any more.
const LOOKUPS_MAX: usize = 32;

/// Looks names up.
#[async_trait]
pub trait Resolver: fmt::Debug + Send + Sync {
    /// The addresses of `name`, the preferred one first. Called once per request.
    ///
    /// # Errors
    /// When the name cannot be looked up.
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// What the system says, with its search list, hosts file and cache.
#[derive(Debug)]
pub struct SystemResolver {
    places: Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(LOOKUPS_MAX)) }
    }
}

#[async_trait]
impl Resolver for SystemResolver {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(io::Error::other)?;
        let name = name.to_owned();
        let lookup = tokio::task::spawn_blocking(move || {
            // The system's function cannot be interrupted: the place is taken for as long as the
            // thread is.
            let _place = place;
            let found = (name.as_str(), 0).to_socket_addrs()?;
            Ok(found.map(|address| address.ip()).collect())
        });
        lookup.await.map_err(io::Error::other)?
    }
}
