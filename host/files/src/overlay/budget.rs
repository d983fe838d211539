//! Budget of the changes of one call: memory, and disk space for contents too large for memory.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::content::SpilledContent;
use crate::{FileError, FileStore};

/// Maximum number of files that one call may have on disk at a time, each of which takes a
/// descriptor of the host. Further ones stay in memory.
const SPILLED_FILES_MAX: u64 = 64;
/// Minimum length of a file that goes to disk because memory is short. Shorter ones are not worth a
/// descriptor.
const SHORT_BYTES_MIN: u64 = 64 * 1024;

/// Budget of the changes of one call, in all stores together. Clones share one budget.
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

/// Location and limits of contents that are too large for memory. A directory store on Linux keeps
/// them in its own file system instead, so that they need not be copied; they count against the
/// limits all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillOptions {
    /// Directory of the host for anonymous files. It must be out of reach of every guest. A file
    /// system in memory (often `/tmp`) defeats the purpose.
    pub directory_ambient: PathBuf,
    /// Maximum length of all of them together, in bytes.
    pub bytes_max: u64,
    /// Minimum length, in bytes, of a changed file that goes to disk. Shorter ones do when memory
    /// is short.
    pub file_bytes_min: u64,
}

#[derive(Debug)]
struct Account {
    max: u64,
    taken: AtomicU64,
}

/// Bytes taken from a budget. Dropping the charge returns them.
#[derive(Debug)]
pub struct Charge {
    budget: Budget,
    kind: Kind,
    bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Memory,
    /// Disk space of one file, which also counts against the number of such files.
    Disk,
}

impl Budget {
    /// Creates a budget of `bytes_max` in memory, and nothing on disk.
    #[must_use]
    pub fn new(bytes_max: u64) -> Self {
        Self(Arc::new(Accounts { memory: Account::new(bytes_max), spill: None }))
    }

    /// Creates a budget of `bytes_max` in memory, with large contents on disk. Opens nothing yet.
    #[must_use]
    pub fn with_spill_ambient(bytes_max: u64, options: impl Into<Arc<SpillOptions>>) -> Self {
        let options = options.into();
        let (disk, files) = (Account::new(options.bytes_max), Account::new(SPILLED_FILES_MAX));
        let spill = Some(Spill { options, disk, files });
        Self(Arc::new(Accounts { memory: Account::new(bytes_max), spill }))
    }

    /// Takes `bytes` of memory. Must be called before they are allocated.
    ///
    /// # Errors
    /// [`FileError::Memory`] if fewer are left.
    pub fn take(&self, bytes: u64) -> Result<Charge, FileError> {
        self.charge(Kind::Memory, bytes)
    }

    /// Returns the memory taken, in bytes.
    #[must_use]
    pub fn bytes_taken(&self) -> u64 {
        self.0.memory.taken()
    }

    /// Returns the disk space taken, in bytes.
    #[must_use]
    pub fn bytes_spilled(&self) -> u64 {
        self.0.spill.as_ref().map_or(0, |spill| spill.disk.taken())
    }

    /// Returns whether a file of `bytes` goes to disk although there is memory for it.
    pub(super) fn prefers_disk(&self, bytes: u64) -> bool {
        self.0.spill.as_ref().is_some_and(|spill| bytes >= spill.options.file_bytes_min.max(1))
    }

    /// Returns whether a file of `bytes` may go to disk if there is no memory for it.
    pub(super) fn allows_disk(&self, bytes: u64) -> bool {
        self.0.spill.is_some() && bytes >= SHORT_BYTES_MIN || self.prefers_disk(bytes)
    }

    /// Takes room for `bytes` on disk and creates an empty file, in `store` if it supports
    /// anonymous files.
    ///
    /// # Errors
    /// [`FileError::Disk`] if less is left, [`FileError::Memory`] if there are too many such files,
    /// [`FileError::Host`].
    pub(super) fn spill(
        &self,
        bytes: u64,
        store: &dyn FileStore,
    ) -> Result<SpilledContent, FileError> {
        let Some(spill) = &self.0.spill else { return Err(self.out_of_memory()) };
        if !spill.files.add(1) {
            return Err(self.out_of_memory());
        }
        // From here on, dropping the charge decrements the number of files.
        let mut charge = Charge { budget: self.clone(), kind: Kind::Disk, bytes: 0 };
        charge.set(bytes)?;
        if let Some(file) = store.anonymous_file() {
            return Ok(SpilledContent::of_store(file, charge));
        }
        Ok(SpilledContent::new(tempfile::tempfile_in(&spill.options.directory_ambient)?, charge))
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

    fn release(&self, amount: u64) {
        self.taken.fetch_sub(amount, Ordering::Relaxed);
    }
}

impl Charge {
    /// Changes the charge to `bytes`, or leaves it unchanged on failure.
    ///
    /// # Errors
    /// [`FileError::Memory`], or [`FileError::Disk`] for a charge of disk space.
    pub fn set(&mut self, bytes: u64) -> Result<(), FileError> {
        let Some(account) = self.budget.account(self.kind) else {
            return Err(self.budget.out_of_memory());
        };
        if bytes <= self.bytes {
            account.release(self.bytes - bytes);
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
            account.release(self.bytes);
        }
        if let (Kind::Disk, Some(spill)) = (self.kind, &self.budget.0.spill) {
            spill.files.release(1);
        }
    }
}

/// Omits the directory, which is information about the host.
impl fmt::Debug for Spill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spill")
            .field("disk", &self.disk)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}
