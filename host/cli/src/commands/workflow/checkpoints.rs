//! The directory of `--checkpoints`, and the locks of the runs in it.

use std::fs::File;
use std::path::{Path, PathBuf};

use cofferdam::workflow_file;
use cofferdam_engine::sys::permissions;
use cofferdam_files::session_stem;
use cofferdam_workflow::{CheckpointError, CheckpointId, Checkpoints, RunCheckpoints, Snapshot};

use crate::commands::lock;
use crate::exit::UsageError;
use crate::print;

/// Directory of checkpoints. Only the user has access to it.
pub(super) struct CheckpointDirectory {
    pub(super) directory: PathBuf,
    pub(super) checkpoints: Checkpoints,
}

/// Checkpoints of a run that no other process can go on from while this process runs it.
pub(super) struct LockedRun {
    pub(super) checkpoints: RunCheckpoints,
    _lock: Option<File>,
}

impl CheckpointDirectory {
    pub(super) fn open(directory: &Path) -> anyhow::Result<Self> {
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let made = builder.recursive(true).create(directory);
        made.map_err(|error| {
            UsageError(format!("checkpoints cannot be kept in {}: {error}", directory.display()))
        })?;
        Self::open_existing(directory)
    }

    pub(super) fn open_existing(directory: &Path) -> anyhow::Result<Self> {
        let shown = directory.display();
        // On Windows, directories cannot be opened like this, and the access list is not checked.
        let is_exposed = File::open(directory).is_ok_and(|opened| {
            permissions::is_private(&opened).is_ok_and(|is_private| !is_private)
        });
        if is_exposed {
            print::note(&format!(
                "warning: other users can read the checkpoints, and so the conversations, in \
                 {shown}; run: chmod 700 '{shown}'"
            ));
        }
        let checkpoints = workflow_file::open_checkpoints_ambient(directory)
            .map_err(|error| UsageError(format!("{:#}", anyhow::Error::from(error))))?;
        Ok(Self { directory: directory.to_owned(), checkpoints })
    }

    /// Begins a run of a workflow, and locks it before it has a checkpoint.
    pub(super) fn begin_run(&self, workflow: &str) -> anyhow::Result<LockedRun> {
        let checkpoints = RunCheckpoints::new(&self.checkpoints)?;
        let lock = self.lock(workflow, checkpoints.run())?;
        Ok(LockedRun { checkpoints, _lock: lock })
    }

    /// Loads a checkpoint, the last one if `id` is empty, and locks its run: two processes that go
    /// on from it at the same time would both make the calls that its answers approve.
    pub(super) async fn load(
        &self,
        workflow: &str,
        id: &str,
    ) -> anyhow::Result<(Snapshot, Option<File>)> {
        let mut chosen = match id {
            "" => self.latest(workflow).await?,
            id => id.parse().map_err(|error: CheckpointError| UsageError(error.to_string()))?,
        };
        let (snapshot, lock) = loop {
            let snapshot = self.checkpoints.load(workflow, &chosen).await;
            let snapshot = snapshot.map_err(|error| match error {
                CheckpointError::Missing { .. } | CheckpointError::Unreadable { .. } => {
                    anyhow::Error::from(UsageError(error.to_string()))
                }
                other => other.into(),
            })?;
            let lock = self.lock(workflow, chosen.run())?;
            // A process that held the lock until now may have gone on from the checkpoint.
            let latest = if id.is_empty() { self.latest(workflow).await? } else { chosen.clone() };
            if latest == chosen {
                break (snapshot, lock);
            }
            chosen = latest;
        };
        print::note(&format!("going on from the checkpoint {chosen}"));
        Ok((snapshot, lock))
    }

    async fn latest(&self, workflow: &str) -> anyhow::Result<CheckpointId> {
        Ok(self.checkpoints.latest(workflow).await?.ok_or_else(|| {
            let directory = self.directory.display();
            UsageError(format!(
                "there is no checkpoint of the workflow `{workflow}` in {directory}"
            ))
        })?)
    }

    fn lock(&self, workflow: &str, run: &str) -> anyhow::Result<Option<File>> {
        let path = self.directory.join(format!("{}-{run}.lock", session_stem(Some(workflow))));
        lock::lock(&path, &format!("the run {run} of the workflow `{workflow}`"))
    }
}
