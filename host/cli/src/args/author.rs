//! Flags of the commands for plugin authors.

use std::path::PathBuf;

use clap::Args;
use cofferdam_author::Language;

use super::ServeArgs;

pub(crate) const NEW_EXAMPLES: &str = "\
Languages: rust, python, javascript, typescript, go, c, cpp. Other languages that compile to
components work with the interface in `wit/` of this project.

Examples:
  cofferdam new greet --lang python
  cofferdam new plugins/invoices --lang rust";

pub(crate) const BUILD_EXAMPLES: &str = "\
The language is detected from the files. [build] in plugin.toml overrides it: name, language, entry
(Python, JavaScript), sources and flags (C, C++), sdk. The rest of plugin.toml becomes the manifest.

Examples:
  cofferdam build
  cofferdam build plugins/invoices --watch
  cofferdam build --json | jq .digest";

pub(crate) const TEST_EXAMPLES: &str = "\
A case is a line of cases.jsonl:
  {\"tool\":\"greet\",\"arguments\":{\"name\":\"Ada\"},\"result\":\"Hello, Ada!\"}
  {\"tool\":\"read\",\"arguments\":{\"file\":\"/data/a\"},\"mounts\":{\"data\":{\"a\":\"hi\"}},\"result\":\"hi\"}
A project is built first if its sources are newer than the component. Each case is one call. It gets only the mounts, secrets, env and config that it names, and expects
one of result, contents, failure, failed, error or invalid. docs/cli.md lists all keys.

Examples:
  cofferdam test
  cofferdam test --filter missing
  cofferdam test dist/greet.wasm --cases cases.jsonl --json";

pub(crate) const DEV_EXAMPLES: &str = "\
Serves like `cofferdam serve`, and rebuilds when a source changes. Calls wait for the first build;
calls in flight finish on their build. A failed build leaves the last one in place.

Examples:
  cofferdam dev --http 127.0.0.1:8391 --no-auth
  cofferdam dev plugins/invoices --mount data=./fixtures:ro
  claude mcp add invoices -- cofferdam dev plugins/invoices";

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
    /// Test the component as it is, even if sources are newer
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
