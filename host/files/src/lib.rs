//! File stores: what a tool, a plugin or a model may see of files, and nothing else.
//!
//! A [`FileStore`] holds files and directories under [`StorePath`]s, the only paths it accepts.
//! [`MemoryStore`] keeps them in memory, [`DirectoryStore`] in one directory of the host, and
//! `BucketStore` (a feature) in a bucket. [`ReadOnly`] takes the changes away from any store,
//! [`CreateOnly`] everything but new files, [`Subtree`] everything but one directory,
//! [`Restricted`] hidden paths and changes of read-only ones; [`Audited`] tells of every access,
//! and [`Sharing`] says which part a session sees. An [`Overlay`] keeps the changes of one call
//! until they are wanted. All stores give the same results for the same operations, texts included
//! (`FILE-10`), which the suite in the module `testing` (a feature) checks for each of them.
//!
//! What holds everywhere:
//!
//! * Nothing outside of a store can be reached by any path: paths are checked when they are made
//!   and links are never followed, not even one that appears between check and use (`FILE-18`).
//! * Only regular files and directories exist. A pipe, socket or device is never opened and cannot
//!   block anything.
//! * Everything has a limit ([`Quota`]), checked before anything changes. A refused change changes
//!   nothing.
//! * The [`Display`](std::fmt::Display) text of an error is for the model: it is the text of the
//!   contract and holds no path of the host. What the system said is in its `source`, for logs.
//! * What takes a path of the host says so in its name: `_ambient`.
//!
//! The behaviour is fixed by numbered rules, cited as `FILE-7`. Nothing here knows of Wasm, and
//! nothing here may panic on any path, pattern or content.

mod blocking;
mod changes;
mod content;
mod diff;
mod directory;
mod error;
mod finish;
mod glob;
mod guard;
mod harness;
mod ledger;
mod memory;
mod named;
#[cfg(feature = "object")]
mod object;
mod overlay;
mod path;
mod quota;
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
pub use finish::finish;
pub use glob::{Glob, GlobError};
pub use guard::{
    Access, AccessKind, AccessOutcome, Audited, CreateOnly, PathPatterns, ReadOnly, Restricted,
    Subtree,
};
pub use harness::{
    ApprovalRule, FileAccessError, FileAccessOptions, FileAccessStore, FileAccessTools, ToolWord,
    UnknownToolWord,
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
    Budget, ChangeKind, ChangedFile, Charge, OpenFile, OpenMode, Overlay, SpillOptions,
};
pub use path::{NameRules, PathError, StorePath};
pub use quota::{Quota, QuotaCounts, QuotaExceeded, Usage};
pub use scope::{Sharing, session_stem};
pub use search::{
    FileMatches, MatchingLine, SearchCaps, SearchError, SearchQuery, SearchResults, Truncation,
    search,
};
pub use store::{
    Entry, EntryKind, FileLocation, FileReader, FileStore, Listing, MadeDirectory, NotShown,
    RefusedName, Room, Scope, Stat, Version, WriteMode,
};
pub use transaction::{CommitError, Transaction};
