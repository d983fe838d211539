//! Runs tools of WebAssembly plugins, each call in its own sandbox.
//!
//! A plugin is a WebAssembly component. A [`Host`] loads plugins, decodes the JSON arguments of a
//! call by the tool's schema, runs the call in a fresh instance with the files, hosts and limits
//! that you grant, and returns a value or a structured error.
//!
//! # Call a plugin
//!
//! ```standalone_crate
//! use cofferdam::{Access, Host};
//! use serde_json::json;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     cofferdam::init();
//!     # let plugin = "../../target/plugins/text.wasm";
//!     # let notes = "../../docs";
//!     # /*
//!     let (plugin, notes) = ("text.wasm", "./notes");
//!     # */
//!     let host = Host::builder()
//!         .plugin(plugin)
//!         .mount("data", notes, Access::ReadOnly)
//!         # .no_cache()
//!         .build()
//!         .await?;
//!     let output = host.call("word_count", json!({"text": "to be or not to be"})).await?;
//!     println!("{}", output.text());
//!     # assert_eq!(output.value().unwrap()["words"], 6);
//!     Ok(())
//! }
//! ```
//!
//! Call [`init`] first in `main`. Plugins are untrusted, so the host compiles them in a child
//! process with limits on CPU time and memory. The child is your own program, started again.
//!
//! # Errors
//!
//! [`CallError`] distinguishes calls that were refused before they started from tools that failed,
//! trapped, exceeded a limit or were denied a permission. [`CallError::text`] is the message for a
//! model; the [`CallRecord`](tool::CallRecord) of the call has the details for the operator.
//!
//! ```standalone_crate
//! use cofferdam::{CallError, Host};
//! use serde_json::json;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # cofferdam::init();
//! # let host = Host::builder().plugin("../../target/plugins/crash.wasm").no_cache().build().await?;
//! match host.call("panic", json!({"message": "this stays on the host"})).await {
//!     Err(CallError::Error { error, record }) => {
//!         assert_eq!(error.type_name(), "Trap.Unreachable");
//!         assert!(record.stderr_tail.contains("this stays on the host"));
//!     }
//!     other => panic!("{other:?}"),
//! }
//! let error = host.call("panick", json!({})).await.unwrap_err();
//! assert!(matches!(error, CallError::Refused(_)));
//! # Ok(())
//! # }
//! ```
//!
//! # A Rust function as a tool
//!
//! ```standalone_crate
//! use std::sync::Arc;
//!
//! use cofferdam::Host;
//! use cofferdam::tool::{Functions, ToolFailure};
//! use serde_json::json;
//!
//! /// Divides a number by another one.
//! #[cofferdam::tool(read_only)]
//! fn divide(
//!     /// Number to divide.
//!     dividend: i64,
//!     #[tool(default = 2)] divisor: i64,
//! ) -> Result<i64, ToolFailure> {
//!     dividend.checked_div(divisor).ok_or_else(|| ToolFailure::new("the divisor is zero"))
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let functions = Functions::new("math").with_tool::<divide>()?;
//! let host = Host::builder().source(Arc::new(functions)).build().await?;
//! assert_eq!(host.call("divide", json!({"dividend": "42"})).await?.text(), "21");
//! # Ok(())
//! # }
//! ```
//!
//! Functions run in your process, outside any sandbox.
//!
//! # A source of tools of your own
//!
//! ```
//! use std::sync::Arc;
//!
//! use async_trait::async_trait;
//! use cofferdam::Host;
//! use cofferdam::tool::declaration::{Declaration, check_declarations};
//! use cofferdam::tool::{
//!     CallContext, Completion, Outcome, Output, ToolCall, ToolDefinition, ToolSource,
//! };
//! use serde_json::json;
//!
//! struct Clock(Arc<[Arc<ToolDefinition>]>);
//!
//! #[async_trait]
//! impl ToolSource for Clock {
//!     fn name(&self) -> &str {
//!         "clock"
//!     }
//!
//!     fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
//!         Arc::clone(&self.0)
//!     }
//!
//!     async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
//!         let zone = call.arguments.value()["zone"].as_str().unwrap_or_default();
//!         Completion::ended(Outcome::Ok(Output::Value(format!("noon in {zone}").into())), context)
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let schema = r#"{"type":"object","properties":{"zone":{"type":"string"}},"required":["zone"]}"#;
//! let definitions = check_declarations(&[Declaration::new("clock", "Tells the time.", schema)])?;
//! let clock = Clock(definitions.into_iter().map(Arc::new).collect());
//! let host = Host::builder().source(Arc::new(clock)).build().await?;
//! assert_eq!(host.call("clock", json!({"zone": "UTC"})).await?.text(), "noon in UTC");
//! # Ok(())
//! # }
//! ```
//!
//! The host decodes the arguments by the schema before it calls
//! [`ToolSource::invoke`](tool::ToolSource::invoke).
//!
//! # Files and hosts
//!
//! A plugin reaches only what it is granted: directories as mounts, HTTP requests by rule,
//! variables and secrets by name.
//!
//! ```no_run
//! use cofferdam::engine::Grants;
//! use cofferdam::tool::permission::HttpRule;
//! use cofferdam::{Access, Host};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! cofferdam::init();
//! let rule: HttpRule = "GET https://api.example.com/v1".parse()?;
//! let grants = Grants { http: vec![rule.into()], ..Grants::default() };
//! let host = Host::builder()
//!     .plugin("weather.wasm")
//!     .grants(grants)
//!     .mount("reports", "./reports", Access::CreateOnly)
//!     .build()
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! # A configuration
//!
//! `cofferdam.toml` names plugins, their grants and limits, MCP servers, stores and skills. The
//! command line reads the same file.
//!
//! ```standalone_crate
//! use cofferdam::Host;
//! use serde_json::json;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! cofferdam::init();
//! # let folder = tempfile::tempdir()?;
//! # let file = folder.path().join("cofferdam.toml");
//! # let component = std::path::absolute("../../target/plugins/text.wasm")?;
//! # std::fs::write(&file, format!("[plugins.text]\ncomponent = {component:?}\n"))?;
//! # /*
//! let file = "cofferdam.toml";
//! # */
//! let host = Host::builder()
//!     .config_file(file)
//!     # .no_cache()
//!     .build()
//!     .await?;
//! let output = host.call("word_count", json!({"text": "to be or not to be"})).await?;
//! # assert_eq!(output.value().unwrap()["words"], 6);
//! # Ok(())
//! # }
//! ```
//!
//! If a plugin has changed since it was accepted, or requests more than it is granted, the host
//! asks the operator through a [`Prompter`]. Without a prompter the plugin is left out, and the
//! [`Observer`] receives the reason.
#![cfg_attr(
    feature = "agent",
    doc = r##"
