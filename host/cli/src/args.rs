//! The command line, as clap parses it. `commands` runs it.

mod author;
mod chat;
mod cluster;
mod confinement;
mod doctor;
mod eval;
mod inspect;
mod inspector;
pub(crate) mod log;
mod mcp;
mod plugins;
mod registry;
mod replay;
mod serve;
mod skills;
mod workflow;

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use clap::{Args, ColorChoice, Parser, Subcommand};

pub(crate) use self::author::{BuildArgs, DevArgs, NewArgs, TestArgs, WrapArgs};
pub(crate) use self::chat::{ApprovalArgs, AskMode, ChatArgs};
pub(crate) use self::cluster::{ClusterAccessArgs, ClusterResults, FleetArgs, WorkerArgs};
pub(crate) use self::confinement::ConfinementLevel;
pub(crate) use self::doctor::DoctorArgs;
pub(crate) use self::eval::EvalArgs;
pub(crate) use self::inspect::InspectArgs;
pub(crate) use self::inspector::{InspectorArgs, InspectorFlag};
pub(crate) use self::mcp::{
    McpBundleArgs, McpCommand, McpConfigArgs, McpHost, McpServerArgs, McpTokenArgs,
};
pub(crate) use self::plugins::{NoRecordArgs, PluginArgs, RecordArgs};
pub(crate) use self::registry::{
    AddArgs, AuditArgs, FetchArgs, KeysCommand, PublishArgs, RemoveArgs, SearchArgs, SignArgs,
    TransferArgs, UpdateArgs, VerifyArgs,
};
pub(crate) use self::replay::ReplayArgs;
pub(crate) use self::serve::{Approvals, ReceiptForm, Schemas, ServeArgs};
pub(crate) use self::skills::{SkillsCommand, SkillsDirectoriesArgs};
pub(crate) use self::workflow::{
    WorkflowCheckArgs, WorkflowCheckpointsArgs, WorkflowCommand, WorkflowFileArgs, WorkflowRunArgs,
};

const EXIT_CODES: &str = "\
Exit codes:
  0    success
  1    the tool reported a failure
  2    usage error: invalid flag, unknown tool, invalid arguments, invalid configuration
  3    the call failed: trap, limit, denied permission, invalid result, exhausted budget
  4    something is unavailable: a plugin that does not load or has changed, a server, a model,
       an approval, an invalid skill, a waiting workflow, an advisory (`audit`), advice with
       `check --strict`, or a problem that `doctor` finds
  5    internal error of the host
  130  interrupted";

const PIPE_HELP: &str = "\
Reads and writes JSON lines on standard input and output, as docs/pipe.md describes. The packages
for Python and Node.js start it. It ends when standard input ends.

Examples:
  echo '{\"type\":\"hello\",\"protocol\":1}' | cofferdam pipe --plugin text.wasm
  cofferdam pipe --config cofferdam.toml --files ./notes:ro";

/// Version with the commit of the build, if it is known, and the version of wasmtime.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let (version, commit) = (env!("CARGO_PKG_VERSION"), env!("COFFERDAM_COMMIT"));
    let separator = if commit.is_empty() { "" } else { ", " };
    format!("{version} ({commit}{separator}wasmtime {})", cofferdam_engine::WASMTIME_VERSION)
});

/// Run tools for AI models in WebAssembly sandboxes
///
/// Each call gets a fresh sandbox. A plugin has no files, no network and no environment until you
/// grant them.
#[derive(Debug, Parser)]
#[command(name = "cofferdam", version = VERSION.as_str(), after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: Global,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Directory for compiled plugins [default: in the user's cache directory]
    #[arg(long, global = true, value_name = "DIR", env = "COFFERDAM_CACHE_DIR")]
    pub(crate) cache_dir: Option<PathBuf>,
    /// Disable the compilation cache
    #[arg(long, global = true)]
    pub(crate) no_cache: bool,
    /// Refuse to compile plugins with less confinement of the compiler [default: accept any, with a
    /// warning]
    #[arg(long, global = true, value_name = "LEVEL", env = "COFFERDAM_CONFINEMENT")]
    pub(crate) confinement: Option<ConfinementLevel>,
    /// Never prompt; refuse what needs an answer
    #[arg(long, global = true)]
    pub(crate) no_input: bool,
    /// Color on a terminal; NO_COLOR and TERM=dumb switch it off as well
    #[arg(long, global = true, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Call a few tools of a built-in plugin and show how the sandbox treats them
    Demo,
    /// Check this machine and say what to do about missing parts
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(DoctorArgs),
    /// Call a tool and print its result
    #[command(after_help = "\
