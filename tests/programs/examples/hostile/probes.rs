//! Probes the host.

use cofferdam_test_programs::Content;
use wasip2::cli::environment::{get_arguments, get_environment, initial_cwd};
use wasip2::cli::{terminal_stderr, terminal_stdin, terminal_stdout};
use wasip2::random::random::get_random_bytes;

use crate::cofferdam::plugin::call;

pub fn attack(name: &str) -> Option<Vec<Content>> {
    let answer = match name {
        "environment" => {
            format!("{:?} {:?} {:?}", get_environment(), get_arguments(), initial_cwd())
        }
        "terminals" => format!(
            "{} {} {}",
            terminal_stdin::get_terminal_stdin().is_some(),
            terminal_stdout::get_terminal_stdout().is_some(),
            terminal_stderr::get_terminal_stderr().is_some(),
        ),
        "a_gibibyte_of_random" => get_random_bytes(1 << 30).len().to_string(),
        "random_that_repeats" => (get_random_bytes(16) == get_random_bytes(16)).to_string(),
        "paths_of_the_host" => {
            let places = [
                "/",
                ".",
                "..",
                "/etc/passwd",
                "/proc/self/environ",
                "/dev/random",
                "/tmp",
                "C:\\",
                "~",
            ];
            let seen = |place: &&str| std::fs::metadata(place).is_ok();
            places.iter().filter(|place| seen(place)).count().to_string()
        }
        "names_of_hosts" => {
            let resolved = std::net::ToSocketAddrs::to_socket_addrs(&("localhost", 80));
            resolved.map_or_else(|error| format!("{:?}", error.kind()), |_| "resolved".to_owned())
        }
        "listen" => {
            let bound = std::net::TcpListener::bind("127.0.0.1:0");
            bound.map_or_else(|error| format!("{:?}", error.kind()), |_| "listening".to_owned())
        }
        "send_a_datagram" => {
            let sent = std::net::UdpSocket::bind("127.0.0.1:0")
                .and_then(|s| s.send_to(b"x", "127.0.0.1:9"));
            sent.map_or_else(|error| format!("{:?}", error.kind()), |_| "sent".to_owned())
        }
        "the_call" => format!("{:?} {:?}", call::session(), call::cancelled()),
        _ => return None,
    };
    super::text(answer)
}
