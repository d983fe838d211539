//! Checkpoints: snapshots of a run after each superstep, in a file store (`WF-12`).
//!
//! A checkpoint is one file, written in one step. Every run has its own id, also one that is
//! resumed from a checkpoint, so existing checkpoints are never overwritten. A checkpoint contains
//! conversations in plain text and determines what a resumed workflow does: no tool may have write
//! access to it.

use data_encoding::HEXLOWER;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use cofferdam_files::{FileError, FileStore, PathError, Scope, StorePath, WriteMode, session_stem};
use serde::{Deserialize, Serialize};

use super::snapshot::Snapshot;

/// Maximum size of a checkpoint in bytes: that of a run at its limits, with room for escape
/// sequences.
const FILE_BYTES_MAX: u64 = 256 << 20;
const ENDING: &str = ".json";
/// Hexadecimal digits of a run's id: 12 of the time in milliseconds and 8 random ones.
const RUN_DIGITS: usize = 20;

/// Store of checkpoints, with one directory for each workflow name. Clones share the store.
#[derive(Clone)]
pub struct Checkpoints {
    store: Arc<dyn FileStore>,
}

/// Id of a checkpoint: its run and the number of its superstep. The string form is
/// `0193c0ffee00a1b2c3d4-000002`. The order of ids is their order in time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckpointId {
    run: String,
    superstep: u64,
}

