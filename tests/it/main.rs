//! End-to-end tests, in one binary.
//!
//! | module | contents |
//! |---|---|
//! | `ends` | every way in which a call can end, caused by a real guest |
//! | `errors` | the page of error types and the catalog it is made from |
//! | `module` | no tests: guests made of modules in the text format |
//! | `sandbox` | what a guest can reach, and what survives a call |
//! | `permissions` | permissions that a plugin asks for, that are offered, that its calls get |
//! | `scheduling` | many calls at once: which runs, which waits, and the cost for the others |
//! | `mounts` | files of a guest: quotas, names, access, transactions |
//! | `script` | no tests: scripts for the guest `stores` |
//! | `stores` | files of a guest through `cofferdam:plugin/files` |
//! | `languages` | file APIs of other languages, with their own toolchains |
//! | `toolbox` | tools that call other tools |
//! | `client` | questions and log lines of a running tool to its caller |
//! | `conflicts` | calls that race for one file |
//! | `plugins` | every SDK's conformance plugin, every sample tool, and new projects |
//! | `network` | network access of a guest |
//! | `hostile` | attacks, each with its required end |
//! | `http_sessions` | sessions of older MCP clients over HTTP: streams, questions of calls, the end, and batches |
//! | `loading` | components that are refused as plugins |
//! | `typed` | components without code of this project, whose functions are tools |
//! | `cache` | compiled code on disk |
//! | `cli` | the binary: output, exit codes, messages |
//! | `cli_files` | the binary and files: file-access tools, dry runs, diffs |
//! | `cli_grants` | the binary and permissions: grant, revoke, approve, inspect |
//! | `cli_author` | the binary for authors of tools: check, args |
//! | `commands` | programs for WASI as plugins, and `cofferdam wrap` |
//! | `cli_chat` | the binary and models: text and calls, approvals, sessions, Ctrl-C |
//! | `code_mode` | code mode: programs of the model that call tools, in both languages |
//! | `cli_doctor` | checks of the machine: reports, advice, exit codes |
//! | `cli_eval` | the binary and evaluations: cases, reports, comparisons |
//! | `cli_log` | the binary and the call log: what is recorded, filters, evidence, protection |
//! | `cli_inspector` | the binary and the inspector: pages about recorded calls |
//! | `cli_replay` | the binary and recorded calls: replays, other versions, test cases, levels, secrets |
//! | `cli_mcp` | the binary and MCP hosts: entries of their files, bundles |
//! | `cli_pipe` | the binary and the program that started it: the pipe protocol |
//! | `cli_registry` | the binary and plugins from registries: add, fetch, update, publish, audit, attacks, kills |
//! | `cli_remembered` | the binary and permanent grants without a configuration |
//! | `cli_setup` | starter configurations, trust, the cache, completions, the version, JSON errors, color |
//! | `transcripts` | commands with all their output, in a pipe and in a terminal |
//! | `cli_skills` | the binary and skills: list, check, scripts, approval, MCP |
//! | `cli_workflow` | the binary and workflows: files, runs, answers, checkpoints, a kill |
//! | `unavailable` | a plugin that cannot be used, beside others that can |
//! | `operator` | no tests: an operator at a terminal |
//! | `wire` | no tests: an MCP server, and raw bytes to and from it |
//! | `serve` | MCP line by line: both revisions, both transports, shutdown |
//! | `cluster` | workers and gateways on a NATS server |
//! | `cluster_reload` | changes of plugins and configurations while a worker runs |
//! | `cluster_rollout` | versions that a gateway offers: pins, canaries, and the way back |
//! | `kubernetes` | the manifests of `docs/kubernetes` |
//! | `monitoring` | health and metrics of a server, and spans for a collector |
//! | `serve_agents` | agents and workflows as tools of a server |
//! | `serve_changes` | changes of plugins and grants while a server runs |
//! | `serve_rules` | approval rules of the configuration for the calls of clients |
//! | `servers` | remote MCP servers in a configuration: tools, names, secrets, approval, outcomes |
//! | `fuzz` | the seeds of the fuzz targets |
//! | `mcp_frames` | ten thousand damaged frames |
//! | `mcp_tokens` | tokens of a remote MCP server, and a user who interrupts twice |
//! | `samples` | the sample tools through the host, and the demo's script |
//! | `facade` | the library with a configuration: retries, call limits, unavailable plugins |
//! | `examples` | the programs of `tests/examples` |
//! | `bench` | the benchmarks, one short round each |
//! | `injection` | prompt injection against grants and labels; transcripts of `docs/labels.md` |
//! | `conformance` | the conformance rows |
//! | `tidy` | rules about this repository itself |

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "in a test a panic is the message"
)]

mod bench;
mod cache;
mod cli;
mod cli_author;
mod cli_chat;
mod cli_doctor;
mod cli_eval;
mod cli_files;
mod cli_grants;
mod cli_inspector;
mod cli_log;
mod cli_mcp;
mod cli_pipe;
mod cli_registry;
mod cli_remembered;
mod cli_replay;
mod cli_setup;
mod cli_skills;
mod cli_workflow;
mod client;
mod cluster;
mod cluster_reload;
mod cluster_rollout;
mod code_mode;
mod commands;
mod conflicts;
mod conformance;
mod ends;
mod errors;
mod examples;
mod facade;
mod fuzz;
mod hostile;
mod http_sessions;
mod injection;
mod kubernetes;
mod languages;
mod loading;
mod mcp_frames;
mod mcp_tokens;
mod module;
mod monitoring;
mod mounts;
mod network;
mod operator;
mod permissions;
mod plugins;
mod samples;
mod sandbox;
mod scheduling;
mod script;
mod serve;
mod serve_agents;
mod serve_changes;
mod serve_rules;
mod servers;
mod stores;
mod tidy;
mod toolbox;
mod transcripts;
mod typed;
mod unavailable;
mod wire;
