//! Flags of the commands for plugins from registries.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use cofferdam::Reference;
use cofferdam::config::{ComponentLocation, PluginIndex};
use cofferdam::listing::{ListingOptions, ServerName};

pub(super) const ADD_EXAMPLES: &str = "\
The plugin gets no permission; `cofferdam grant` grants some. Its digest is written to the .lock
file next to the configuration, and other bytes are never used.

A plugin of a registry must be signed by a key of [[registry.trust]] in the configuration, unless
`unsigned` there or --allow-unsigned accept it without.

Examples:
  cofferdam add oci://ghcr.io/acme/csv:1.2.0 --config tools.toml
  cofferdam add oci://ghcr.io/acme/csv:1.2.0 --allow-unsigned
  cofferdam add https://example.com/releases/csv.wasm --name tables --allow-unsigned
  cofferdam add dist/csv.wasm --config tools.toml
  cofferdam add oci://ghcr.io/acme/csv:1.2.0 --from plugins --config tools.toml";

pub(super) const SEARCH_EXAMPLES: &str = "\
Without --index, the indexes of [registry] in the configuration are searched, or else the public MCP
registry, https://registry.modelcontextprotocol.io. Registries find servers by name; index files are
searched by name, title and description.

Examples:
  cofferdam search csv
  cofferdam search csv --index https://registry.acme.example --index plugins.json
  cofferdam search github --all --json";

pub(super) const REMOVE_EXAMPLES: &str = "\
Examples:
  cofferdam remove csv
  cofferdam remove csv --config tools.toml";

pub(super) const FETCH_EXAMPLES: &str = "\
A plugin that the .lock file names is downloaded by its digest. Other commands never download
plugins.

Examples:
  cofferdam fetch
  cofferdam fetch --locked --config tools.toml";

pub(super) const UPDATE_EXAMPLES: &str = "\
Examples:
  cofferdam update
  cofferdam update csv --full
  cofferdam update --check --json";

pub(super) const AUDIT_EXAMPLES: &str = "\
Advisories come from `advisories` of [registry] in the configuration. Exits with code 4 if one
affects a plugin and is not in `ignored-advisories`.

Examples:
  cofferdam audit
  cofferdam audit --config tools.toml --json
  cofferdam audit --offline";

pub(super) const PUBLISH_EXAMPLES: &str = "\
A configuration file is published as a set: its plugins with their locked digests, and nothing else.
`cofferdam add` adds them all.

Credentials are those of [registry.logins] in the configuration, or of `docker login` and `podman
login`.

With --key, it also signs what the component is built of, if the component contains that, and the
commit that it was published from.

Examples:
  cofferdam publish dist/csv.wasm oci://ghcr.io/acme/csv:1.2.0 --key acme.key
  cofferdam publish dist/csv.wasm oci://ghcr.io/acme/csv:1.2.0 --license MIT --source https://github.com/acme/csv
  cofferdam publish tools.toml oci://ghcr.io/acme/tools:1.0 --key acme.key
  cofferdam publish dist/csv.wasm oci://ghcr.io/acme/csv:1.2.0 --server-name io.github.acme/csv \\
    --description 'Reads CSV files'";

pub(super) const EXPORT_EXAMPLES: &str = "\
The directory is an image layout of OCI, with the signatures of the plugins. Take it to the other
machine with the configuration and its .lock file, and run `cofferdam import` there, or
`cofferdam add --from` with another configuration.

Examples:
  cofferdam export plugins --config tools.toml";

pub(super) const IMPORT_EXAMPLES: &str = "\
Only what the .lock file names is taken, with the digests that it has.

Examples:
  cofferdam import plugins --config tools.toml";

pub(super) const KEYS_EXAMPLES: &str = "\
Examples:
  cofferdam keys new acme";

pub(super) const SIGN_EXAMPLES: &str = "\
Examples:
  cofferdam sign oci://ghcr.io/acme/csv:1.2.0 --key acme.key
  cofferdam sign oci://ghcr.io/acme/csv:1.2.0 --key acme.key --attest cyclonedx=bom.json";

