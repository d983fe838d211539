//! Inspector: pages for a browser on this machine that show recorded calls.
//!
//! An [`Inspector`] reads the directory of a call log and serves HTML over HTTP on a loopback
//! address. Pages are made on the server; a few small scripts add live updates, copy buttons and
//! local times. No page loads anything from another server.
//!
//! Everything that a page shows was written by untrusted parties: tools, models, files. It is
//! escaped by type, characters that reorder or hide text are shown as marks, and long text is cut
//! with a note about the rest. No address in it becomes a link, and nothing of it is rendered as
//! HTML or Markdown.
//!
//! A request has to pass checks of its host, its origin and its site, and has to carry the cookie
//! of a browser that logged in with a one-time key. With a [`Workbench`], pages can call the tools
//! of a running host, with the grants that they have. With [`PendingPrompts`] that accept answers,
//! they approve calls and answer the forms of tools. Nothing is granted here.
//!
//! [`PendingPrompts`]: cofferdam_tool::prompt::PendingPrompts

mod answer;
mod assets;
mod error;
mod fault;
mod form;
mod format;
mod grants;
mod guard;
mod inspector;
mod live;
mod live_run;
mod login;
mod progress;
mod prompts;
mod query;
mod replay;
mod router;
mod row;
mod run_view;
mod server;
mod source;
mod stall;
mod text;
mod trial;
mod views;
mod workbench;
mod workflows;

pub use error::InspectorError;
pub use grants::{GrantSource, PermissionGrant, PluginGrants};
pub use inspector::{CallCommand, GrantAdvice, Inspector, InspectorOptions};
pub use progress::RunProgress;
pub use replay::{CallReplayer, ReplayComponent, ReplayFuture, ReplayedCall};
pub use workbench::{HostLoad, Workbench};
pub use workflows::{
    OutlineEdge, RunCheckpoint, RunQuestion, WorkflowOutline, WorkflowRunSummary, WorkflowSource,
};
