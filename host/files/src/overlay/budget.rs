//! The memory that the changes of one call may take.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::FileError;

/// How much memory the changes of one call may take, all stores together. Clones are the same budget.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Account>);

#[derive(Debug)]
struct Account {
    bytes_max: u64,
    bytes_taken: AtomicU64,
}

/// Bytes taken out of a budget. They are given back when it is dropped.
#[derive(Debug)]
pub struct Charge {
    budget: Budget,
    bytes: u64,
}

impl Budget {
    /// A budget of `bytes_max`.
    #[must_use]
    pub fn new(bytes_max: u64) -> Self {
        Self(Arc::new(Account { bytes_max, bytes_taken: AtomicU64::new(0) }))
    }

    /// Takes `bytes`, before they are allocated.
    ///
    /// # Errors
    /// [`FileError::Memory`] when fewer are left.
    pub fn take(&self, bytes: u64) -> Result<Charge, FileError> {
        let mut charge = Charge { budget: self.clone(), bytes: 0 };
        charge.set(bytes)?;
        Ok(charge)
    }

    /// What is taken, in bytes.
    #[must_use]
    pub fn bytes_taken(&self) -> u64 {
        self.0.bytes_taken.load(Ordering::Relaxed)
    }
}

impl Charge {
    /// Makes it a charge of `bytes`, or leaves it as it is.
    ///
    /// # Errors
    /// [`FileError::Memory`].
    pub fn set(&mut self, bytes: u64) -> Result<(), FileError> {
        let account = &self.budget.0;
        if bytes <= self.bytes {
            account.bytes_taken.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        } else {
            let added = bytes - self.bytes;
            let take = |taken: u64| taken.checked_add(added).filter(|sum| *sum <= account.bytes_max);
            account
                .bytes_taken
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                .map_err(|_| FileError::Memory { bytes_max: account.bytes_max })?;
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.0.bytes_taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