# An agent

```
use std::sync::Arc;

use cofferdam::Host;
use cofferdam::agent::ScriptedClient;
use cofferdam::tool::declaration::Declaration;
use cofferdam::tool::Functions;
use serde_json::json;

# #[tokio::main]
# async fn main() -> Result<(), Box<dyn std::error::Error>> {
# let clock = Declaration::new("clock", "Tells the time.", r#"{"type":"object","properties":{}}"#);
# let functions = Functions::new("clock").with(clock, async |_arguments, _context| Ok(json!("noon")))?;
# let host = Host::builder().source(Arc::new(functions)).build().await?;
let script = r#"
{"text":"I look.","calls":[{"tool":"clock","arguments":{}}]}
{"text":"It is noon."}
"#;
let model = ScriptedClient::read("script", script.as_bytes())?;
let agent = host.agent(model).instructions("Answer in one sentence.").build()?;
let response = agent.run("What time is it?").await?;
assert_eq!(response.text(), "It is noon.");
# Ok(())
# }
```
"##
)]
#![cfg_attr(
    feature = "mcp",
    doc = r#"
# An MCP server

```no_run
use cofferdam::Host;
use cofferdam::mcp::ServerOptions;

# #[tokio::main]
# async fn main() -> Result<(), Box<dyn std::error::Error>> {
cofferdam::init();
let host = Host::builder().plugin("text.wasm").build().await?;
host.mcp_server(ServerOptions::default())?.serve_stdio(Default::default()).await?;
# Ok(())
# }
```
"#
)]
//!
//! # Features
//!
//! All features but `schemars` and `openai-tokens` are on by default. Without default features
//! there is no HTTP client for models, no MCP and no YAML, and a configuration that uses a missing
//! feature is rejected.
//!
//! | feature | module | contents |
//! |---|---|---|
//! | `agent` | `agent` | function-calling agents |
//! | `schemars` | `agent` | answers of agents as Rust types |
//! | `openai-tokens` | `agent` | exact token counts for models of OpenAI |
//! | `openai`, `anthropic` | `models` | clients for models of these providers |
//! | `workflows` | `workflow` | graphs of agents and functions |
//! | `skills` | `skills` | instructions, files and scripts that an agent opens when it needs them |
//! | `labels` | `labels` | information-flow labels: untrusted results cannot steer an agent |
//! | `mcp` | `mcp` | MCP servers and clients |
//! | `cluster` | `cluster` | gateways and workers on several machines, over NATS |
//! | `registry` | `registry`, `advisories` | plugins from OCI registries and from the web |
//! | `macros` | | the attribute `#[cofferdam::tool]` |
//! | `inspector` | `inspector` | pages about recorded calls for a browser on this machine |
//! | `otlp`, `witness` | | spans of the call log for a collector, and its checkpoints for witnesses |
//! | `s3`, `gcs`, `azure` | | file stores in buckets |
//!
//! The module `workflow_file`, for workflows in YAML, needs `workflows`, `labels` and `openai` or
//! `anthropic`.

// Some code is unused without certain features. These lints apply only when all are enabled.
#![cfg_attr(
    not(all(
        feature = "anthropic",
        feature = "cluster",
        feature = "labels",
        feature = "mcp",
        feature = "s3",
        feature = "skills",
        feature = "workflows"
    )),
    allow(
        dead_code,
        unused_imports,
        unused_mut,
        unused_variables,
        reason = "features leave out what uses it"
    )
)]

