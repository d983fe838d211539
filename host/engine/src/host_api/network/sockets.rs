//! `wasi:sockets` for guests that were granted a connection: the runtime's sockets, with our own
//! name lookup and address policy.
//!
//! A guest looks up a name and then connects to an address, in two separate calls. They are linked
//! by a list of the addresses that lookups of this call have returned for granted hosts; only these
//! can be connected to, apart from addresses that a grant names. Binding and listening are refused,
//! except for what connecting itself needs.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_network::{Resolver, admitted};
use cofferdam_tool::CallRecord;
use cofferdam_tool::permission::{
    AddressRange, Host, SocketProtocol, SocketRule, is_public_address,
};
use parking_lot::Mutex;
use wasmtime::component::{Linker, Resource, ResourceType};
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::p2::bindings::sockets as p2;
use wasmtime_wasi::p2::bindings::sockets::network::{
    ErrorCode, IpAddress, Network as NetworkHandle,
};
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};
use wasmtime_wasi::runtime::{AbortOnDropJoinHandle, poll_noop, spawn};
use wasmtime_wasi::sockets::{SocketAddrUse, WasiSockets, WasiSocketsView};

use super::ledger::TrafficLedger;
use crate::Grants;
use crate::host_api::CallState;

/// Name of the interface in the runtime. The linker matches a guest's own patch version of 0.2 with
/// it.
const LOOKUP: &str = "wasi:sockets/ip-name-lookup@0.2.12";
/// Maximum number of looked-up addresses that one call remembers; a name may resolve to different
/// ones every time.
const ADDRESSES_MAX: usize = 256;

/// Addresses that the sockets of one call may reach.
#[derive(Clone)]
pub(super) struct AllowedAddresses {
    grants: Arc<Grants>,
    resolver: Arc<dyn Resolver>,
    found: Arc<Mutex<Vec<ResolvedAddress>>>,
    ledger: TrafficLedger,
}

/// Address that a lookup has returned.
#[derive(PartialEq, Eq)]
struct ResolvedAddress {
    rule: SocketRule,
    address: IpAddr,
}

type Lookup = Result<std::vec::IntoIter<IpAddr>, ErrorCode>;

/// Answers of one lookup, which may still be in progress.
enum LookupResult {
    Pending(AbortOnDropJoinHandle<Lookup>),
    Ready(Lookup),
}

impl AllowedAddresses {
    pub(super) fn new(grants: &Arc<Grants>, resolver: &Arc<dyn Resolver>) -> Self {
        Self {
            grants: Arc::clone(grants),
            resolver: Arc::clone(resolver),
            found: Arc::default(),
            ledger: TrafficLedger::default(),
        }
    }

    pub(super) fn report(&self, record: &mut CallRecord) {
        self.ledger.report(record);
    }

    /// Returns whether the guest has reached something, or looked up a name.
    pub(super) fn is_used(&self) -> bool {
        let found = self.found.lock();
        !found.is_empty() || self.ledger.has_contacts()
    }

    /// Makes the sockets of `builder` check addresses here.
    pub(super) fn open(&self, builder: &mut WasiCtxBuilder) {
        let has = |protocol| self.grants.sockets.iter().any(|rule| rule.protocol == protocol);
        builder.allow_tcp(has(SocketProtocol::Tcp)).allow_udp(has(SocketProtocol::Udp));
        let reach = self.clone();
        builder.socket_addr_check(move |address, what_for| {
            let may = reach.may(address, what_for);
            Box::pin(async move { may })
        });
    }

    fn may(&self, to: SocketAddr, what_for: SocketAddrUse) -> bool {
        match what_for {
            // Connecting and sending need a local port, but the guest must not choose it.
            SocketAddrUse::TcpBind | SocketAddrUse::UdpBind => {
                to.ip().is_unspecified() && to.port() == 0
            }
            SocketAddrUse::TcpListen | SocketAddrUse::TcpAccept => false,
            SocketAddrUse::TcpConnect => self.reaches(SocketProtocol::Tcp, to, true),
            SocketAddrUse::UdpSend => self.reaches(SocketProtocol::Udp, to, true),
            // The guest does not control what others send, so this is not recorded.
            SocketAddrUse::UdpReceive => self.reaches(SocketProtocol::Udp, to, false),
        }
    }

    fn reaches(&self, protocol: SocketProtocol, to: SocketAddr, is_noted: bool) -> bool {
        let address = to.ip().to_canonical();
        let named = SocketRule { protocol, host: Host::Address(address), port: to.port() };
        let rule = match self.grants.sockets.get(&named) {
            Some(rule) => Some(rule.clone()),
            None => self.looked_up(&named, address),
        };
        if is_noted {
            match &rule {
                Some(rule) => self.ledger.contact(&rule.host, rule.port),
                None => self.ledger.no_connection(&named),
            }
        }
        rule.is_some()
    }

