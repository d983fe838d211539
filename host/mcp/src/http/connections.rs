//! Limits of connections per address and per principal, so that a client with many connections
//! cannot keep others out.
//!
//! A connection is silent until a request on it has been authenticated. The number of silent
//! connections is limited in total and per address, and a new one evicts the oldest. When the
//! server is full, a new connection evicts the one that has been idle longest. Connections with an
//! authenticated request in flight are never closed to make room.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// All open connections of one listener.
pub(super) struct Connections {
    max: usize,
    open: Mutex<OpenConnections>,
    freed: Notify,
}

#[derive(Default)]
struct OpenConnections {
    next: u64,
    connections: HashMap<u64, HttpConnection>,
}

struct HttpConnection {
    address: IpAddr,
    /// Principal of its last authenticated request.
    principal: Option<Arc<str>>,
    in_flight: usize,
    since: Instant,
    closed: CancellationToken,
}

/// Slot of one connection, released on drop.
pub(super) struct ConnectionPermit {
    connections: Arc<Connections>,
    number: u64,
    /// Fires when the connection has to make room.
    pub(super) closed: CancellationToken,
}

/// Request in flight on a connection.
pub(super) struct InFlight(Arc<ConnectionPermit>);

impl Connections {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max: max.max(1), open: Mutex::default(), freed: Notify::new() })
    }

    /// Returns the maximum number of connections without an authenticated request.
    fn silent_max(&self) -> usize {
        (self.max / 2).max(1)
    }

    /// Returns the maximum number of connections without an authenticated request from one address.
    fn silent_per_address_max(&self) -> usize {
        (self.max / 4).max(1)
    }

    /// Returns the maximum number of connections of one principal.
    fn per_principal_max(&self) -> usize {
        (self.max / 2).max(1)
    }

    /// Waits until a new connection can get a slot.
    pub(super) async fn has_room(&self) {
        loop {
            let freed = self.freed.notified();
            if self.open.lock().has_room(self.max) {
                return;
            }
            freed.await;
        }
    }

    /// Assigns a slot to an accepted connection, and closes older connections if necessary.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr) -> Arc<ConnectionPermit> {
        let mut open = self.open.lock();
        let is_silent = |connection: &HttpConnection| connection.principal.is_none();
        let here =
            |connection: &HttpConnection| is_silent(connection) && connection.address == address;
        while open.count(here) >= self.silent_per_address_max() && open.close_longest_idle(here) {}
        while open.count(is_silent) >= self.silent_max() && open.close_longest_idle(is_silent) {}
        while open.connections.len() >= self.max
            && (open.close_longest_idle(is_silent) || open.close_longest_idle(|_| true))
        {}
        let (number, closed) = (open.next, CancellationToken::new());
        open.next += 1;
        let connection = HttpConnection {
            address,
            principal: None,
            in_flight: 0,
            since: Instant::now(),
            closed: closed.clone(),
        };
        open.connections.insert(number, connection);
        Arc::new(ConnectionPermit { connections: Arc::clone(self), number, closed })
    }
}

impl OpenConnections {
    fn count(&self, which: impl Fn(&HttpConnection) -> bool) -> usize {
        self.connections.values().filter(|connection| which(connection)).count()
    }

    fn has_room(&self, max: usize) -> bool {
        self.connections.len() < max || self.connections.values().any(HttpConnection::can_close)
    }

    /// Closes the connection that has been idle longest among those that `which` selects. Returns
    /// false if no such connection exists.
    fn close_longest_idle(&mut self, which: impl Fn(&HttpConnection) -> bool) -> bool {
        let idle = self
            .connections
            .iter()
            .filter(|(_, connection)| connection.can_close() && which(connection));
        let Some(number) =
            idle.min_by_key(|(_, connection)| connection.since).map(|(number, _)| *number)
        else {
            return false;
        };
        if let Some(connection) = self.connections.remove(&number) {
            connection.closed.cancel();
        }
        true
    }
}

impl HttpConnection {
    /// Returns true if the connection may be closed to make room. A request without a valid token
    /// does not protect its connection.
    fn can_close(&self) -> bool {
        self.in_flight == 0 || self.principal.is_none()
    }
}

impl ConnectionPermit {
    /// Counts an authenticated request of a principal. Returns `None` if the principal already has
    /// too many connections.
    pub(super) fn begin(self: &Arc<Self>, principal: &str) -> Option<InFlight> {
        let most = self.connections.per_principal_max();
        let mut open = self.connections.open.lock();
        let of_principal = |connection: &HttpConnection| {
            connection.principal.as_deref().is_some_and(|name| name == principal)
        };
        let is_new =
            open.connections.get(&self.number).is_some_and(|connection| !of_principal(connection));
        if is_new && open.count(of_principal) >= most && !open.close_longest_idle(of_principal) {
            return None;
        }
        if let Some(connection) = open.connections.get_mut(&self.number) {
            if is_new {
                connection.principal = Some(principal.into());
            }
            connection.in_flight += 1;
        }
        Some(InFlight(Arc::clone(self)))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut open = self.0.connections.open.lock();
        if let Some(connection) = open.connections.get_mut(&self.0.number) {
            connection.in_flight = connection.in_flight.saturating_sub(1);
            connection.since = Instant::now();
        }
        drop(open);
        self.0.connections.freed.notify_one();
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.connections.open.lock().connections.remove(&self.number);
        self.connections.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn the_oldest_silent_connection_makes_room() {
        let connections = Connections::new(8);
        let silent: Vec<_> = (0..20).map(|_| connections.admit(HERE)).collect();
        let closed = silent.iter().filter(|permit| permit.closed.is_cancelled()).count();
        assert_eq!(closed, 18, "2 of 8 for one address");
        assert!(!silent[19].closed.is_cancelled() && silent[0].closed.is_cancelled());
        let other = connections.admit("192.0.2.1".parse().unwrap());
        assert!(!other.closed.is_cancelled() && !silent[18].closed.is_cancelled());
    }

    #[test]
    fn a_principal_has_half_of_all_connections() {
        let connections = Connections::new(8);
        let busy: Vec<_> = (0..4)
            .map(|_| {
                let permit = connections.admit(HERE);
                let in_flight = permit.begin("a").unwrap();
                (permit, in_flight)
            })
            .collect();
        let fifth = connections.admit(HERE);
        assert!(fifth.begin("a").is_none());
        assert!(fifth.begin("b").is_some());
        let mut busy = busy.into_iter();
        let (idle, in_flight) = busy.next().unwrap();
        drop(in_flight);
        assert!(connections.admit(HERE).begin("a").is_some(), "an idle one makes room");
        assert!(idle.closed.is_cancelled() && busy.len() == 3);
    }

    #[tokio::test]
    async fn requests_in_flight_are_not_closed_for_a_new_connection() {
        let connections = Connections::new(2);
        let first = connections.admit(HERE);
        let first_busy = first.begin("a").unwrap();
        let second = connections.admit(HERE);
        let second_busy = second.begin("b").unwrap();
        assert!(!connections.open.lock().has_room(2));
        drop(first_busy);
        connections.has_room().await;
        let third = connections.admit(HERE);
        assert!(
            first.closed.is_cancelled()
                && !second.closed.is_cancelled()
                && !third.closed.is_cancelled()
        );
        drop(second_busy);
    }
}
