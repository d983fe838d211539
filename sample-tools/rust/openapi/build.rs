//! Makes the tools from `openapi.json` or `openapi.yaml`.
//!
//! | setting | effect |
//! |---|---|
//! | the file `operations.txt` | only the operations that it names become tools: one operation ID, or method and path, per line |
//! | the environment variable `OPENAPI_SERVER` | address of the server, instead of the first one of the document |

mod generate;

use std::path::{Path, PathBuf};
use std::{env, fs};

const DOCUMENTS: [&str; 3] = ["openapi.json", "openapi.yaml", "openapi.yml"];
const SELECTION: &str = "operations.txt";

fn main() {
    if let Err(problem) = run() {
        println!("cargo::error={}", problem.replace('\n', " "));
    }
}

fn run() -> Result<(), String> {
    for file in DOCUMENTS.iter().chain(&["build.rs", "generate", "plugin.toml", SELECTION]) {
        println!("cargo::rerun-if-changed={file}");
    }
    println!("cargo::rerun-if-env-changed=OPENAPI_SERVER");
    let name = DOCUMENTS
        .into_iter()
        .find(|name| Path::new(name).exists())
        .ok_or_else(|| format!("no document: expected {}", DOCUMENTS.join(" or ")))?;
    let read = |name: &str| fs::read_to_string(name).map_err(|error| format!("{name}: {error}"));
    let document = generate::parse(name, &read(name)?)?;
    let selection = if Path::new(SELECTION).exists() { Some(read(SELECTION)?) } else { None };
    let server = env::var("OPENAPI_SERVER").ok();
    let generated = generate::generate(&document, server.as_deref(), selection.as_deref())
        .map_err(|problem| format!("{name}: {problem}"))?;
    for warning in generated.warnings {
        println!("cargo::warning={name}: {warning}");
    }
    if !read("plugin.toml")?.contains(&generated.server) {
        println!(
            "cargo::warning=plugin.toml does not ask for {}: add `http = [\"{} {}\"]` to \
             `[permissions]`",
            generated.server, generated.methods, generated.server
        );
    }
    let folder = env::var_os("OUT_DIR").map(PathBuf::from).ok_or("OUT_DIR is not set")?;
    let path = folder.join("operations.rs");
    fs::write(&path, generated.code).map_err(|error| format!("{}: {error}", path.display()))
}