    /// Returns the granted name behind an address that a lookup of this call has returned.
    fn looked_up(&self, wanted: &SocketRule, address: IpAddr) -> Option<SocketRule> {
        let found = self.found.lock();
        let is_it = |found: &&ResolvedAddress| {
            found.address == address
                && (found.rule.protocol, found.rule.port) == (wanted.protocol, wanted.port)
        };
        found.iter().find(is_it).map(|found| found.rule.clone())
    }

    /// Looks up `name` if a grant covers it. The answers are public addresses, or addresses that a
    /// grant names.
    async fn lookup(self, name: String) -> Lookup {
        // An address instead of a name needs no lookup.
        if let Ok(address) = name.parse::<IpAddr>() {
            return Ok(vec![address.to_canonical()].into_iter());
        }
        let Ok(host @ Host::Name(_)) = Host::parse(&name) else {
            return Err(ErrorCode::InvalidArgument);
        };
        let rules: Vec<_> = self.grants.sockets.iter().filter(|rule| rule.host == host).collect();
        if rules.is_empty() {
            self.ledger.no_lookup(&host);
            return Err(ErrorCode::AccessDenied);
        }
        let found = self.resolver.addresses(&host.to_string()).await;
        let found = found.map_err(|_| ErrorCode::NameUnresolvable)?;
        let addresses = admitted(&found, &self.named_addresses());
        if addresses.is_empty() {
            match found.first() {
                Some(address) => self.ledger.no_address(&host, *address),
                None => return Err(ErrorCode::NameUnresolvable),
            }
            return Err(ErrorCode::AccessDenied);
        }
        let mut known = self.found.lock();
        for address in addresses.iter().filter(|address| is_public_address(**address)) {
            for rule in &rules {
                let found = ResolvedAddress { rule: (*rule).clone(), address: *address };
                if known.len() < ADDRESSES_MAX && !known.contains(&found) {
                    known.push(found);
                }
            }
        }
        Ok(addresses.into_iter())
    }

    fn named_addresses(&self) -> Vec<AddressRange> {
        let address = |rule: &SocketRule| match rule.host {
            Host::Address(address) => Some(AddressRange::from(address)),
            Host::Name(_) => None,
        };
        self.grants.sockets.iter().filter_map(address).collect()
    }
}

#[async_trait]
impl Pollable for LookupResult {
    async fn ready(&mut self) {
        if let Self::Pending(lookup) = self {
            *self = Self::Ready(lookup.await);
        }
    }
}

impl LookupResult {
    fn next(&mut self) -> Result<Option<IpAddress>, ErrorCode> {
        if let Self::Pending(lookup) = self {
            match poll_noop(std::pin::Pin::new(lookup)) {
                Some(answers) => *self = Self::Ready(answers),
                None => return Err(ErrorCode::WouldBlock),
            }
        }
        match self {
            Self::Ready(Ok(answers)) => Ok(answers.next().map(IpAddress::from)),
            Self::Ready(Err(code)) => Err(*code),
            Self::Pending(_) => Err(ErrorCode::WouldBlock),
        }
    }
}

/// Links `wasi:sockets` for a plugin that was granted a connection.
pub(crate) fn link_sockets(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    type S = WasiSockets;
    let options = p2::network::LinkOptions::default();
    p2::network::add_to_linker::<_, S>(linker, &options, CallState::sockets)?;
    p2::instance_network::add_to_linker::<_, S>(linker, CallState::sockets)?;
    p2::tcp_create_socket::add_to_linker::<_, S>(linker, CallState::sockets)?;
    p2::tcp::add_to_linker::<_, S>(linker, CallState::sockets)?;
    p2::udp_create_socket::add_to_linker::<_, S>(linker, CallState::sockets)?;
    p2::udp::add_to_linker::<_, S>(linker, CallState::sockets)?;
    link_lookup(linker)
}

