//! Rules for connections below HTTP.

use std::fmt;
use std::str::FromStr;

use super::{Host, HostPattern, InvalidHost};

/// Rule that matches connections, written as `tcp db.example.com:5432`. The host is a single name
/// or address, the port a number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketRule {
    /// Protocol of the connection.
    pub protocol: SocketProtocol,
    /// Remote host.
    pub host: Host,
    /// Remote port.
    pub port: u16,
}

/// Protocol over IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SocketProtocol {
    /// A byte stream.
    Tcp,
    /// Datagrams.
    Udp,
}

/// Error returned for a string that is not a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSocketRule {
    /// The string does not have the form of a rule.
    #[error("write it as `tcp host:port` or `udp host:port`")]
    Form,
    /// The host is invalid.
    #[error("has a host that {0}")]
    Host(InvalidHost),
    /// The port is invalid.
    #[error("has a port that is not a number from 1 to 65535")]
    Port,
}

impl FromStr for SocketRule {
    type Err = InvalidSocketRule;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (protocol, end) = text.trim().split_once(' ').ok_or(InvalidSocketRule::Form)?;
        let protocol = match protocol {
            "tcp" => SocketProtocol::Tcp,
            "udp" => SocketProtocol::Udp,
            _ => return Err(InvalidSocketRule::Form),
        };
        let (host, port) = end.rsplit_once(':').ok_or(InvalidSocketRule::Form)?;
        let HostPattern::Exactly(host) =
            HostPattern::parse(host).map_err(InvalidSocketRule::Host)?
        else {
            return Err(InvalidSocketRule::Host(InvalidHost::Wildcard));
        };
        let is_number = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
        match port.parse() {
            Ok(port) if is_number && port != 0 => Ok(Self { protocol, host, port }),
            _ => Err(InvalidSocketRule::Port),
        }
    }
}

impl fmt::Display for SocketRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match self.protocol {
            SocketProtocol::Tcp => "tcp",
            SocketProtocol::Udp => "udp",
        };
        write!(f, "{protocol} {}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_and_one_port() {
        for text in ["tcp db.example.com:5432", "udp 127.0.0.1:53", "tcp [::1]:1"] {
            assert_eq!(text.parse::<SocketRule>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "tcp",
            "tcp a.example",
            "tcp a.example:0",
            "tcp a.example:x",
            "tcp *:1",
            "tcp *.a:1",
            "icmp a:1",
            "tcp ::1:1",
        ] {
            assert!(text.parse::<SocketRule>().is_err(), "{text}");
        }
    }
}