pub(super) const VERIFY_EXAMPLES: &str = "\
Without --key and --identity, the rules of [[registry.trust]] in the configuration say who must have
signed it.

Examples:
  cofferdam verify oci://ghcr.io/acme/csv:1.2.0 --key acme.pub
  cofferdam verify oci://ghcr.io/acme/csv:1.2.0 --config tools.toml --json
  cofferdam verify oci://ghcr.io/acme/csv:1.2.0 --key acme.pub --statement cyclonedx > bom.json
  cofferdam verify oci://ghcr.io/acme/csv:1.2.0 --key acme.pub --readme
  cofferdam verify oci://ghcr.io/acme/csv:1.2.0 --issuer https://token.actions.githubusercontent.com \\
    --identity 'https://github.com/acme/csv/.github/workflows/release.yml@refs/tags/*'";

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// Location of the plugin: oci://HOST/REPOSITORY[:TAG][@DIGEST], an https address or a file
    #[arg(value_name = "LOCATION")]
    pub(crate) location: ComponentLocation,
    /// Name of the plugin in the configuration [default: the last part of the location]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Configuration file to edit [default: cofferdam.toml]
    #[arg(long, short = 'c', value_name = "FILE", env = "COFFERDAM_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Read the plugin from a directory that `cofferdam export` has written, instead of a registry
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,
    /// Skip the confirmation prompt
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Accept a plugin that no rule about signatures is about
    #[arg(long)]
    pub(crate) allow_unsigned: bool,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Part of a name
    pub(crate) term: String,
    /// Address of an MCP registry, or an index file; repeatable
    #[arg(long = "index", value_name = "URL|FILE")]
    pub(crate) indexes: Vec<PluginIndex>,
    /// List servers that are not plugins as well, and those that are deprecated or deleted
    #[arg(long)]
    pub(crate) all: bool,
    /// Maximum number of results
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Configuration file with indexes and settings of registries
    #[arg(long, short = 'c', value_name = "FILE", env = "COFFERDAM_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// Name of the plugin in the configuration
    pub(crate) plugin: String,
    /// Configuration file to edit
    #[arg(long, short = 'c', value_name = "FILE", env = "COFFERDAM_CONFIG")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct FetchArgs {
    /// Names of plugins [default: all]
    pub(crate) plugins: Vec<String>,
    /// Configuration file
    #[arg(long, short = 'c', value_name = "FILE", env = "COFFERDAM_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Fail for a plugin that the .lock file does not name, instead of asking
    #[arg(long)]
    pub(crate) locked: bool,
    /// Skip the confirmation prompts
    #[arg(long, short, conflicts_with = "locked")]
    pub(crate) yes: bool,
    /// Accept plugins that no rule about signatures is about
    #[arg(long, conflicts_with = "locked")]
    pub(crate) allow_unsigned: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    /// Names of plugins [default: all]
    pub(crate) plugins: Vec<String>,
    /// Configuration file
    #[arg(long, short = 'c', value_name = "FILE", env = "COFFERDAM_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Read the plugins from a directory that `cofferdam export` has written, instead of registries
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,
    /// Only list the plugins that have changed; exit with code 4 if there are any
    #[arg(long)]
    pub(crate) check: bool,
    /// Show the whole difference, including full tool definitions
    #[arg(long, conflicts_with = "check")]
    pub(crate) full: bool,
    /// Skip the confirmation prompts
    #[arg(long, short, conflicts_with = "check")]
    pub(crate) yes: bool,
    /// Accept plugins that no rule about signatures is about
    #[arg(long)]
    pub(crate) allow_unsigned: bool,
    /// Print a JSON array
    #[arg(long, requires = "check")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Configuration file
    #[arg(long, short = 'c', value_name = "FILE", env = "COFFERDAM_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Use the copies of advisories on this machine, and no network
    #[arg(long)]
    pub(crate) offline: bool,
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TransferArgs {
    /// Directory of the image layout
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Configuration file
    #[arg(long, short = 'c', value_name = "FILE", env = "COFFERDAM_CONFIG")]
    pub(crate) config: Option<PathBuf>,
}

