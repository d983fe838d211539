//! Code mode: the model writes a program that calls tools, instead of calling them one by one.
//!
//! [`CodeMode`] is a source of one tool, `run_code`. An interpreter runs the program: a plugin that
//! is sandboxed like any other and gets a fresh instance for every program. The program calls the
//! tools of a toolset as functions. The description of `run_code` declares them with types that are
//! made from their schemas.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use cofferdam_code::{CodeMode, CodeOptions};
//! use cofferdam_tool::{CallContext, ToolSource, Toolset};
//!
//! # async fn example(
//! #     interpreter: Arc<dyn ToolSource>,
//! #     tools: Toolset,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//! let code = CodeMode::new(interpreter, &tools, CodeOptions::default())?;
//! let mut toolset = Toolset::new();
//! toolset.add(Arc::new(code))?;
//! let program = r#"{"code": "return await tools.word_count({text: 'to be'})"}"#;
//! let ended = toolset.call("run_code", Some(program.as_bytes()), &CallContext::new("1")).await?;
//! # Ok(())
//! # }
//! ```

mod approval;
mod builtins;
mod catalog;
mod declarations;
mod description;
mod error;
mod identifier;
mod language;
mod ledger;
mod memory;
mod mode;
mod question;
mod run;
mod seal;
mod types;

pub use self::approval::{ApprovalRequest, CallApprover, CodeApproval, Decision, ProgramRules};
pub use self::error::CodeError;
pub use self::language::{Language, UnknownLanguage};
pub use self::mode::{CodeMode, CodeOptions, RUN_CODE};
pub use self::seal::{LedgerError, LedgerSeal};
pub use self::types::{ObjectType, Property, Type};
