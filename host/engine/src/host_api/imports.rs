//! Imports that exist, the capability behind each, and the grants that they need.

use serde::{Deserialize, Serialize};

/// Capability that an import gives to a plugin, at the granularity of an operator's decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Capability {
    /// Files: `wasi:filesystem`.
    Files,
    /// File stores: `cofferdam:plugin/files`.
    FileStores,
    /// HTTP requests: `wasi:http`.
    Http,
    /// Sockets: `wasi:sockets`.
    Sockets,
    /// Calls of other tools: `cofferdam:plugin/toolbox` and `cofferdam:plugin/tool-calls`.
    Toolbox,
    /// Readable secrets: `cofferdam:plugin/secrets`.
    Secrets,
    /// Configuration values: `wasi:config`.
    Config,
    /// Environment variables: `wasi:cli/environment`.
    Environment,
    /// Standard input: `wasi:cli/stdin`.
    StandardInput,
    /// Output: `wasi:cli/stdout`, `stderr` and the terminal interfaces.
    Log,
    /// Clocks: `wasi:clocks`.
    Clock,
    /// Random numbers: `wasi:random`.
    Random,
    /// Exit of the guest: `wasi:cli/exit`.
    Exit,
    /// Information about the call: `cofferdam:plugin/call`.
    Call,
    /// Questions to the caller: `cofferdam:plugin/client`.
    Client,
    /// Reports of unexpected errors: `cofferdam:plugin/errors`.
    Errors,
    /// Support for other interfaces: `wasi:io`, and packages that contain only types.
    Plumbing,
}

/// Condition under which an import is available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImportCondition {
    /// Linked for every plugin; the grants determine what it can access.
    Offered,
    /// Linked for a plugin that has a matching grant, and to a refusal for all others.
    IfGranted,
}

impl Capability {
    /// Describes a plugin with this import, as a verb phrase.
    #[must_use]
    pub fn in_plain_words(self) -> &'static str {
        match self {
            Self::Files => "reads and writes files in mounts that are granted",
            Self::FileStores => "reads, writes and searches mounts that are granted",
            Self::Http => "makes HTTP requests that are granted",
            Self::Sockets => "opens network connections that are granted",
            Self::Toolbox => "calls other tools that are granted",
            Self::Secrets => "reads secrets that are granted",
            Self::Config => "reads configuration values that are granted",
            Self::Environment => "reads environment variables that are granted",
            Self::StandardInput => "reads standard input, which is always empty",
            Self::Log => "writes to the call log",
            Self::Clock => "reads the clock and waits",
            Self::Random => "draws random numbers",
            Self::Exit => "ends itself early",
            Self::Call => "asks about its call and reports progress",
            Self::Client => "logs for the client, and asks it what is granted",
            Self::Errors => "reports its unexpected errors",
            Self::Plumbing => "uses the types and streams that the others need",
        }
    }
}

/// Looks up an import by its name in the component, such as `wasi:io/streams@0.2.6`. Returns `None`
/// if the host does not know it.
pub(crate) fn look_up(import: &str) -> Option<(Capability, ImportCondition)> {
    let (path, version) = import.split_once('@').unwrap_or((import, ""));
    let (package, interface) = path.split_once('/')?;
    let capability = match package {
        "cofferdam:plugin" if version == "0.1.0" => own(interface)?,
        _ if version == "0.2" || version.starts_with("0.2.") => wasi(package, interface)?,
        _ => return None,
    };
    let standing = match capability {
        Capability::Sockets => ImportCondition::IfGranted,
        _ => ImportCondition::Offered,
    };
    Some((capability, standing))
}

fn own(interface: &str) -> Option<Capability> {
    match interface {
        "types" => Some(Capability::Plumbing),
        "call" => Some(Capability::Call),
        "client" => Some(Capability::Client),
        "errors" => Some(Capability::Errors),
        "files" => Some(Capability::FileStores),
        "tool-calls" | "toolbox" => Some(Capability::Toolbox),
        "secrets" => Some(Capability::Secrets),
        _ => None,
    }
}

fn wasi(package: &str, interface: &str) -> Option<Capability> {
    match (package, interface) {
        ("wasi:io", "error" | "poll" | "streams") => Some(Capability::Plumbing),
        ("wasi:clocks", "monotonic-clock" | "wall-clock") => Some(Capability::Clock),
        ("wasi:random", "random" | "insecure" | "insecure-seed") => Some(Capability::Random),
        ("wasi:filesystem", "types" | "preopens") => Some(Capability::Files),
        ("wasi:cli", "environment") => Some(Capability::Environment),
        ("wasi:cli", "exit") => Some(Capability::Exit),
        ("wasi:cli", "stdin" | "terminal-stdin" | "terminal-input") => {
            Some(Capability::StandardInput)
        }
        (
            "wasi:cli",
            "stdout" | "stderr" | "terminal-stdout" | "terminal-stderr" | "terminal-output",
        ) => Some(Capability::Log),
        ("wasi:config", "store") => Some(Capability::Config),
        ("wasi:sockets", _) => Some(Capability::Sockets),
        ("wasi:http", "types" | "outgoing-handler") => Some(Capability::Http),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_patch_of_wasi_0_2_is_known_and_no_other_version() {
        assert_eq!(
            look_up("wasi:io/streams@0.2.0"),
            Some((Capability::Plumbing, ImportCondition::Offered))
        );
        assert_eq!(
            look_up("wasi:filesystem/types@0.2.12"),
            Some((Capability::Files, ImportCondition::Offered))
        );
        assert_eq!(look_up("wasi:io/streams@0.3.0"), None);
        assert_eq!(look_up("wasi:io/streams@0.20.0"), None);
        assert_eq!(look_up("wasi:io/streams"), None);
    }

    #[test]
    fn the_network_is_known() {
        assert_eq!(
            look_up("wasi:sockets/tcp@0.2.3"),
            Some((Capability::Sockets, ImportCondition::IfGranted))
        );
        assert_eq!(
            look_up("wasi:http/outgoing-handler@0.2.3"),
            Some((Capability::Http, ImportCondition::Offered))
        );
        assert_eq!(look_up("wasi:http/incoming-handler@0.2.3"), None);
    }

    #[test]
    fn strangers_are_unknown() {
        for import in [
            "env",
            "",
            "@",
            "/",
            "wasi:nn/tensor@0.2.0",
            "cofferdam:plugin/call@0.2.0",
            "my:own/thing@1.0.0",
        ] {
            assert_eq!(look_up(import), None, "{import}");
        }
    }
}