#[cfg(feature = "registry")]
pub mod advisories;
#[cfg(all(feature = "workflows", any(feature = "anthropic", feature = "openai")))]
mod agent_context;
#[cfg(all(feature = "workflows", any(feature = "anthropic", feature = "openai")))]
pub mod agent_file;
pub mod artifacts;
#[cfg(feature = "agent")]
mod attachment;
mod builder;
mod call;
pub mod cases;
#[cfg(feature = "cluster")]
pub mod cluster;
pub mod code_mode;
pub mod columns;
mod compile_child;
pub mod compose;
pub mod config;
pub mod config_check;
pub mod consent;
#[cfg(all(feature = "workflows", any(feature = "anthropic", feature = "openai")))]
mod definition_file;
pub mod difference;
pub mod directories;
pub mod doctor;
mod engine_options;
mod error;
mod file_tools;
#[cfg(any(feature = "inspector", feature = "mcp"))]
mod file_version;
mod first_build;
mod flags;
pub mod folder_lock;
pub mod granting;
mod host;
#[cfg(feature = "inspector")]
pub mod inspector;
pub mod install;
pub mod json;
#[cfg(feature = "labels")]
mod label_policy;
#[cfg(feature = "registry")]
pub mod listing;
pub mod loading;
#[cfg(feature = "mcp")]
pub mod mcp_clients;
#[cfg(any(feature = "agent", feature = "mcp"))]
mod media_type;
#[cfg(any(feature = "anthropic", feature = "openai"))]
pub mod model_specs;
#[cfg(feature = "mcp")]
mod monitoring;
mod operator;
pub mod pins;
pub mod pipe;
mod plugin_name;
pub mod policy_files;
#[cfg(all(feature = "workflows", any(feature = "anthropic", feature = "openai")))]
mod prompt_file;
#[cfg(feature = "agent")]
mod recorded_model;
pub mod records;
#[cfg(feature = "registry")]
pub mod registry;
pub mod remembered;
pub mod replay;
mod selection;
mod selection_flags;
#[cfg(feature = "mcp")]
pub mod serve;
#[cfg(feature = "mcp")]
pub mod servers;
#[cfg(not(feature = "mcp"))]
#[path = "servers_absent.rs"]
mod servers;
pub mod signature;
#[cfg(feature = "skills")]
pub mod skill_tools;
#[cfg(not(feature = "skills"))]
#[path = "skill_tools_absent.rs"]
mod skill_tools;
pub mod starter;
mod state_file;
pub mod stores;
pub mod text;
mod toolsets;
#[cfg(feature = "registry")]
pub mod transfer;
pub mod trust;
pub mod watch;
#[cfg(all(
    feature = "workflows",
    feature = "labels",
    any(feature = "anthropic", feature = "openai")
))]
pub mod workflow_file;

#[cfg(feature = "agent")]
pub use cofferdam_agent as agent;
pub use cofferdam_code as code;
pub use cofferdam_engine as engine;
pub use cofferdam_files as files;
#[cfg(feature = "labels")]
pub use cofferdam_labels as labels;
#[cfg(feature = "mcp")]
pub use cofferdam_mcp as mcp;
#[cfg(any(feature = "anthropic", feature = "openai"))]
pub use cofferdam_models as models;
pub use cofferdam_record as record;
pub use cofferdam_registry::{Digest, Reference};
#[cfg(feature = "skills")]
pub use cofferdam_skills as skills;
pub use cofferdam_tool as tool;
pub use cofferdam_tool::FileAccess as Access;
/// Makes a tool of a Rust function.
#[cfg(feature = "macros")]
pub use cofferdam_tool::functions::facade_tool as tool;
#[cfg(feature = "workflows")]
pub use cofferdam_workflow as workflow;

#[cfg(all(feature = "workflows", any(feature = "anthropic", feature = "openai")))]
pub use self::agent_context::{AgentContext, ContextOptions, ContextSettings};
#[cfg(feature = "agent")]
pub use self::attachment::attachment;
pub use self::builder::HostBuilder;
pub use self::call::{CallError, CallOutput};
pub use self::compile_child::{compiler_program, init};
pub use self::engine_options::{CacheDirectory, EngineOptions};
pub use self::error::{BoxError, Error, ErrorKind, Result};
pub use self::first_build::FirstBuild;
pub use self::host::{Host, Purpose};
#[cfg(feature = "labels")]
pub use self::label_policy::LabelledTools;
pub use self::operator::{Availability, Observer, Operator, Prompter, Work};
pub use self::plugin_name::plugin_name;
#[cfg(all(feature = "workflows", any(feature = "anthropic", feature = "openai")))]
pub use self::prompt_file::PromptFile;
#[cfg(all(feature = "agent", feature = "labels"))]
pub(crate) use self::recorded_model::label_recorder;
#[cfg(feature = "agent")]
pub use self::recorded_model::{recorded, run_recorder};
pub use self::selection::{
    FilesStore, OfferedPermission, PluginFile, Selection, StoreLocation, StoreMount,
};
pub use self::selection_flags::SelectionFlags;
pub use self::stores::open_directory;