fn link_lookup(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    let mut lookup = linker.instance(LOOKUP)?;
    lookup.resource(
        "resolve-address-stream",
        ResourceType::host::<LookupResult>(),
        |mut store, stream| {
            store.data_mut().resources.delete(Resource::<LookupResult>::new_own(stream))?;
            Ok(())
        },
    )?;
    lookup.func_wrap(
        "resolve-addresses",
        |mut store, (network, name): (Resource<NetworkHandle>, String)| {
            let state = store.data_mut();
            state.resources.get(&network)?;
            let answers = LookupResult::Pending(spawn(
                state.network.reach(&state.plugin).clone().lookup(name),
            ));
            Ok((Ok::<_, ErrorCode>(state.resources.push(answers)?),))
        },
    )?;
    lookup.func_wrap(
        "[method]resolve-address-stream.resolve-next-address",
        |mut store, (stream,): (Resource<LookupResult>,)| {
            Ok((store.data_mut().resources.get_mut(&stream)?.next(),))
        },
    )?;
    lookup.func_wrap(
        "[method]resolve-address-stream.subscribe",
        |mut store,
         (stream,): (Resource<LookupResult>,)|
         -> wasmtime::Result<(Resource<DynPollable>,)> {
            Ok((subscribe(&mut store.data_mut().resources, stream)?,))
        },
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fixed(&'static [&'static str]);

    #[async_trait]
    impl Resolver for Fixed {
        async fn addresses(&self, _name: &str) -> std::io::Result<Vec<IpAddr>> {
            Ok(self.0.iter().map(|text| text.parse().unwrap()).collect())
        }
    }

    fn reach(rules: &[&str], answers: &'static [&'static str]) -> AllowedAddresses {
        let sockets = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        let grants = Arc::new(Grants { sockets, ..Grants::default() });
        let resolver: Arc<dyn Resolver> = Arc::new(Fixed(answers));
        AllowedAddresses::new(&grants, &resolver)
    }

    async fn answers(reach: &AllowedAddresses, name: &str) -> Result<Vec<String>, ErrorCode> {
        let found = reach.clone().lookup(name.to_owned()).await?;
        Ok(found.map(|address| address.to_string()).collect())
    }

    fn connects(reach: &AllowedAddresses, to: &str) -> bool {
        reach.may(to.parse().unwrap(), SocketAddrUse::TcpConnect)
    }

    #[tokio::test]
    async fn an_address_of_a_name_is_reached_after_its_lookup_and_at_its_port_alone() {
        let reach = reach(
            &["tcp db.example:5432", "udp db.example:53"],
            &["8.8.8.8", "10.0.0.1", "127.0.0.1"],
        );
        assert!(!connects(&reach, "8.8.8.8:5432"));
        assert_eq!(answers(&reach, "DB.example.").await.unwrap(), ["8.8.8.8"]);
        assert!(connects(&reach, "8.8.8.8:5432"));
        for other in [
            "8.8.8.8:53",
            "8.8.4.4:5432",
            "10.0.0.1:5432",
            "127.0.0.1:5432",
            "[::ffff:10.0.0.1]:5432",
        ] {
            assert!(!connects(&reach, other), "{other}");
        }
        assert!(reach.may("8.8.8.8:53".parse().unwrap(), SocketAddrUse::UdpSend));
        assert!(!reach.may("8.8.8.8:5432".parse().unwrap(), SocketAddrUse::UdpSend));
        let mut record = CallRecord::default();
        reach.report(&mut record);
        assert_eq!((record.hosts[0].host.as_str(), record.hosts[0].port), ("db.example", 5432));
        assert_eq!(record.refused[0].capability, "socket:tcp 8.8.8.8:5432");
    }

    #[tokio::test]
    async fn an_address_that_is_not_public_is_reached_if_a_grant_names_it() {
        let reach = reach(&["tcp db.example:5432", "tcp 10.0.0.1:5432"], &["10.0.0.1", "10.0.0.2"]);
        assert_eq!(answers(&reach, "db.example").await.unwrap(), ["10.0.0.1"]);
        assert!(connects(&reach, "10.0.0.1:5432"));
        assert!(!connects(&reach, "10.0.0.2:5432") && !connects(&reach, "10.0.0.1:22"));
    }

    #[tokio::test]
    async fn other_names_are_not_looked_up() {
        let reach = reach(&["tcp db.example:5432"], &["127.0.0.1"]);
        for (name, code) in [
            ("evil.example", ErrorCode::AccessDenied),
            ("db.example", ErrorCode::AccessDenied),
            ("0x7f.1", ErrorCode::InvalidArgument),
            ("a b", ErrorCode::InvalidArgument),
        ] {
            assert_eq!(answers(&reach, name).await.unwrap_err(), code, "{name}");
        }
        assert_eq!(answers(&reach, "::1").await.unwrap(), ["::1"]);
        assert!(!connects(&reach, "[::1]:5432"));
    }

    #[test]
    fn no_port_of_ours_is_for_the_guest_to_choose() {
        let reach = reach(&["tcp 127.0.0.1:80"], &[]);
        let may = |to: &str, what_for| reach.may(to.parse().unwrap(), what_for);
        assert!(may("0.0.0.0:0", SocketAddrUse::TcpBind) && may("[::]:0", SocketAddrUse::UdpBind));
        assert!(
            !may("0.0.0.0:80", SocketAddrUse::TcpBind)
                && !may("127.0.0.1:0", SocketAddrUse::UdpBind)
        );
        assert!(
            !may("0.0.0.0:0", SocketAddrUse::TcpListen)
                && !may("127.0.0.1:80", SocketAddrUse::TcpAccept)
        );
    }
}