Examples:
  cofferdam call word_count text='to be or not' --plugin text.wasm
  cofferdam call schema file=/data/sales.csv --plugin csv.wasm --mount data=./reports:ro
  cofferdam call fetch url=https://api.example.com/ --plugin web.wasm --allow-http 'GET https://api.example.com/'
  cofferdam call word_count text=@report.md --plugin text.wasm
  cofferdam call word_count @arguments.json --config cofferdam.toml --json
  cofferdam call import_csv file=/data/sales.db csv=/data/sales.csv table=sales --plugin sqlite.wasm \\
    --mount data=./reports:rw --dry-run
  cofferdam call file_access_search_files regex_pattern=TODO --files ./src:ro
  echo '{\"text\":\"x\"}' | cofferdam call word_count - --plugin text.wasm")]
    Call(CallArgs),
    /// List the tools of plugins and servers
    #[command(after_help = "\
Examples:
  cofferdam list --plugin text.wasm --plugin csv.wasm
  cofferdam list --config cofferdam.toml --json")]
    List(ListArgs),
    /// Show the tools and permissions of a component, or recorded calls in a browser
    #[command(after_help = "\
Examples:
  cofferdam inspect plugin.wasm
  cofferdam inspect plugin.wasm --json | jq .capabilities
  cofferdam inspect weather --config cofferdam.toml
  cofferdam inspect --web")]
    Inspect(InspectArgs),
    /// Report errors and weaknesses of a plugin to its author
    #[command(after_help = "\
Errors keep the plugin from loading (exit code 4). Notes say how the host or a model API reads a
declaration. Advice is about clients and models; --strict turns it into errors.

Examples:
  cofferdam check my-tool.wasm
  cofferdam check my-tool.wasm --strict
  cofferdam check my-tool.wasm --json | jq '.advice[].message'")]
    Check(CheckArgs),
    /// Decode arguments without calling a tool, or print a schema in the dialect of a model API
    #[command(after_help = "\
Examples:
  cofferdam args --schema schema.json '{\"count\":\"5\"}'
  cofferdam args --tool word_count --plugin text.wasm @arguments.json --json
  cofferdam args --tool word_count --plugin text.wasm --dialect openai-strict")]
    Args(ArgsArgs),
    /// Play a script of model replies against tools and show the results
    #[command(after_help = "\
