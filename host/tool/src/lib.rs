//! The vocabulary of Cofferdam and the rules that need no I/O and no runtime.
//!
//! A *tool* has a [`ToolDefinition`]; a [`ToolSource`] lists definitions and invokes them; a [`Toolset`] joins
//! several sources under unique names and is the one path that every edge (command line, MCP server, agent loop)
//! takes: look up, decode the arguments ([`InputSchema`]), invoke, and return an [`Outcome`] with its
//! [`CallRecord`].
//!
//! The behaviour is fixed by numbered rules, cited in the code as `ARG-7` (arguments) and `RES-5` (results).
//! Nothing here opens a file, a socket or a Wasm module, and nothing here may panic on any input.

mod arguments;
mod ask;
mod declaration;
mod definition;
mod error;
mod failure;
mod functions;
mod invoke;
mod json;
mod label;
mod limits;
mod name;
mod origin;
mod outcome;
mod output;
mod permission;
mod record;
mod redact;
mod retry;
mod schema;
mod text;
mod toolset;
mod usage;

pub use arguments::{Arguments, DecodeOptions, InvalidArguments, Problem, ProblemCode, is_supplied};
pub use ask::{Asker, LogLevel, LogSink, NotAsked, Question, QuestionKind, UnknownQuestion};
pub use declaration::{
    DECLARATION_RULES, Declaration, DeclarationError, KeptTool, Remark, Review, check_declarations, review,
};
pub use definition::{Annotations, ToolDefinition};
pub use error::{ErrorType, ToolError};
pub use failure::ToolFailure;
pub use functions::{FunctionEnd, Functions};
pub use invoke::{
    CallContext, FileEffects, HostValues, InnerCall, InnerCalls, LiveRun, NotChanged, OuterCall, Progress,
    ProgressSink, ToolCall, ToolSource,
};
pub use label::{Confidentiality, Destination, Integrity, Label, StatedBy, StatedLabels, ToolLabels};
pub use limits::Limits;
pub use name::{InvalidName, PluginName, ToolName};
pub use origin::ToolOrigin;
pub use outcome::{Completion, Conversion, Outcome, Raised, Shown};
pub use output::{Content, InvalidJson, Output, ResourceBody, parse_json};
pub use permission::{
    AddressRange, Asked, BoundHeader, ClockPrecision, FileAccess, Granted, Host, HostPattern, HttpGrant,
    HttpMethods, HttpRule, HttpScheme, HttpTarget, InvalidAddressRange, InvalidBoundHeader, InvalidHost,
    InvalidHttpRule, InvalidMountName, InvalidPermission, InvalidSecretTemplate, InvalidSocketRule,
    KeptAsked, LimitsAsked, Missing, MountName, Permission, Permissions, Policy, PortRule, SecretTemplate,
    SecretText, SocketProtocol, SocketRule, is_public_address,
};
pub use record::{
    CallRecord, FILE_CHANGES_MAX, FileChange, FileChangeKind, HostContact, MemoryRefusal, Phases,
    PluginIdentity, Refusal,
};
pub use redact::{Redactor, UnfitSecret};
pub use retry::{RetryOn, RetryPolicy, Retrying};
pub use schema::{Dialect, DialectSchema, InputSchema, Loss, Note, OutputSchema, UnknownDialect};
pub use text::is_hostile_char;
pub use toolset::{DuplicateTool, Refused, Toolset};
pub use usage::{Usage, UsageLimits};
