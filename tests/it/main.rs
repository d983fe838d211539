//! The end-to-end tests, in one binary.
//!
//! | module | what belongs there |
//! |---|---|
//! | `ends` | every way in which a call can end, made by a real guest |
//! | `errors` | the page of error types and the catalogue it is made from |
//! | `module` | no tests: guests made of modules in the text format |
//! | `sandbox` | what a guest can reach, and what survives a call |
//! | `network` | what a guest can do on the network |
//! | `loading` | what is refused as a plugin, and why |
//! | `typed` | components without code of ours, whose functions are tools |
//! | `cache` | compiled code on disk |
//! | `cli` | the binary: output, exit codes, messages |
//! | `cli_author` | the binary for authors of tools: check, args |
//! | `samples` | the sample tools through the host, and the demo's script |
//! | `conformance` | the rows of the contract |
//! | `tidy` | rules about this repository itself |

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test a panic is the message"
)]

mod cache;
mod cli;
mod cli_author;
mod conformance;
mod ends;
mod errors;
mod loading;
mod module;
mod network;
mod samples;
mod sandbox;
mod tidy;
mod typed;
