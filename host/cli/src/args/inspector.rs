//! `--inspector` of the commands that run tools.

use std::net::SocketAddr;

use clap::Args;

use super::serve::http_address;

/// Value of `--inspector` that lets pages answer approvals.
const APPROVE: &str = "approve";

#[derive(Debug, Clone, Args)]
pub(crate) struct InspectorArgs {
    /// Show the calls on pages for a browser on this machine, at ADDRESS [default: 127.0.0.1 and a
    /// free port], which is printed on stderr; with `approve`, the pages also answer approvals and
    /// questions of tools
    #[arg(long, value_name = "approve|ADDRESS", value_parser = inspector_flag, num_args = 0..=1,
          require_equals = true, default_missing_value = "0")]
    pub(crate) inspector: Option<InspectorFlag>,
}

/// Value of `--inspector`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InspectorFlag {
    pub(crate) address: SocketAddr,
    /// True if pages answer approvals and questions of tools.
    pub(crate) approves: bool,
}

/// Parses `approve`, an address, or both with a comma between.
fn inspector_flag(typed: &str) -> Result<InspectorFlag, String> {
    let expected = |_| format!("expected `{APPROVE}`, ADDRESS:PORT or `{APPROVE},ADDRESS:PORT`");
    let (approves, address) = match typed.strip_prefix(APPROVE) {
        Some("") => (true, "0"),
        Some(rest) => (true, rest.strip_prefix(',').unwrap_or(typed)),
        None => (false, typed),
    };
    Ok(InspectorFlag { address: http_address(address).map_err(expected)?, approves })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_and_address_are_one_value() {
        let parsed = |typed| {
            let flag = inspector_flag(typed).ok()?;
            Some((flag.address.to_string(), flag.approves))
        };
        let any = "127.0.0.1:0".to_owned();
        assert_eq!(parsed("0"), Some((any.clone(), false)));
        assert_eq!(parsed("approve"), Some((any, true)));
        assert_eq!(parsed("7000"), Some(("127.0.0.1:7000".to_owned(), false)));
        assert_eq!(parsed("approve,[::1]:7000"), Some(("[::1]:7000".to_owned(), true)));
        for other in ["", "approve,", "approve7000", "approves", "view", "7000,approve"] {
            assert_eq!(parsed(other), None, "{other}");
        }
    }
}
