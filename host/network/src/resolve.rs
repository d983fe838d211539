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

/// Maximum number of concurrent lookups of one requester.
const LOOKUPS_OF_ONE_MAX: usize = 4;

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

/// Share of a resolver for one requester. A lookup counts until it ends, also after its caller has
/// stopped waiting.
#[derive(Debug)]
pub(crate) struct LimitedResolver {
    resolver: Arc<dyn Resolver>,
    permits: Arc<Semaphore>,
}

impl LimitedResolver {
    pub(crate) fn new(resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, permits: Arc::new(Semaphore::new(LOOKUPS_OF_ONE_MAX)) }
    }
}

#[async_trait]
impl Resolver for LimitedResolver {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(io::Error::other)?;
        let (resolver, name) = (Arc::clone(&self.resolver), name.to_owned());
        let lookup = tokio::spawn(async move {
            let found = resolver.addresses(&name).await;
            drop(permit);
            found
        });
        lookup.await.map_err(io::Error::other)?
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    /// Resolver whose lookups do not end before `release`.
    #[derive(Debug)]
    struct Slow {
        running: AtomicUsize,
        release: Semaphore,
    }

    #[async_trait]
    impl Resolver for Slow {
        async fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
            self.running.fetch_add(1, Ordering::Relaxed);
            let permit = self.release.acquire().await;
            drop(permit);
            self.running.fetch_sub(1, Ordering::Relaxed);
            Ok(Vec::new())
        }
    }

    #[tokio::test]
    async fn abandoned_lookups_count_until_they_end() {
        let slow = Arc::new(Slow { running: AtomicUsize::new(0), release: Semaphore::new(0) });
        let limited = LimitedResolver::new(Arc::clone(&slow) as Arc<dyn Resolver>);
        let abandon = async || {
            tokio::time::timeout(Duration::from_millis(1), limited.addresses("a")).await.is_err()
        };
        for _ in 0..20 {
            assert!(abandon().await);
        }
        assert_eq!(slow.running.load(Ordering::Relaxed), LOOKUPS_OF_ONE_MAX);
        let other = LimitedResolver::new(Arc::clone(&slow) as Arc<dyn Resolver>);
        let waiting = tokio::time::timeout(Duration::from_millis(1), other.addresses("b")).await;
        assert!(waiting.is_err());
        assert_eq!(slow.running.load(Ordering::Relaxed), LOOKUPS_OF_ONE_MAX + 1);
        slow.release.add_permits(1);
        assert!(limited.addresses("a").await.is_ok());
    }
}
