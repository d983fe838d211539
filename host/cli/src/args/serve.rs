//! What can be typed behind `cofferdam serve`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::PluginArgs;

pub(crate) const EXAMPLES: &str = "\
Without --http the client is whoever started the command, on standard input and output.

Examples:
  cofferdam serve --plugin text.wasm --plugin csv.wasm --mount data=./reports:ro
  cofferdam serve --config cofferdam.toml --toolset reports
  cofferdam serve --config cofferdam.toml --http 127.0.0.1:8391
  cofferdam serve --config cofferdam.toml --search
  cofferdam serve --skills ./skills
  cofferdam mcp config --host claude --config cofferdam.toml";

#[derive(Debug, Clone, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    /// Listen for HTTP on an address instead, such as 127.0.0.1:8391 or just 8391; port 0 takes a
    /// free one
    #[arg(long, value_name = "ADDRESS", value_parser = http_address)]
    pub(crate) http: Option<SocketAddr>,
    /// The file with the bearer token that HTTP clients send; made if it is not there [default: in
    /// the user's state directory]
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<PathBuf>,
    /// Let every program on this machine call over HTTP, without a token
    #[arg(long, requires = "http", conflicts_with = "token_file")]
    pub(crate) no_auth: bool,
    /// Offer only the tools of a [toolsets.NAME] of the configuration; may be given more than once
    #[arg(long = "toolset", value_name = "NAME", requires = "config")]
    pub(crate) toolsets: Vec<String>,
    /// Offer only these tools
    #[arg(long, value_name = "TOOL,…", value_delimiter = ',')]
    pub(crate) tools: Vec<String>,
    /// Offer two tools that find and call the others, for when there are hundreds
    #[arg(long)]
    pub(crate) search: bool,
    /// Who asks a person before a tool runs that needs approval
    #[arg(long, value_name = "WHO", value_enum, default_value_t = Approvals::Ask)]
    pub(crate) approvals: Approvals,
    /// Longest text of one result in KiB; the whole of a longer one can be read as a resource
    /// [default: 96]
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub(crate) result_size: Option<u32>,
    /// Form of the schemas in lists of tools
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Schemas::Portable)]
    pub(crate) schemas: Schemas,
    /// Facts about its call that each result carries
    #[arg(long, value_name = "FORM", value_enum, default_value_t = ReceiptForm::Short)]
    pub(crate) receipts: ReceiptForm,
    /// The same as `--receipts none`
    #[arg(long, hide = true, conflicts_with = "receipts")]
    pub(crate) no_receipts: bool,
    /// Do not look for changes of plugins and configuration
    #[arg(long)]
    pub(crate) no_watch: bool,
}

/// Form of the schemas that are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Schemas {
    /// With the keywords that every client and model API takes
    Portable,
    /// As published, in JSON Schema 2020-12
    Exact,
}

/// Form of the receipts of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReceiptForm {
    /// Nothing
    None,
    /// Call id, shortened digests of the plugin and of its grants, duration
    Short,
    /// Whole digests, CPU time, memory, changed files and contacted hosts as well
    Full,
}

/// Reads an address with a port. A port without an address is one of this machine only.
fn http_address(typed: &str) -> Result<SocketAddr, String> {
    match typed.strip_prefix(':').unwrap_or(typed).parse() {
        Ok(port) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        Err(_) => typed
            .parse()
            .map_err(|_| "expected ADDRESS:PORT, such as 127.0.0.1:8391, or a port".to_owned()),
    }
}

/// Who asks a person before a tool runs that needs approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approvals {
    /// The server, through the client (elicitation); a client that cannot ask gets an error
    Ask,
    /// The client, by its own rules
    Client,
}
