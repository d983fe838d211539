//! What can be typed. Nothing happens here; `commands` gives it a meaning.

mod author;
mod chat;
mod mcp;
mod serve;
mod skills;
mod workflow;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

pub(crate) use self::author::{BuildArgs, DevArgs, NewArgs, TestArgs};
pub(crate) use self::chat::{ApprovalArgs, ChatArgs, WhenToAsk};
pub(crate) use self::mcp::{
    McpBundleArgs, McpCommand, McpConfigArgs, McpHost, McpServerArgs, McpTokenArgs,
};
pub(crate) use self::serve::{Approvals, ReceiptForm, Schemas, ServeArgs};
pub(crate) use self::skills::{SkillsCommand, SkillsDirectoriesArgs};
pub(crate) use self::workflow::{
    WorkflowCheckpointsArgs, WorkflowCommand, WorkflowFileArgs, WorkflowRunArgs,
};

const EXIT_CODES: &str = "\
Exit codes:
  0    the tool returned a value; the command did what was asked
  1    the tool reported a failure
  2    bad usage: flags, unknown tool, arguments that do not decode, errors in the configuration
  3    the call ended in an error: a trap, a limit, a denied capability, an invalid result; a budget is used up
  4    a plugin cannot be loaded or has changed without consent, a server cannot be reached, a call was not approved,
       a model gives no reply, a skill is invalid, a workflow waits for an answer, or `check --strict` has advice
  5    the host itself failed
  130  interrupted";

/// Runs tools of WebAssembly plugins, each call in a sandbox of its own.
///
/// A plugin gets nothing that you do not give it: no files, no network, no environment.
#[derive(Debug, Parser)]
#[command(name = "cofferdam", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: Global,
}

#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Where compiled plugins are kept [default: the user's cache directory]
    #[arg(long, global = true, value_name = "DIR", env = "COFFERDAM_CACHE_DIR")]
    pub(crate) cache_dir: Option<PathBuf>,
    /// Compile anew and keep nothing
    #[arg(long, global = true)]
    pub(crate) no_cache: bool,
    /// Ask nothing: what needs an answer is refused, as where there is no terminal
    #[arg(long, global = true)]
    pub(crate) no_input: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Call a tool and print its result
    #[command(after_help = "\
Examples:
  cofferdam call word_count '{\"text\":\"to be or not\"}' --plugin text.wasm
  cofferdam call schema '{\"file\":\"/data/sales.csv\"}' --plugin csv.wasm --mount data=./reports:ro
  cofferdam call word_count @arguments.json --config cofferdam.toml --json
  cofferdam call convert '{\"file\":\"/data/sales.csv\"}' --plugin csv.wasm --mount data=./reports --dry-run
  cofferdam call file_access_search_files '{\"regex_pattern\":\"TODO\"}' --files ./src:ro
  echo '{\"text\":\"x\"}' | cofferdam call word_count - --plugin text.wasm")]
    Call(CallArgs),
    /// List the tools of plugins and servers
    #[command(after_help = "\
Examples:
  cofferdam list --plugin text.wasm --plugin csv.wasm
  cofferdam list --config cofferdam.toml --json")]
    List(ListArgs),
    /// Show what a component offers and what it asks for, without giving it anything
    #[command(after_help = "\
Examples:
  cofferdam inspect stranger.wasm
  cofferdam inspect stranger.wasm --json | jq .capabilities
  cofferdam inspect weather --config cofferdam.toml")]
    Inspect(InspectArgs),
    /// Say everything that is wrong or weak about a plugin, for its author
    #[command(after_help = "\
Refusals keep the plugin from loading (exit code 4). Notes say what the host or a model API makes \
of a declaration.
Advice is about clients and models; with --strict it counts like a refusal.

Examples:
  cofferdam check my-tool.wasm
  cofferdam check my-tool.wasm --strict
  cofferdam check my-tool.wasm --json | jq '.advice[].message'")]
    Check(CheckArgs),
    /// Decode arguments as a call would, without calling; or show a schema as a model API is shown
    /// it
    #[command(after_help = "\
Examples:
  cofferdam args --schema schema.json '{\"count\":\"5\"}'
  cofferdam args --tool word_count --plugin text.wasm @arguments.json --json
  cofferdam args --tool word_count --plugin text.wasm --dialect openai-strict")]
    Args(ArgsArgs),
    /// Let a scripted model call tools, and show what it sees
    #[command(after_help = "\
