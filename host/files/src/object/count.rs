//! What the store holds, for its quota: a request per thousand objects.

use std::time::{Duration, Instant, SystemTime};

use object_store::ObjectMeta;

use super::contents::Contents;
use super::keys;
use super::requests::Bucket;
use crate::ledger::Ledger;
use crate::quota::Change;
use crate::{FileError, StorePath, Usage};

/// No change takes as long as this, so that a copy which is older belongs to a host that is gone.
const STAGED_AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

impl Bucket {
    /// The usage after `change`, if the quota admits it. Nothing is entered yet.
    pub(super) async fn admit(
        &self,
        ledger: &mut Ledger,
        change: Change,
    ) -> Result<Usage, FileError> {
        let usage = self.usage(ledger).await?;
        Ok(self.quota.admit(usage, change)?)
    }

    /// What the store holds.
    pub(super) async fn usage(&self, ledger: &mut Ledger) -> Result<Usage, FileError> {
        if let Some(usage) = ledger.known() {
            return Ok(usage);
        }
        let started = Instant::now();
        let (objects, is_truncated) = self.all(&StorePath::ROOT).await?;
        let usage =
            Contents::of_objects(&self.keys, &StorePath::ROOT, &objects, is_truncated).usage();
        if !self.is_read_only {
            remove_stale(self, &objects).await;
        }
        Ok(ledger.counted(usage, started))
    }
}

/// Removes the copies that hosts which were killed have left. Whether that works does not matter:
/// the next count tries again.
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