A script has one model reply per line, as JSON:
  {\"text\":\"I will count the words.\",\"calls\":[{\"tool\":\"word_count\",\"arguments\":{\"text\":\"a b\"}}]}
  {\"text\":\"Two words.\"}

Examples:
  cofferdam play script.jsonl --plugin text.wasm
  cofferdam play script.jsonl --config cofferdam.toml --json")]
    Play(PlayArgs),
    /// Chat with a model that calls tools
    #[command(after_help = chat::EXAMPLES)]
    Chat(Box<ChatArgs>),
    /// Run prompts with a model and compare its calls with the expected ones
    #[command(after_help = eval::EXAMPLES)]
    Eval(Box<EvalArgs>),
    /// Run workflows of agents and functions
    #[command(subcommand)]
    Workflow(WorkflowCommand),
    /// Serve tools to MCP clients
    #[command(after_help = serve::EXAMPLES)]
    Serve(Box<ServeArgs>),
    /// Run tools for gateways on other machines
    #[command(after_help = cluster::WORKER_EXAMPLES)]
    Worker(Box<WorkerArgs>),
    /// List the versions of plugins that workers have
    #[command(after_help = cluster::FLEET_EXAMPLES)]
    Fleet(FleetArgs),
    /// Serve tools to the program that started this command, such as a client library
    #[command(after_help = PIPE_HELP)]
    Pipe(PipeArgs),
    /// Search for plugins in MCP registries and index files
    #[command(after_help = registry::SEARCH_EXAMPLES)]
    Search(SearchArgs),
    /// Add a plugin from a registry, the web or a file to a configuration
    #[command(after_help = registry::ADD_EXAMPLES)]
    Add(AddArgs),
    /// Remove a plugin from a configuration
    #[command(after_help = registry::REMOVE_EXAMPLES)]
    Remove(RemoveArgs),
    /// Download the plugins of a configuration that are not on this machine
    #[command(after_help = registry::FETCH_EXAMPLES)]
    Fetch(FetchArgs),
    /// Show how plugins have changed at their source, and accept the changes
    #[command(after_help = registry::UPDATE_EXAMPLES)]
    Update(UpdateArgs),
    /// List the plugins of a configuration that a security advisory affects
    #[command(after_help = registry::AUDIT_EXAMPLES)]
    Audit(AuditArgs),
    /// Copy the plugins of a configuration into a directory, for a machine without a network
    #[command(after_help = registry::EXPORT_EXAMPLES)]
    Export(TransferArgs),
    /// Copy the plugins of a configuration from such a directory to this machine
    #[command(after_help = registry::IMPORT_EXAMPLES)]
    Import(TransferArgs),
    /// Push a component to a registry
    #[command(after_help = registry::PUBLISH_EXAMPLES)]
    Publish(PublishArgs),
    /// Make keys that sign plugins
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Sign a plugin in a registry
    #[command(after_help = registry::SIGN_EXAMPLES)]
    Sign(SignArgs),
    /// Check who has signed a plugin in a registry
    #[command(after_help = registry::VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Grant permissions to a plugin of a configuration
    #[command(after_help = "\
A permission is one of
  files:NAME=ACCESS   a store, where ACCESS is read-only, create-only or read-write
  http:RULE           requests, such as 'http:GET,POST https://api.example.com/v1'
  socket:RULE         a connection, such as 'socket:tcp db.example.com:5432'
  env:NAME            an environment variable; with --value, or the host's own value
  config:KEY          a configuration value, with --value
  secret:NAME         a secret of [secrets] that the plugin may read
  clock:PRECISION     frozen, coarse or precise
  random              random numbers
  tool:NAME           another tool that the plugin may call
  ask:KIND            questions to the caller: form, sample or roots
  limit:KEY=NUMBER    a limit, such as limit:wall-ms-max=60000

Examples:
  cofferdam grant weather 'http:GET https://api.example.com/' --config cofferdam.toml
  cofferdam grant csv files:reports=read-only --directory ./reports --config cofferdam.toml
  cofferdam grant weather --all-asked --config cofferdam.toml
  cofferdam grant --list")]
    Grant(GrantArgs),
    /// Revoke permissions of a plugin of a configuration
    #[command(after_help = "\
Permissions are written as for `cofferdam grant`.

Examples:
  cofferdam revoke weather 'http:GET https://api.example.com/' --config cofferdam.toml
  cofferdam revoke weather --all --config cofferdam.toml
  cofferdam revoke --remembered weather.wasm")]
    Revoke(RevokeArgs),
    /// Accept a changed plugin or server
    #[command(after_help = "\
Accepted versions are recorded in the .lock file next to the configuration.

Examples:
  cofferdam approve weather --config cofferdam.toml
  cofferdam approve weather --config cofferdam.toml --full
  cofferdam approve weather --config cofferdam.toml --yes")]
    Approve(ApproveArgs),
    /// Create a plugin project with an example, a test and the SDK
    #[command(after_help = author::NEW_EXAMPLES)]
    New(NewArgs),
    /// Build a project into a component and check it
    #[command(after_help = author::BUILD_EXAMPLES)]
    Build(BuildArgs),
    /// Run the test cases of a plugin in the sandbox
    #[command(after_help = author::TEST_EXAMPLES)]
    Test(TestArgs),
    /// Serve a project to MCP clients and rebuild it on changes
    #[command(after_help = author::DEV_EXAMPLES)]
    Dev(Box<DevArgs>),
    /// Embed a manifest in a component
    #[command(after_help = "\
Examples:
  cofferdam embed weather.wasm plugin.toml
  cofferdam embed weather.wasm plugin.toml --output dist/weather.wasm")]
    Embed(EmbedArgs),
    /// Make a plugin of a program for WASI
    #[command(after_help = author::WRAP_EXAMPLES)]
    Wrap(WrapArgs),
    /// List and check skills
    #[command(subcommand)]
    Skills(SkillsCommand),
    /// Create and check configuration files
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Use the cofferdam.toml of a directory without --config
    #[command(after_help = "\
Commands that name no --config and no --plugin use the cofferdam.toml of the working directory, or
of the nearest directory above it, if it is trusted. An edit by another program ends the trust.

Examples:
  cofferdam trust
  cofferdam trust ../project/cofferdam.toml
  cofferdam trust --revoke
  cofferdam trust --list")]
    Trust(TrustArgs),
    /// Show the recorded calls, and check that the log is what was written
    #[command(after_help = log::EXAMPLES)]
    Log(Box<log::LogArgs>),
    /// Run recorded calls again, also with another version of a plugin, and compare the results
    #[command(after_help = replay::EXAMPLES)]
    Replay(Box<ReplayArgs>),
    /// Show or empty the cache of compiled plugins
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  cofferdam completions bash > ~/.local/share/bash-completion/completions/cofferdam
  cofferdam completions zsh > ~/.zfunc/_cofferdam
  cofferdam completions fish > ~/.config/fish/completions/cofferdam.fish")]
    Completions(CompletionsArgs),
    /// Print the manual page, or write the pages of all commands
    #[command(after_help = "\
Examples:
  cofferdam man | man -l -
  cofferdam man --dir ~/.local/share/man/man1")]
    Man(ManArgs),
    /// Register with MCP clients, make tokens, and log in to MCP servers
    #[command(subcommand)]
    Mcp(McpCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Create a configuration that loads plugins and grants them nothing
    #[command(after_help = "\
The file lists what each plugin asks for, and the commands that grant it.

Examples:
  cofferdam config init --plugin web.wasm
  cofferdam config init tools.toml --plugin csv.wasm --plugin web=dist/fetch.wasm")]
    Init(ConfigInitArgs),
    /// Check a configuration file and explain it
    #[command(after_help = "\
Examples:
  cofferdam config check cofferdam.toml
  cofferdam config check cofferdam.toml --json")]
    Check(ConfigCheckArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigInitArgs {
    /// File to create
    #[arg(default_value = "cofferdam.toml")]
    pub(crate) file: PathBuf,
    /// Add a plugin from a component file; repeatable
    #[arg(long = "plugin", short = 'p', value_name = "[NAME=]PATH")]
    pub(crate) plugins: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// Configuration, or its directory [default: the one of the working directory]
    #[arg(conflicts_with = "list")]
    pub(crate) file: Option<PathBuf>,
    /// End the trust
    #[arg(long, conflicts_with = "list")]
    pub(crate) revoke: bool,
    /// List the trusted configurations
    #[arg(long)]
    pub(crate) list: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Print the directory of the cache
    Dir,
    /// Remove the oldest entries, the files of crashed processes, and fetched plugins that no lock
    /// file names
    Prune(CachePruneArgs),
    /// Remove all entries; plugins are compiled again when they are next used
    Clean(CacheCleanArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CachePruneArgs {
    /// Maximum size of the remaining entries in MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(0..=1_048_576))]
    pub(crate) max_size: u64,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CacheCleanArgs {
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell that reads the script
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write the pages of all commands to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PipeArgs {
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// Name of the tool, as `cofferdam list` prints it
    pub(crate) tool: String,
    /// Arguments KEY=TEXT and KEY:=JSON (@FILE as the value reads a file), or one JSON object; `-`
    /// reads the object from stdin, `@FILE` from a file [default: {}]
    pub(crate) arguments: Vec<String>,
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    /// Show the file changes of the call without making them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Approve the call if the tool needs approval
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Show the file changes of the call as a diff
    #[arg(long)]
    pub(crate) diff: bool,
    /// Write the result to FILE: the bytes of an image or another file, or the text
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print outcome, result and call record as a JSON object
    #[arg(long, conflicts_with = "output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// Print the tool's own output and timings to stderr
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    /// Show the permissions that each plugin asks for, is offered and gets
    #[arg(long)]
    pub(crate) grants: bool,
    /// List the plugins of a registry or the web that have changed there; exit with code 4 if there
    /// are any
    #[arg(long, conflicts_with = "grants")]
    pub(crate) outdated: bool,
    /// Print definitions with schemas as a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Component file
    pub(crate) component: PathBuf,
    /// Exit with code 4 if there is advice
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("declared").required(true).args(["schema", "tool"]))]
pub(crate) struct ArgsArgs {
    /// Arguments KEY=TEXT and KEY:=JSON (@FILE as the value reads a file), or one JSON object; `-`
    /// reads the object from stdin, `@FILE` from a file [default: {}]
    #[arg(conflicts_with = "dialect")]
    pub(crate) arguments: Vec<String>,
    /// Decode by the JSON Schema in this file
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "tool", "plugins", "mounts", "files", "skills", "toolsets", "tools", "timeout", "memory", "code",
    ])]
    pub(crate) schema: Option<PathBuf>,
    /// Decode by the schema of this tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    /// Disable type coercion
    #[arg(long, conflicts_with = "dialect")]
    pub(crate) strict: bool,
    /// Print the schema in this dialect: mcp, portable, openai-strict, openai or anthropic
    #[arg(long, value_name = "NAME")]
    pub(crate) dialect: Option<cofferdam_tool::schema::Dialect>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlayArgs {
    /// Script file; `-` reads stdin
    pub(crate) script: String,
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// Approve every call that needs approval
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print a JSON object per message
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GrantArgs {
    /// Name of the plugin in the configuration
    #[arg(required_unless_present = "list")]
    pub(crate) plugin: Option<String>,
    /// Permissions to grant
    #[arg(value_name = "PERMISSION", required_unless_present_any = ["all_asked", "list"])]
    pub(crate) permissions: Vec<String>,
    /// Configuration file to edit
    #[arg(long, short = 'c', value_name = "FILE", env = "COFFERDAM_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Directory of a store to add to the configuration
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Value of an environment variable or configuration key
    #[arg(long, value_name = "TEXT")]
    pub(crate) value: Option<String>,
    /// Grant everything that the manifest asks for
    #[arg(long)]
    pub(crate) all_asked: bool,
    /// Skip the confirmation prompt
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// List the permanent grants of components that were loaded with --plugin
    #[arg(long, conflicts_with_all = ["plugin", "permissions", "all_asked"])]
    pub(crate) list: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// Name of the plugin in the configuration
    #[arg(required_unless_present = "remembered")]
    pub(crate) plugin: Option<String>,
    /// Permissions to revoke
    #[arg(value_name = "PERMISSION", required_unless_present_any = ["all", "remembered"])]
    pub(crate) permissions: Vec<String>,
    /// Configuration file to edit
    #[arg(long, short = 'c', value_name = "FILE", env = "COFFERDAM_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Revoke all grants of the plugin, and its share of the grants for all plugins
    #[arg(long)]
    pub(crate) all: bool,
    /// Forget the permanent grants of a component that was loaded with --plugin; name its file or a
    /// prefix of its digest
    #[arg(long, value_name = "FILE_OR_DIGEST", conflicts_with_all = ["plugin", "permissions", "all"])]
    pub(crate) remembered: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// Name of the plugin or server in the configuration
    pub(crate) plugin: String,
    /// Configuration file
    #[arg(long, short = 'c', value_name = "FILE", env = "COFFERDAM_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Show the whole difference, including full tool definitions
    #[arg(long)]
    pub(crate) full: bool,
    /// Skip the confirmation prompt
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EmbedArgs {
    /// Component file
    pub(crate) component: PathBuf,
    /// Manifest file
    pub(crate) manifest: PathBuf,
    /// Write the component to this file [default: in place]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigCheckArgs {
    /// Configuration file
    pub(crate) file: PathBuf,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses a number with a unit: `ms`, `s` or `m`.
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
        _ => Err("expected a duration between 1ms and 1440m".to_owned()),
    }
}

fn bad_duration(text: &str) -> String {
    format!("invalid duration `{text}`: expected an integer with a unit, such as 500ms, 5s or 2m")
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