A script has one model reply per line, as JSON:
  {\"text\":\"I will count the words.\",\"calls\":[{\"tool\":\"word_count\",\"arguments\":{\"text\":\"a b\"}}]}
  {\"text\":\"Two words.\"}

Examples:
  cofferdam play script.jsonl --plugin text.wasm
  cofferdam play script.jsonl --config cofferdam.toml --json")]
    Play(PlayArgs),
    /// Talk to a model that calls tools
    #[command(after_help = chat::EXAMPLES)]
    Chat(Box<ChatArgs>),
    /// Run workflows: agents that work together as a file says
    #[command(subcommand)]
    Workflow(WorkflowCommand),
    /// Serve tools to MCP clients
    #[command(after_help = serve::EXAMPLES)]
    Serve(ServeArgs),
    /// Offer a plugin more, in the configuration file
    #[command(after_help = "\
A permission is one of
  files:NAME=ACCESS   a store, where ACCESS is read-only, create-only or read-write
  http:RULE           requests, such as 'http:GET,POST https://api.example.com/v1'
  socket:RULE         a connection, such as 'socket:tcp db.example.com:5432'
  env:NAME            an environment variable, passed on from here or with --value
  config:KEY          a configuration value, with --value
  secret:NAME         a secret of [secrets] that the plugin may read
  clock:PRECISION     frozen, coarse or precise
  random              random numbers
  tool:NAME           another tool
  ask:KIND            questions to the caller: form, sample or roots
  limit:KEY=NUMBER    a limit, such as limit:wall-ms-max=60000

Examples:
  cofferdam grant weather 'http:GET https://api.example.com/' --config cofferdam.toml
  cofferdam grant csv files:reports=read-only --directory ./reports --config cofferdam.toml
  cofferdam grant weather --all-asked --config cofferdam.toml
  cofferdam grant --list")]
    Grant(GrantArgs),
    /// Take a grant away from a plugin, in the configuration file
    #[command(after_help = "\
Permissions are written as for `cofferdam grant`.

Examples:
  cofferdam revoke weather 'http:GET https://api.example.com/' --config cofferdam.toml
  cofferdam revoke weather --all --config cofferdam.toml
  cofferdam revoke --remembered weather.wasm")]
    Revoke(RevokeArgs),
    /// Accept a plugin or a server that has changed
    #[command(after_help = "\
What was accepted stands in the file next to the configuration that ends in .lock.

Examples:
  cofferdam approve weather --config cofferdam.toml
  cofferdam approve weather --config cofferdam.toml --full
  cofferdam approve weather --config cofferdam.toml --yes")]
    Approve(ApproveArgs),
    /// Start a plugin: a project with an example that builds, a test and the SDK
    #[command(after_help = author::NEW_EXAMPLES)]
    New(NewArgs),
    /// Build a project into a component, check it and time it
    #[command(after_help = author::BUILD_EXAMPLES)]
    Build(BuildArgs),
    /// Run the cases of a plugin in the sandbox
    #[command(after_help = author::TEST_EXAMPLES)]
    Test(TestArgs),
    /// Serve a project to MCP clients while it is being written
    #[command(after_help = author::DEV_EXAMPLES)]
    Dev(Box<DevArgs>),
    /// Put a manifest into a component, for its author
    #[command(after_help = "\
Examples:
  cofferdam embed weather.wasm plugin.toml
  cofferdam embed weather.wasm plugin.toml --output dist/weather.wasm")]
    Embed(EmbedArgs),
    /// Look at skills: folders of instructions, files and scripts for a model
    #[command(subcommand)]
    Skills(SkillsCommand),
    /// Work with configuration files
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Make MCP hosts start tools, and log in to MCP servers
    #[command(subcommand)]
    Mcp(McpCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check a configuration file and say what it means
    #[command(after_help = "\
Examples:
  cofferdam config check cofferdam.toml
  cofferdam config check cofferdam.toml --json")]
    Check(ConfigCheckArgs),
}

/// Which plugins a command works with.
#[derive(Debug, Clone, Args)]
pub(crate) struct PluginArgs {
    /// A component file; may be given more than once [PATH or NAME=PATH]
    #[arg(long = "plugin", short = 'p', value_name = "[NAME=]PATH")]
    pub(crate) plugins: Vec<String>,
    /// Give the plugins named with --plugin a store, which they see as /NAME: a directory,
    /// s3://BUCKET/PREFIX or `memory` [`:ro`: only reading, `:create`: only new files]
    #[arg(long = "mount", short = 'm', value_name = "NAME=STORE[:ro|:create]")]
    pub(crate) mounts: Vec<String>,
    /// A configuration file with plugins, remote servers, file stores, grants and limits
    #[arg(long, short = 'c', value_name = "FILE", env = "COFFERDAM_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Offer the file_access tools over a store: a directory, s3://BUCKET/PREFIX or `memory` [`:ro`
    /// at the end: only reading]
    #[arg(long, short = 'f', value_name = "[NAME=]STORE")]
    pub(crate) files: Option<String>,
    /// Offer the skills in a directory, or the one that it is; may be given more than once
    #[arg(long, value_name = "DIR")]
    pub(crate) skills: Vec<PathBuf>,
    /// Wall-clock time for one call, such as 500ms, 5s or 2m [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Memory for one call in MiB [default: 64]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub(crate) memory: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The tool's name, as `cofferdam list` shows it
    pub(crate) tool: String,
    /// The arguments as one JSON object, `-` for standard input, `@FILE` for a file [default: {}]
    pub(crate) arguments: Option<String>,
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    /// Show what the call would change in files, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Approve the call, where the tool needs that
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Show what the call has changed in files, line by line
    #[arg(long)]
    pub(crate) diff: bool,
    /// Print outcome, result and call record as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Show what the tool printed and where the time went, on standard error
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    /// Show what each plugin asks for, what it is offered and what it gets
    #[arg(long)]
    pub(crate) grants: bool,
    /// Print definitions with their schemas as one JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// The component file, or with --config the name of a plugin
    pub(crate) component: PathBuf,
    /// A configuration file: show what it offers the plugin
    #[arg(long, short = 'c', value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print everything as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The component file
    pub(crate) component: PathBuf,
    /// End with exit code 4 when there is advice
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print everything as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("declared").required(true).args(["schema", "tool"]))]
pub(crate) struct ArgsArgs {
    /// The arguments as one JSON object, `-` for standard input, `@FILE` for a file [default: {}]
    #[arg(conflicts_with = "dialect")]
    pub(crate) arguments: Option<String>,
    /// A file with the JSON Schema that arguments are decoded by
    #[arg(long, value_name = "FILE", conflicts_with = "plugins")]
    pub(crate) schema: Option<PathBuf>,
    /// A tool whose schema arguments are decoded by
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    /// Take values of the declared type alone
    #[arg(long, conflicts_with = "dialect")]
    pub(crate) strict: bool,
    /// Print the schema as this reader is shown it [mcp, portable, openai-strict, openai,
    /// anthropic]
    #[arg(long, value_name = "NAME")]
    pub(crate) dialect: Option<cofferdam_tool::schema::Dialect>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlayArgs {
    /// The script, `-` for standard input
    pub(crate) script: String,
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    /// Approve every call, where tools need that
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print one JSON object per message
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GrantArgs {
    /// The plugin, as the configuration calls it
    #[arg(required_unless_present = "list")]
    pub(crate) plugin: Option<String>,
    /// What to offer it
    #[arg(value_name = "PERMISSION", required_unless_present_any = ["all_asked", "list"])]
    pub(crate) permissions: Vec<String>,
    /// The configuration file to edit
    #[arg(
        long,
        short = 'c',
        value_name = "FILE",
        env = "COFFERDAM_CONFIG",
        required_unless_present = "list"
    )]
    pub(crate) config: Option<PathBuf>,
    /// The directory of a store that the file does not have yet
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// The value of an environment variable or configuration value
    #[arg(long, value_name = "TEXT")]
    pub(crate) value: Option<String>,
    /// Offer everything that its manifest asks for
    #[arg(long)]
    pub(crate) all_asked: bool,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// List what was granted for always to components of --plugin, and do nothing else
    #[arg(long, conflicts_with_all = ["plugin", "permissions", "all_asked"])]
    pub(crate) list: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// The plugin, as the configuration calls it
    #[arg(required_unless_present = "remembered")]
    pub(crate) plugin: Option<String>,
    /// What to take away
    #[arg(value_name = "PERMISSION", required_unless_present_any = ["all", "remembered"])]
    pub(crate) permissions: Vec<String>,
    /// The configuration file to edit
    #[arg(
        long,
        short = 'c',
        value_name = "FILE",
        env = "COFFERDAM_CONFIG",
        required_unless_present = "remembered"
    )]
    pub(crate) config: Option<PathBuf>,
    /// Take everything away, also what every plugin is offered
    #[arg(long)]
    pub(crate) all: bool,
    /// Forget all that was granted for always to a component of --plugin: its file, or the first
    /// digits of its digest
    #[arg(long, value_name = "FILE_OR_DIGEST", conflicts_with_all = ["plugin", "permissions", "all"])]
    pub(crate) remembered: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// The plugin or server, as the configuration calls it
    pub(crate) plugin: String,
    /// The configuration file
    #[arg(long, short = 'c', value_name = "FILE", env = "COFFERDAM_CONFIG")]
    pub(crate) config: PathBuf,
    /// Show all that has changed, with the whole definitions of tools
    #[arg(long)]
    pub(crate) full: bool,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EmbedArgs {
    /// The component file
    pub(crate) component: PathBuf,
    /// The manifest
    pub(crate) manifest: PathBuf,
    /// Where to write the component with its manifest [default: in place]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigCheckArgs {
    /// The configuration file
    pub(crate) file: PathBuf,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads a number with a unit: `ms`, `s` or `m`.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| bad_duration(text))?;
    let unit_ms = match text.strip_prefix(digits) {
        Some("ms") => 1,
        Some("s") => 1000,
        Some("m") => 60_000,
        _ => return Err(bad_duration(text)),
    };
    match number.checked_mul(unit_ms) {
        Some(ms) if (1..=86_400_000).contains(&ms) => Ok(Duration::from_millis(ms)),
        _ => Err("a time must be between 1ms and 1440m".to_owned()),
    }
}

fn bad_duration(text: &str) -> String {
    format!("`{text}` is not a time: write a whole number with a unit, such as 500ms, 5s or 2m")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for bad in ["", "5", "s", "-1s", "1.5s", "0s", "99999999999999999999s", "5h", "1e3s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
