//! What authors of plugins type.

use std::path::PathBuf;

use clap::Args;
use cofferdam_author::Language;

use super::ServeArgs;

pub(crate) const NEW_EXAMPLES: &str = "\
Languages: rust, python, javascript, typescript, go, c, cpp. Any other language that makes \
components works through the
interface in `wit/` of this project.

Examples:
  cofferdam new greet --lang python
  cofferdam new plugins/invoices --lang rust";

pub(crate) const BUILD_EXAMPLES: &str = "\
The language is seen from the files. What cannot be seen stands in plugin.toml under [build]: \
name, language, entry (Python,
JavaScript), sources and flags (C, C++), sdk. The rest of plugin.toml becomes the manifest of the component.

Examples:
  cofferdam build
  cofferdam build plugins/invoices --watch
  cofferdam build --json | jq .digest";

pub(crate) const TEST_EXAMPLES: &str = "\
A case is a line of cases.jsonl:
  {\"tool\":\"greet\",\"arguments\":{\"name\":\"Ada\"},\"result\":\"Hello, Ada!\"}
  {\"tool\":\"read\",\"arguments\":{\"file\":\"/data/a\"},\"mounts\":{\"data\":{\"a\":\"hi\"}},\"result\":\"hi\"}
Each runs in a call of its own and gets what it names (mounts, secrets, env, config) and nothing else. It says one end: result, contents,
failure, failed, error or invalid; docs/cli.md has all keys.

Examples:
  cofferdam test
  cofferdam test --filter missing
  cofferdam test dist/greet.wasm --cases cases.jsonl --json";

pub(crate) const DEV_EXAMPLES: &str = "\
Serves like `cofferdam serve` from the start, builds, and builds again whenever a source changes. \
Calls that come before the first
build is there wait for it. Calls in flight end on the build that they began with. What does not build leaves the last one in place.

Examples:
  cofferdam dev --http 127.0.0.1:8391 --no-auth
  cofferdam dev plugins/invoices --mount data=./fixtures:ro
  claude mcp add invoices -- cofferdam dev plugins/invoices";

#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// The directory to make; its last part is the name of the plugin
    #[arg(value_name = "NAME")]
    pub(crate) path: PathBuf,
    /// What the tools are written in
    #[arg(long, short, value_name = "LANGUAGE")]
    pub(crate) lang: Language,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct BuildArgs {
    /// The directory of the project
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) directory: PathBuf,
    /// Where to write the component [default: dist/NAME.wasm in the project]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Keep the names of functions, for backtraces
    #[arg(long)]
    pub(crate) keep_names: bool,
    /// Build again whenever a source changes, until Ctrl-C
    #[arg(long, short)]
    pub(crate) watch: bool,
    /// Show what the toolchain prints
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Print what was built as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// The directory of a project that is built, or a component file
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) path: PathBuf,
    /// The file of cases [default: cases.jsonl in the project, or beside the component]
    #[arg(long, value_name = "FILE")]
    pub(crate) cases: Option<PathBuf>,
    /// Whose cases to run, where cases are about some languages [default: that of the project]
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) language: Option<Language>,
    /// Run only cases with this text in their name or tool
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Print one JSON object per case
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    /// The directory of the project
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) directory: PathBuf,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}