/// Content of a checkpoint file.
#[derive(Serialize, Deserialize)]
struct CheckpointRecord {
    #[serde(rename = "type")]
    record: CheckpointRecordType,
    snapshot: Snapshot,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CheckpointRecordType {
    WorkflowCheckpoint,
}

/// Error of a checkpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The store returned an error.
    #[error("checkpoints cannot be stored: {0}")]
    Store(#[from] FileError),
    /// An id cannot be part of a path.
    #[error("checkpoints cannot be stored: {0}")]
    Path(#[from] PathError),
    /// The checkpoint does not exist.
    #[error("there is no checkpoint `{id}` of the workflow `{workflow}`")]
    Missing {
        /// Name of the workflow.
        workflow: String,
        /// Id of the checkpoint.
        id: CheckpointId,
    },
    /// The file is not a valid checkpoint.
    #[error("the checkpoint `{id}` cannot be read: {source}")]
    Unreadable {
        /// Id of the checkpoint.
        id: CheckpointId,
        /// Cause.
        source: serde_json::Error,
    },
    /// A snapshot cannot be written as JSON.
    #[error("a checkpoint cannot be written: {0}")]
    Unwritable(serde_json::Error),
    /// A string is not a valid id.
    #[error("`{text}` is not a checkpoint; ids are written like 0193c0ffee00a1b2c3d4-000002")]
    Id {
        /// The string.
        text: String,
    },
    /// The operating system provides no random numbers for an id.
    #[error("a run cannot be given an id: {0}")]
    Random(getrandom::Error),
}

impl Checkpoints {
    /// Creates a store of checkpoints. The file store must not contain anything else.
    pub fn new(store: Arc<dyn FileStore>) -> Self {
        Self { store }
    }

    /// Lists the checkpoints of a workflow in order of time.
    ///
    /// # Errors
    /// The store fails.
    pub async fn list(&self, workflow: &str) -> Result<Vec<CheckpointId>, CheckpointError> {
        let listing = self.store.list(&directory(workflow)?, Scope::Children).await?;
        let names = listing.entries.iter().filter_map(|entry| entry.name.strip_suffix(ENDING));
        let mut ids: Vec<CheckpointId> = names.filter_map(|name| name.parse().ok()).collect();
        ids.sort();
        Ok(ids)
    }

    /// Returns the most recent checkpoint of a workflow.
    ///
    /// # Errors
    /// The store fails.
    pub async fn latest(&self, workflow: &str) -> Result<Option<CheckpointId>, CheckpointError> {
        Ok(self.list(workflow).await?.pop())
    }

    /// Reads a checkpoint, for [`Workflow::resume`](super::Workflow::resume).
    ///
    /// # Errors
    /// The checkpoint does not exist or is invalid.
    pub async fn load(
        &self,
        workflow: &str,
        id: &CheckpointId,
    ) -> Result<Snapshot, CheckpointError> {
        let bytes = match self.store.read(&path(workflow, id)?, FILE_BYTES_MAX).await {
            Err(FileError::NotFound) => {
                return Err(CheckpointError::Missing {
                    workflow: workflow.to_owned(),
                    id: id.clone(),
                });
            }
            read => read?,
        };
        let record: CheckpointRecord = serde_json::from_slice(&bytes)
            .map_err(|source| CheckpointError::Unreadable { id: id.clone(), source })?;
        Ok(record.snapshot)
    }

    /// Deletes a checkpoint.
    ///
    /// # Errors
    /// [`CheckpointError::Missing`], or an error of the store.
    pub async fn delete(&self, workflow: &str, id: &CheckpointId) -> Result<(), CheckpointError> {
        match self.store.delete(&path(workflow, id)?).await {
            Err(FileError::NotFound) => {
                Err(CheckpointError::Missing { workflow: workflow.to_owned(), id: id.clone() })
            }
            deleted => Ok(deleted?),
        }
    }

    async fn save(&self, id: &CheckpointId, snapshot: &Snapshot) -> Result<(), CheckpointError> {
        let record = CheckpointRecord {
            record: CheckpointRecordType::WorkflowCheckpoint,
            snapshot: snapshot.clone(),
        };
        let bytes = serde_json::to_vec(&record).map_err(CheckpointError::Unwritable)?;
        Ok(self.store.write(&path(snapshot.workflow(), id)?, bytes, WriteMode::Replace).await?)
    }
}

/// Checkpoints of one run, under a new id.
#[derive(Debug, Clone)]
pub struct RunCheckpoints {
    checkpoints: Checkpoints,
    run: String,
}

impl RunCheckpoints {
    /// Creates an id for a run whose checkpoints are saved in a store.
    ///
    /// # Errors
    /// [`CheckpointError::Random`].
    pub fn new(checkpoints: &Checkpoints) -> Result<Self, CheckpointError> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut random = [0; 4];
        getrandom::fill(&mut random).map_err(CheckpointError::Random)?;
        // 48 bits suffice for 8,900 years.
        let millis = since.as_millis() & 0xffff_ffff_ffff;
        let run = format!("{millis:012x}{}", HEXLOWER.encode(&random));
        Ok(Self { checkpoints: checkpoints.clone(), run })
    }

    /// Returns the id of the run, which is that of its checkpoints ([`CheckpointId::run`]).
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    pub(super) async fn save(&self, snapshot: &Snapshot) -> Result<CheckpointId, CheckpointError> {
        let id = CheckpointId { run: self.run.clone(), superstep: snapshot.superstep() };
        self.checkpoints.save(&id, snapshot).await?;
        Ok(id)
    }
}

fn directory(workflow: &str) -> Result<StorePath, PathError> {
    StorePath::directory(&session_stem(Some(workflow)))
}

fn path(workflow: &str, id: &CheckpointId) -> Result<StorePath, PathError> {
    StorePath::file(&format!("{}/{id}{ENDING}", session_stem(Some(workflow))))
}

impl fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:06}", self.run, self.superstep)
    }
}

impl CheckpointId {
    /// Returns the id of the run. Its first twelve digits are the start of the run in milliseconds
    /// since 1970, in hexadecimal digits.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Returns the number of the superstep after which the checkpoint was taken.
    #[must_use]
    pub fn superstep(&self) -> u64 {
        self.superstep
    }
}

/// Accepts only digits and one hyphen, because an id is a part of a path.
impl FromStr for CheckpointId {
    type Err = CheckpointError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || CheckpointError::Id { text: text.to_owned() };
        let (run, superstep) = text.split_once('-').ok_or_else(wrong)?;
        let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        let is_run = run.len() == RUN_DIGITS && run.chars().all(is_hex);
        let is_number = superstep.len() >= 6 && superstep.chars().all(|c| c.is_ascii_digit());
        let superstep = superstep.parse().ok().filter(|_| is_run && is_number).ok_or_else(wrong)?;
        Ok(Self { run: run.to_owned(), superstep })
    }
}

impl Serialize for CheckpointId {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl fmt::Debug for Checkpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkpoints").finish_non_exhaustive()
    }
}