/// Checks the form of a license: identifiers with `AND`, `OR`, `WITH` and parentheses between them.
/// The list of identifiers grows, so names are not checked.
fn license(typed: &str) -> Result<String, String> {
    let spaced = typed.replace('(', " ( ").replace(')', " ) ");
    let (mut open, mut expects_name) = (0_usize, true);
    for word in spaced.split_whitespace() {
        let is_operator = matches!(word, "AND" | "OR" | "WITH");
        let is_name =
            word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | ':'));
        let is_expected = match word {
            "(" => expects_name,
            ")" => !expects_name && open > 0,
            _ => is_name && is_operator != expects_name,
        };
        if !is_expected {
            return Err(NO_LICENSE.to_owned());
        }
        match word {
            "(" => open += 1,
            ")" => open -= 1,
            _ => expects_name = is_operator,
        }
    }
    if open > 0 || expects_name { Err(NO_LICENSE.to_owned()) } else { Ok(typed.to_owned()) }
}

/// Error about a license of another form.
const NO_LICENSE: &str = "expected an SPDX expression, such as MIT or `MIT OR Apache-2.0`";

/// Checks that an address is one of the web, which catalogs show as a link.
fn source_address(typed: &str) -> Result<String, String> {
    let rest = typed.strip_prefix("https://").or_else(|| typed.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let is_plain = !typed.contains(|c: char| c.is_whitespace() || c.is_control());
    match is_plain && !host.is_empty() {
        true => Ok(typed.to_owned()),
        false => Err("expected an http or https address".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct PublishArgs {
    /// Component file, or the configuration file of a set of plugins (.toml)
    pub(crate) component: PathBuf,
    /// Repository and tag: oci://HOST/REPOSITORY:TAG
    pub(crate) reference: Reference,
    /// Description of the plugin
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// License, as an SPDX expression
    #[arg(long, value_name = "SPDX", value_parser = license)]
    pub(crate) license: Option<String>,
    /// Address of the source code
    #[arg(long, value_name = "URL", value_parser = source_address)]
    pub(crate) source: Option<String>,
    /// File of the private key to sign with
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Sign a statement in a JSON file as well. TYPE is provenance, cyclonedx, spdx or an address;
    /// repeatable
    #[arg(long, value_name = "TYPE=FILE", requires = "key")]
    pub(crate) attest: Vec<String>,
    /// Sign no statements but those of --attest
    #[arg(long)]
    pub(crate) no_statements: bool,
    /// README to publish beside the component [default: README.md in its directory, or above dist]
    #[arg(long, value_name = "FILE", conflicts_with = "no_readme")]
    pub(crate) readme: Option<PathBuf>,
    /// Publish no README
    #[arg(long)]
    pub(crate) no_readme: bool,
    #[command(flatten)]
    pub(crate) listing: ListingArgs,
    /// Configuration file with settings of registries
    #[arg(long, short = 'c', value_name = "FILE", env = "COFFERDAM_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl PublishArgs {
    /// Returns the parts of the listing in the MCP registry, if there is to be one.
    pub(crate) fn listing(&self) -> Option<ListingOptions> {
        let ListingArgs { server_name, server_json, bundle, bundle_url } = &self.listing;
        Some(ListingOptions {
            name: server_name.clone()?,
            description: self.description.clone(),
            source: self.source.clone(),
            bundle: bundle.clone().zip(bundle_url.clone()),
            path: server_json.clone().unwrap_or_else(|| PathBuf::from("server.json")),
        })
    }
}

#[derive(Debug, Args)]
pub(crate) struct ListingArgs {
    /// Name in the MCP registry, such as io.github.acme/csv; adds it to the plugin and writes a
    /// server.json
    #[arg(long, value_name = "NAME")]
    pub(crate) server_name: Option<ServerName>,
    /// File to write instead of server.json
    #[arg(long, value_name = "FILE", requires = "server_name")]
    pub(crate) server_json: Option<PathBuf>,
    /// Bundle of the plugin, made by `cofferdam mcp bundle`, to list as well
    #[arg(long, value_name = "FILE", requires = "server_name", requires = "bundle_url")]
    pub(crate) bundle: Option<PathBuf>,
    /// Address where the bundle will be
    #[arg(long, value_name = "URL", requires = "bundle")]
    pub(crate) bundle_url: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Create a key pair: NAME.key, which signs, and NAME.pub, which verifies
    #[command(after_help = KEYS_EXAMPLES)]
    New(NewKeyArgs),
}

#[derive(Debug, Args)]
pub(crate) struct NewKeyArgs {
    /// Path of the files, without their extensions
    #[arg(value_name = "NAME")]
    pub(crate) path: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct SignArgs {
    /// Artifact: oci://HOST/REPOSITORY[:TAG][@DIGEST]
    pub(crate) reference: Reference,
    /// File of the private key
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    /// Sign a statement in a JSON file as well. TYPE is provenance, cyclonedx, spdx or an address;
    /// repeatable
    #[arg(long, value_name = "TYPE=FILE")]
    pub(crate) attest: Vec<String>,
    /// Configuration file with settings of registries
    #[arg(long, short = 'c', value_name = "FILE", env = "COFFERDAM_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Artifact: oci://HOST/REPOSITORY[:TAG][@DIGEST]
    pub(crate) reference: Reference,
    /// File of a public key that may have signed it; repeatable
    #[arg(long = "key", value_name = "FILE")]
    pub(crate) keys: Vec<PathBuf>,
    /// Identity that may have signed it: a mail address, or the address of a workflow; `*` in it
    /// matches any characters except @
    #[arg(long, value_name = "IDENTITY", requires = "issuer")]
    pub(crate) identity: Option<String>,
    /// Address of the service where that identity logged in
    #[arg(long, value_name = "URL", requires = "identity")]
    pub(crate) issuer: Option<String>,
    /// Print the statement of this type that the signer has signed: provenance, cyclonedx, spdx or
    /// an address
    #[arg(long, value_name = "TYPE", conflicts_with_all = ["readme", "json"])]
    pub(crate) statement: Option<String>,
    /// Print the README, which is not signed
    #[arg(long, conflicts_with = "json")]
    pub(crate) readme: bool,
    /// Configuration file with rules about signatures and settings of registries
    #[arg(long, short = 'c', value_name = "FILE", env = "COFFERDAM_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use cofferdam::registry::PUBLIC_INDEX;

    use super::*;

    #[test]
    fn the_help_names_the_registry_that_is_searched() {
        assert!(SEARCH_EXAMPLES.contains(PUBLIC_INDEX));
    }

    #[test]
    fn licenses_and_source_addresses_have_their_form() {
        for fine in [
            "MIT",
            "MIT OR Apache-2.0",
            "(MIT AND BSD-3-Clause) OR GPL-2.0-or-later WITH Classpath-exception-2.0",
            "GPL-2.0+",
            "DocumentRef-spdx:LicenseRef-acme",
        ] {
            assert!(license(fine).is_ok(), "{fine}");
        }
        for wrong in ["", "MIT Apache-2.0", "MIT OR", "OR MIT", "(MIT", "MIT)", "()", "MIT/X11"] {
            assert_eq!(license(wrong), Err(NO_LICENSE.to_owned()), "{wrong}");
        }
        assert!(source_address("https://git.example/a?b#c").is_ok());
        for wrong in ["", "acme/csv", "https://", "javascript:alert(1)", "https://a b", "git@a:b"] {
            assert!(source_address(wrong).is_err(), "{wrong}");
        }
    }
}
