//! File stores: the files that a tool, a plugin or a model may access, and nothing else.
//!
//! A [`FileStore`] holds files and directories under [`StorePath`]s, the only paths it accepts.
//! [`MemoryStore`] keeps them in memory, [`DirectoryStore`] in one directory of the host, and
//! `BucketStore` (a feature) in a bucket. Other stores wrap any store: [`ReadOnly`] refuses
//! changes, [`CreateOnly`] permits only new files, [`Subtree`] shows only one directory,
//! [`RestrictedStore`] hides paths and makes others read-only, and [`AuditedStore`] reports every
//! access. [`StoreSharing`] selects the part that a session sees. An [`Overlay`] holds the changes
//! of one call until they are committed. All stores give the same results for the same operations,
//! messages included (`FILE-10`); the suite in the module `testing` (a feature) checks this for
//! each of them.
//!
//! Invariants:
//!
//! * No path can reach anything outside of a store: paths are checked when they are created, and
//!   links are never followed, not even one that appears between check and use (`FILE-18`).
//! * Only regular files and directories exist. A pipe, socket or device is never opened and cannot
//!   block anything.
//! * Everything has a limit ([`Quota`]), checked before anything changes. A refused change changes
//!   nothing.
//! * The [`Display`](std::fmt::Display) message of an error is for the model. `docs/rules/files.md`
//!   fixes its wording, and it contains no path of the host. The system's message is in its
//!   `source`, for logs.
//! * Functions that take a path of the host have names that end in `_ambient`.
//!
//! The behavior is fixed by numbered rules, cited as `FILE-7`. This crate does not depend on Wasm,
//! and must not panic on any path, pattern or content.

mod blocking;
mod changes;
mod content;
mod diff;
mod directory;
mod error;
mod file_tools;
mod glob;
mod guard;
mod ledger;
mod memory;
mod named;
#[cfg(feature = "object")]
mod object;
mod overlay;
mod path;
mod quota;
mod recording;
mod scope;
mod search;
mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod transaction;

pub use changes::Changes;
pub use diff::unified_diff;
pub use directory::{DirectoryOptions, DirectoryStore, OpenDirectoryError};
pub use error::{FileError, HostFailure, ServiceFailure, ServiceProblem};
pub use file_tools::{
    ApprovalRule, FileAccessError, FileAccessOptions, FileAccessStore, FileAccessTools, ToolAlias,
    UnknownToolWord,
};
pub use glob::{Glob, GlobError};
pub use guard::{
    Access, AccessKind, AccessOutcome, AuditedStore, CreateOnly, PathPatterns, ReadOnly,
    RestrictedStore, Subtree,
};
pub use memory::MemoryStore;
pub use named::{
    open_named_ambient, read_at_most, read_named_ambient, read_named_text_ambient,
    read_text_at_most,
};
#[cfg(feature = "object")]
pub use object::BucketStore;
#[cfg(feature = "cloud")]
pub use object::{BucketOptions, OpenBucketError};
pub use overlay::{
    Budget, ChangeKind, ChangedFile, Charge, OpenMode, Overlay, OverlayFile, SpillOptions,
    UnrecordedChanges, UnrestoredChanges,
};
pub use path::{NameRules, PathError, StorePath};
pub use quota::{Quota, QuotaCounts, QuotaExceeded, Usage};
pub use recording::{PlaybackStore, StoreRecorder, StoreRecordings};
pub use scope::{StoreSharing, session_stem};
pub use search::{
    FileMatches, MatchingLine, SearchCaps, SearchError, SearchQuery, SearchResults, Truncation,
    search,
};
pub use store::{
    EntryKind, FileLocation, FileReader, FileStore, Listing, ListingEntry, MadeDirectory,
    OmittedNames, PreparedCommit, RefusedName, Room, Scope, Stat, Version, WriteMode,
};
pub use transaction::{CommitError, SharedStore, Transaction, TransactionRecord};
