//! Checks of the rules that all file stores share, to run against each implementation.
//!
//! [`run`] runs all checks, each on a fresh store. [`check_plan`] applies any sequence of
//! operations to a store and to a plain map and compares the results, messages included;
//! [`check_commits`] applies most of it to overlays and commits them.

mod checks;
mod model;
mod plan;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use crate::{FileStore, Quota, QuotaCounts};

#[cfg(test)]
pub(crate) use plan::plan;
pub use plan::{Operation, check_commits, check_plan};

/// Limits of the stores that the suite requests, unless a check needs others.
pub const QUOTA: Quota = Quota {
    bytes_max: 64,
    entries_max: 8,
    file_bytes_max: 32,
    depth_max: 4,
    counts: QuotaCounts::Total,
};

/// A situation in which every store behaves the same.
#[derive(Clone, Copy)]
pub struct Check {
    /// Name of the check, which states the expected behavior.
    pub name: &'static str,
    run: fn(Arc<dyn FileStore>) -> Running,
}

type Running = Pin<Box<dyn Future<Output = Result<(), Mismatch>> + Send>>;

/// Error that describes how a store differs from the rules of [`FileStore`].
#[derive(Debug)]
pub struct Mismatch(String);

impl Check {
    /// Returns all checks.
    #[must_use]
    pub fn all() -> &'static [Self] {
        checks::ALL
    }

    /// Runs the check on an empty store with the limits [`QUOTA`].
    ///
    /// # Errors
    /// The first difference.
    pub async fn run(&self, store: Arc<dyn FileStore>) -> Result<(), Mismatch> {
        (self.run)(store).await.map_err(|Mismatch(what)| Mismatch(format!("{}: {what}", self.name)))
    }
}

/// Runs every check, each on an empty store from `fresh`, and returns their number.
///
/// # Errors
/// The first difference.
pub async fn run(mut fresh: impl FnMut(&Quota) -> Arc<dyn FileStore>) -> Result<usize, Mismatch> {
    for check in Check::all() {
        check.run(fresh(&QUOTA)).await?;
    }
    Ok(Check::all().len())
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mismatch {}

/// Fails unless `found` and `expected` are equal.
fn expect<T: PartialEq + fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), Mismatch> {
    if found == expected {
        return Ok(());
    }
    Err(Mismatch(format!("{what}: expected {expected:?}, found {found:?}")))
}
