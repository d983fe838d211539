//! Flags of the commands for plugin authors.

use std::path::PathBuf;

use clap::Args;
use cofferdam_author::Language;

use super::ServeArgs;

pub(crate) const NEW_EXAMPLES: &str = "\
Languages: rust, python, javascript, typescript, go, c, cpp, zig. Other languages that compile to
components work with the interface in `wit/` of this project.

Examples:
  cofferdam new greet --lang python
  cofferdam new plugins/invoices --lang rust";

pub(crate) const BUILD_EXAMPLES: &str = "\
The language is detected from the files. [build] in plugin.toml overrides it: name, language, entry
(Python, JavaScript, Zig), sources and flags (C, C++), sdk. The rest of plugin.toml becomes the manifest.

Examples:
  cofferdam build
  cofferdam build plugins/invoices --watch
  cofferdam build --json | jq .digest";

pub(crate) const TEST_EXAMPLES: &str = "\
A case is a line of cases.jsonl:
  {\"tool\":\"greet\",\"arguments\":{\"name\":\"Ada\"},\"result\":\"Hello, Ada!\"}
  {\"tool\":\"read\",\"arguments\":{\"file\":\"/data/a\"},\"mounts\":{\"data\":{\"a\":\"hi\"}},\"result\":\"hi\"}
A project is built first if its sources are newer than the component. Each case is one call. It gets only the mounts, secrets, env and config that it names, and expects
one of result, contents, failure, failed, error, invalid or recording. docs/cli.md lists all keys.

Examples:
  cofferdam test
  cofferdam test --filter missing
  cofferdam test --replay
  cofferdam test dist/greet.wasm --cases cases.jsonl --json";

pub(crate) const DEV_EXAMPLES: &str = "\
Serves like `cofferdam serve`, and rebuilds when a source changes. Calls wait for the first build;
calls in flight finish on their build. A failed build leaves the last one in place.

Examples:
  cofferdam dev --http 127.0.0.1:8391 --no-auth
  cofferdam dev plugins/invoices --mount data=./fixtures:ro
  claude mcp add invoices -- cofferdam dev plugins/invoices";

pub(crate) const WRAP_EXAMPLES: &str = "\
Each call is one run of the program in a fresh sandbox. Its standard output is the result; an exit
code other than 0 is a failure with the end of standard error. Without --arg and --stdin, the program
gets all arguments as one JSON object on standard input. In templates, {name} is an argument of the
call; a list becomes several words, and a template whose argument is absent is left out.

Examples:
  cofferdam wrap jq.wasm --name jq --description 'Filters JSON with a jq program.' \\
    --schema @jq.json --arg '{filter}' --stdin '{input}'
  cofferdam wrap report.wasm --name report --description 'Sums up sales.' --schema @s.json --json-output
  cofferdam wrap tools.wasm --manifest plugin.toml --output dist/tools.wasm";

#[derive(Debug, Args)]
pub(crate) struct WrapArgs {
    /// Program: a core module with `_start`, or a component with `wasi:cli/run`
    #[arg(value_name = "FILE")]
    pub(crate) program: PathBuf,
    /// Manifest that declares the tools, instead of the flags below
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "description", "schema", "arguments", "stdin", "json_output"])]
    pub(crate) manifest: Option<PathBuf>,
    /// Name of the tool
    #[arg(long, required_unless_present = "manifest")]
    pub(crate) name: Option<String>,
    /// Description of the tool, for the model
    #[arg(long, value_name = "TEXT", required_unless_present = "manifest")]
    pub(crate) description: Option<String>,
    /// JSON Schema of the arguments, or @FILE
    #[arg(long, value_name = "JSON", required_unless_present = "manifest")]
    pub(crate) schema: Option<String>,
    /// Word of the command line, in order; may be repeated
    #[arg(long = "arg", value_name = "TEMPLATE", allow_hyphen_values = true)]
    pub(crate) arguments: Vec<String>,
    /// Contents of standard input
    #[arg(long, value_name = "TEMPLATE", allow_hyphen_values = true)]
    pub(crate) stdin: Option<String>,
    /// The program prints JSON, not text
    #[arg(long)]
    pub(crate) json_output: bool,
    /// Write the plugin to this file [default: dist/FILE]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// Directory to create; its last part is the name of the plugin
    #[arg(value_name = "NAME")]
    pub(crate) path: PathBuf,
    /// Language of the tools
    #[arg(long, short, value_name = "LANGUAGE")]
    pub(crate) lang: Language,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct BuildArgs {
    /// Project directory
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) directory: PathBuf,
    /// Write the component to this file [default: dist/NAME.wasm in the project]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Keep function names for backtraces
    #[arg(long)]
    pub(crate) keep_names: bool,
    /// Rebuild when a source changes, until Ctrl-C
    #[arg(long, short)]
    pub(crate) watch: bool,
    /// Show the output of the toolchain
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Project directory, or a component file
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) path: PathBuf,
    /// File of cases [default: cases.jsonl in the project, or next to the component]
    #[arg(long, value_name = "FILE")]
    pub(crate) cases: Option<PathBuf>,
    /// Run only the cases for this language [default: the project's]
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) language: Option<Language>,
    /// Run only cases whose name or tool contains this string
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Run each call again from a recording, and report what differs: results that depend on
    /// something besides the inputs of the call
    #[arg(long)]
    pub(crate) replay: bool,
    /// Test the existing component, even if sources are newer
    #[arg(long)]
    pub(crate) no_build: bool,
    /// Print a JSON object per case
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    /// Project directory
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) directory: PathBuf,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}
