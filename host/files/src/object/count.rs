//! Counts what the store holds, for its quota: one request per thousand objects.

use std::time::{Duration, Instant, SystemTime};

use object_store::ObjectMeta;

use super::contents::DirectoryContents;
use super::keys;
use super::requests::Bucket;
use crate::ledger::UsageLedger;
use crate::quota::UsageChange;
use crate::{FileError, StorePath, Usage};

/// Longer than any change takes, so that an older copy belongs to a host that no longer runs.
const STAGED_AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

impl Bucket {
    /// Returns the usage after `change`, if the quota admits it. Does not enter it in the ledger.
    pub(super) async fn admit(
        &self,
        ledger: &mut UsageLedger,
        change: UsageChange,
    ) -> Result<Usage, FileError> {
        let usage = self.usage(ledger).await?;
        Ok(self.quota.admit(usage, change)?)
    }

    /// Returns the usage of the store, counting it if the ledger has no current value.
    pub(super) async fn usage(&self, ledger: &mut UsageLedger) -> Result<Usage, FileError> {
        if let Some(usage) = ledger.known() {
            return Ok(usage);
        }
        let started = Instant::now();
        let (objects, is_truncated) = self.all(&StorePath::ROOT).await?;
        let usage =
            DirectoryContents::of_objects(&self.keys, &StorePath::ROOT, &objects, is_truncated)
                .usage();
        if !self.is_read_only {
            remove_stale(self, &objects).await;
        }
        Ok(ledger.counted(usage, started))
    }
}

/// Removes staged copies of killed hosts. Failures do not matter, because the next count tries
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
