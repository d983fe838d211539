//! `wasi:sockets` for guests that were granted a connection: the runtime's sockets, with our own
//! lookup of names and our own answer to which addresses they may use.
//!
//! A guest looks a name up and then connects to an address: these are two calls of it. What ties
//! them together is a list of the addresses that lookups of this call have answered for granted
//! hosts; nothing else can be connected to, apart from addresses that a grant names. Binding and
//! listening are refused, but for what connecting itself needs.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use cofferdam_network::{Resolver, admitted};
use cofferdam_tool::CallRecord;
use cofferdam_tool::permission::{
    AddressRange, Host, SocketProtocol, SocketRule, is_public_address,
};
use wasmtime::component::{Linker, Resource, ResourceType};
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::p2::bindings::sockets as p2;
use wasmtime_wasi::p2::bindings::sockets::network::{
    ErrorCode, IpAddress, Network as NetworkHandle,
};
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};
use wasmtime_wasi::runtime::{AbortOnDropJoinHandle, poll_noop, spawn};
use wasmtime_wasi::sockets::{SocketAddrUse, WasiSockets, WasiSocketsView};

use super::ledger::Ledger;
use crate::Grants;
use crate::host_api::CallState;

/// The interface as the runtime names it; a guest's own patch version of 0.2 is matched with it by
/// the linker.
const LOOKUP: &str = "wasi:sockets/ip-name-lookup@0.2.12";
/// Addresses of lookups that one call remembers; names may answer with others every time.
const ADDRESSES_MAX: usize = 256;

/// Addresses that the sockets of one call may reach.
#[derive(Clone)]
pub(super) struct Reach {
    grants: Arc<Grants>,
    resolver: Arc<dyn Resolver>,
    found: Arc<Mutex<Vec<Found>>>,
    ledger: Ledger,
}

/// An address that a lookup has answered.
#[derive(PartialEq, Eq)]
struct Found {
    rule: SocketRule,
    address: IpAddr,
}

type Lookup = Result<std::vec::IntoIter<IpAddr>, ErrorCode>;

/// The answers of one lookup, which may still be under way.
enum Answers {
    Pending(AbortOnDropJoinHandle<Lookup>),
    Ready(Lookup),
}

impl Reach {
    pub(super) fn new(grants: &Arc<Grants>, resolver: &Arc<dyn Resolver>) -> Self {
        Self {
            grants: Arc::clone(grants),
            resolver: Arc::clone(resolver),
            found: Arc::default(),
            ledger: Ledger::default(),
        }
    }

    pub(super) fn report(&self, record: &mut CallRecord) {
        self.ledger.report(record);
    }

    /// Lets the sockets of `builder` ask here.
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
            // Connecting and sending need some port of ours; which one is not for the guest to say.
            SocketAddrUse::TcpBind | SocketAddrUse::UdpBind => {
                to.ip().is_unspecified() && to.port() == 0
            }
            SocketAddrUse::TcpListen | SocketAddrUse::TcpAccept => false,
            SocketAddrUse::TcpConnect => self.reaches(SocketProtocol::Tcp, to, true),
            SocketAddrUse::UdpSend => self.reaches(SocketProtocol::Udp, to, true),
            // What others send is none of the guest's doing.
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

    /// The granted name behind an address that a lookup of this call has answered.
    fn looked_up(&self, wanted: &SocketRule, address: IpAddr) -> Option<SocketRule> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |found: &&Found| {
            found.address == address
                && (found.rule.protocol, found.rule.port) == (wanted.protocol, wanted.port)
        };
        found.iter().find(is_it).map(|found| found.rule.clone())
    }

    /// Looks `name` up if a grant is for it. The answers are public, or addresses that a grant
    /// names.
    async fn lookup(self, name: String) -> Lookup {
        // An address in place of a name is no question for anybody.
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
        let mut known = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        for address in addresses.iter().filter(|address| is_public_address(**address)) {
            for rule in &rules {
                let found = Found { rule: (*rule).clone(), address: *address };
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
impl Pollable for Answers {
    async fn ready(&mut self) {
        if let Self::Pending(lookup) = self {
            *self = Self::Ready(lookup.await);
        }
    }
}

impl Answers {
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
        ResourceType::host::<Answers>(),
        |mut store, stream| {
            store.data_mut().resources.delete(Resource::<Answers>::new_own(stream))?;
            Ok(())
        },
    )?;
    lookup.func_wrap(
        "resolve-addresses",
        |mut store, (network, name): (Resource<NetworkHandle>, String)| {
            let state = store.data_mut();
            state.resources.get(&network)?;
            let answers =
                Answers::Pending(spawn(state.network.reach(&state.plugin).clone().lookup(name)));
            Ok((Ok::<_, ErrorCode>(state.resources.push(answers)?),))
        },
    )?;
    lookup.func_wrap(
        "[method]resolve-address-stream.resolve-next-address",
        |mut store, (stream,): (Resource<Answers>,)| {
            Ok((store.data_mut().resources.get_mut(&stream)?.next(),))
        },
    )?;
    lookup.func_wrap(
        "[method]resolve-address-stream.subscribe",
        |mut store,
         (stream,): (Resource<Answers>,)|
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

    fn reach(rules: &[&str], answers: &'static [&'static str]) -> Reach {
        let sockets = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        let grants = Arc::new(Grants { sockets, ..Grants::default() });
        let resolver: Arc<dyn Resolver> = Arc::new(Fixed(answers));
        Reach::new(&grants, &resolver)
    }

    async fn answers(reach: &Reach, name: &str) -> Result<Vec<String>, ErrorCode> {
        let found = reach.clone().lookup(name.to_owned()).await?;
        Ok(found.map(|address| address.to_string()).collect())
    }

    fn connects(reach: &Reach, to: &str) -> bool {
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
