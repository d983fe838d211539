//! What the store holds, for its quota.
//!
//! The first change lists everything, a request per thousand objects. Later changes go by that count and what they did
//! themselves. Because other hosts may change the bucket too, a count is trusted for fifty times as long as it took and
//! at least a second.

use std::time::{Duration, Instant, SystemTime};

use object_store::ObjectMeta;

use super::contents::Contents;
use super::keys;
use super::requests::Bucket;
use crate::quota::Change;
use crate::{FileError, StorePath, Usage};

const TRUSTED_MIN: Duration = Duration::from_secs(1);
const TRUSTED_PER_COUNT: u32 = 50;

/// No change takes as long as this, so that a copy which is older belongs to a host that is gone.
const STAGED_AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The usage of a store as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    known: Option<Known>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    usage: Usage,
    trusted_until: Instant,
}

impl Ledger {
    /// The usage after `change`, if the quota admits it. Nothing is entered yet.
    pub(super) async fn admit(&mut self, bucket: &Bucket, change: Change) -> Result<Usage, FileError> {
        let usage = self.usage(bucket).await?;
        Ok(bucket.quota.admit(usage, change)?)
    }

    /// Enters what a change that took place has left.
    pub(super) fn enter(&mut self, usage: Usage) {
        if let Some(known) = &mut self.known {
            known.usage = usage;
        }
    }

    /// Enters that a file of `bytes` is gone.
    pub(super) fn enter_deletion(&mut self, bytes: u64) {
        if let Some(known) = &mut self.known {
            known.usage = known.usage.without_file(bytes);
        }
    }

    /// Enters that a directory is gone.
    pub(super) fn enter_removal(&mut self) {
        if let Some(known) = &mut self.known {
            known.usage = known.usage.without_directory();
        }
    }

    /// After a change that failed half-way nobody knows what is there.
    pub(super) fn forget(&mut self) {
        self.known = None;
    }

    /// What the store holds.
    pub(super) async fn usage(&mut self, bucket: &Bucket) -> Result<Usage, FileError> {
        let started = Instant::now();
        if let Some(known) = self.known.filter(|known| started < known.trusted_until) {
            return Ok(known.usage);
        }
        let (objects, is_truncated) = bucket.all(&StorePath::ROOT).await?;
        let usage = Contents::of_objects(&bucket.keys, &StorePath::ROOT, &objects, is_truncated).usage();
        if !bucket.is_read_only {
            remove_stale(bucket, &objects).await;
        }
        let trusted = started.elapsed().saturating_mul(TRUSTED_PER_COUNT).max(TRUSTED_MIN);
        self.known = Instant::now().checked_add(trusted).map(|trusted_until| Known { usage, trusted_until });
        Ok(usage)
    }
}

/// Removes the copies that hosts which were killed have left. Whether that works does not matter: the next count tries
/// again.
async fn remove_stale(bucket: &Bucket, objects: &[ObjectMeta]) {
    let keys = objects.iter().filter(|object| is_stale(object)).filter_map(|object| {
        bucket.keys.key(&object.location).filter(|key| keys::is_stage(key)).map(str::to_owned)
    });
    let _removed = bucket.delete(keys.collect::<Vec<_>>()).await;
}

fn is_stale(object: &ObjectMeta) -> bool {
    let age = SystemTime::now().duration_since(object.last_modified.into());
    age.is_ok_and(|age| age > STAGED_AGE_MAX)
}
