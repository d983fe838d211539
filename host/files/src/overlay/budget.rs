//! What the changes of one call may take: memory, and disk for what is too large for memory.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::content::Spilled;
use crate::{FileError, FileStore};

/// How many files one call may have on disk at a time, each of which is a descriptor of the host.
/// Further ones stay in memory.
const SPILLED_FILES_MAX: u64 = 64;
/// Least length of a file that goes to disk because memory is short. For shorter ones the
/// descriptors are too dear.
const SHORT_BYTES_MIN: u64 = 64 * 1024;

/// How much the changes of one call may take, all stores together. Clones are the same budget.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Accounts>);

#[derive(Debug)]
struct Accounts {
    memory: Account,
    spill: Option<Spill>,
}

struct Spill {
    options: Arc<SpillOptions>,
    disk: Account,
    files: Account,
}

/// Where contents are kept that are too large for memory, and how much of them. A directory store
/// on Linux keeps them in its own file system instead, so that they need not be copied; how much of
/// them counts all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillOptions {
    /// A directory of the host for files without names. It must be out of reach of every guest. A
    /// file system in memory (often `/tmp`) defeats the purpose.
    pub directory_ambient: PathBuf,
    /// All of them together, in bytes.
    pub bytes_max: u64,
    /// From this length on, in bytes, a file that is changed goes to disk. Shorter ones do when
    /// memory is short.
    pub file_bytes_min: u64,
}

#[derive(Debug)]
struct Account {
    max: u64,
    taken: AtomicU64,
}

/// Bytes taken out of a budget. They are given back when it is dropped.
#[derive(Debug)]
pub struct Charge {
    budget: Budget,
    kind: Kind,
    bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Memory,
    /// Of a file on disk. It holds one of the places for such files, too.
    Disk,
}

impl Budget {
    /// A budget of `bytes_max` in memory, and nothing on disk.
    #[must_use]
    pub fn new(bytes_max: u64) -> Self {
        Self(Arc::new(Accounts { memory: Account::new(bytes_max), spill: None }))
    }

    /// A budget of `bytes_max` in memory, with large contents on disk. Nothing is opened yet.
    #[must_use]
    pub fn with_spill_ambient(bytes_max: u64, options: impl Into<Arc<SpillOptions>>) -> Self {
        let options = options.into();
        let (disk, files) = (Account::new(options.bytes_max), Account::new(SPILLED_FILES_MAX));
        let spill = Some(Spill { options, disk, files });
        Self(Arc::new(Accounts { memory: Account::new(bytes_max), spill }))
    }

    /// Takes `bytes` of memory, before they are allocated.
    ///
    /// # Errors
    /// [`FileError::Memory`] when fewer are left.
    pub fn take(&self, bytes: u64) -> Result<Charge, FileError> {
        self.charge(Kind::Memory, bytes)
    }

    /// What is taken of the memory, in bytes.
    #[must_use]
    pub fn bytes_taken(&self) -> u64 {
        self.0.memory.taken()
    }

    /// What is taken of the disk, in bytes.
    #[must_use]
    pub fn bytes_spilled(&self) -> u64 {
        self.0.spill.as_ref().map_or(0, |spill| spill.disk.taken())
    }

    /// Whether a file of `bytes` goes to disk although there is memory for it.
    pub(super) fn prefers_disk(&self, bytes: u64) -> bool {
        self.0.spill.as_ref().is_some_and(|spill| bytes >= spill.options.file_bytes_min.max(1))
    }

    /// Whether a file of `bytes` may go to disk if there is no memory for it.
    pub(super) fn allows_disk(&self, bytes: u64) -> bool {
        self.0.spill.is_some() && bytes >= SHORT_BYTES_MIN || self.prefers_disk(bytes)
    }

    /// Takes room for `bytes` on disk and gives an empty file, one of `store` if it has such files.
    ///
    /// # Errors
    /// [`FileError::Disk`] when less is left, [`FileError::Memory`] when there are too many such
    /// files, [`FileError::Host`].
    pub(super) fn spill(&self, bytes: u64, store: &dyn FileStore) -> Result<Spilled, FileError> {
        let Some(spill) = &self.0.spill else { return Err(self.out_of_memory()) };
        if !spill.files.add(1) {
            return Err(self.out_of_memory());
        }
        // From here on the charge gives the place back.
        let mut charge = Charge { budget: self.clone(), kind: Kind::Disk, bytes: 0 };
        charge.set(bytes)?;
        if let Some(file) = store.nameless_file() {
            return Ok(Spilled::of_store(file, charge));
        }
        Ok(Spilled::new(tempfile::tempfile_in(&spill.options.directory_ambient)?, charge))
    }

    fn charge(&self, kind: Kind, bytes: u64) -> Result<Charge, FileError> {
        let mut charge = Charge { budget: self.clone(), kind, bytes: 0 };
        charge.set(bytes)?;
        Ok(charge)
    }

    fn out_of_memory(&self) -> FileError {
        FileError::Memory { bytes_max: self.0.memory.max }
    }

    fn account(&self, kind: Kind) -> Option<&Account> {
        match kind {
            Kind::Memory => Some(&self.0.memory),
            Kind::Disk => self.0.spill.as_ref().map(|spill| &spill.disk),
        }
    }
}

impl Account {
    fn new(max: u64) -> Self {
        Self { max, taken: AtomicU64::new(0) }
    }

    fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    fn add(&self, amount: u64) -> bool {
        let sum = |taken: u64| taken.checked_add(amount).filter(|sum| *sum <= self.max);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).is_ok()
    }

    fn give_back(&self, amount: u64) {
        self.taken.fetch_sub(amount, Ordering::Relaxed);
    }
}

impl Charge {
    /// Makes it a charge of `bytes`, or leaves it as it is.
    ///
    /// # Errors
    /// [`FileError::Memory`], or [`FileError::Disk`] where it is for something on disk.
    pub fn set(&mut self, bytes: u64) -> Result<(), FileError> {
        let Some(account) = self.budget.account(self.kind) else {
            return Err(self.budget.out_of_memory());
        };
        if bytes <= self.bytes {
            account.give_back(self.bytes - bytes);
        } else if !account.add(bytes - self.bytes) {
            let bytes_max = account.max;
            return Err(match self.kind {
                Kind::Memory => FileError::Memory { bytes_max },
                Kind::Disk => FileError::Disk { bytes_max },
            });
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(account) = self.budget.account(self.kind) {
            account.give_back(self.bytes);
        }
        if let (Kind::Disk, Some(spill)) = (self.kind, &self.budget.0.spill) {
            spill.files.give_back(1);
        }
    }
}

/// Shows nothing of the host.
impl fmt::Debug for Spill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spill")
            .field("disk", &self.disk)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}
