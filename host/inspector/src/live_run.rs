//! Live updates of the page of a run, as server-sent events. An event has the whole state of the
//! run, so that a page needs no earlier one.
//!
//! A run in this process reports its changes. Runs of other processes are noticed by their
//! checkpoints, at which one look a second is taken for each open page.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};

use crate::error::PageError;
use crate::inspector::InspectorState;
use crate::live::{COMMENT_INTERVAL, EventBody};
use crate::progress::{ProgressState, THIS_PROCESS};
use crate::query::PageQuery;
use crate::run_view::{RunView, progress_of};
use crate::workflows::{WorkflowOutline, WorkflowSource};

/// Maximum number of open pages of runs with live updates.
pub(crate) const STREAMS_MAX: usize = 16;
/// Shortest time between two events.
const EVENT_INTERVAL: Duration = Duration::from_millis(250);
/// Time between two looks at the checkpoints.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Run that a page follows.
struct FollowedRun {
    state: Arc<InspectorState>,
    source: Arc<dyn WorkflowSource>,
    outline: WorkflowOutline,
    id: String,
}

/// Notices changes of a run.
enum RunChanges {
    /// Reports of this process.
    Reports(watch::Receiver<ProgressState>),
    /// Id of the newest checkpoint that was seen.
    Checkpoints(Option<String>),
}

/// Starts the events of a page. Returns `None` if too many pages are open.
///
/// # Errors
/// If there is no such run.
pub(crate) async fn stream(
    state: &Arc<InspectorState>,
    query: &PageQuery,
) -> Result<Option<EventBody>, PageError> {
    let source = state.options.workflows.clone().ok_or(PageError::NotFound)?;
    let Ok(permit) = Arc::clone(&state.run_streams).try_acquire_owned() else { return Ok(None) };
    let (name, id) = (query.value("name").to_owned(), query.value("run").to_owned());
    let Ok(_permit) = state.readers.acquire().await else { return Ok(None) };
    let state = Arc::clone(state);
    let finding = tokio::task::spawn_blocking(move || {
        let mut known = source.workflows().into_iter();
        let outline = known.find(|known| known.name == name).ok_or(PageError::NotFound)?;
        let run = FollowedRun { state, source, outline, id };
        let changes = run.changes();
        Ok::<_, PageError>((run.view()?, run, changes))
    });
    let (view, run, changes) = finding.await.map_err(|_| PageError::NotFound)??;
    let (events, body) = EventBody::channel();
    tokio::spawn(run.send_events(view, changes, events, permit));
    Ok(Some(body))
}

impl FollowedRun {
    /// Returns the changes from now on. May block.
    fn changes(&self) -> RunChanges {
        match progress_of(&*self.source, &self.outline.name).filter(|_| self.id == THIS_PROCESS) {
            Some(progress) => RunChanges::Reports(progress.changes()),
            None => RunChanges::Checkpoints(self.newest()),
        }
    }

    fn newest(&self) -> Option<String> {
        self.source.newest_checkpoint(&self.outline.name, &self.id)
    }

    fn view(&self) -> Result<RunView, PageError> {
        RunView::read(&*self.source, &self.outline, &self.id)
    }

    async fn send_events(
        self,
        mut view: RunView,
        mut changes: RunChanges,
        events: mpsc::Sender<Bytes>,
        permit: OwnedSemaphorePermit,
    ) {
        let run = Arc::new(self);
        loop {
            let event = Bytes::from(format!("event: run\ndata: {}\n\n", view.to_json()));
            if events.send(event).await.is_err() || view.is_over {
                break;
            }
            tokio::time::sleep(EVENT_INTERVAL).await;
            if !run.wait(&mut changes, &events).await {
                break;
            }
            let Ok(_permit) = run.state.readers.acquire().await else { break };
            let reader = Arc::clone(&run);
            match tokio::task::spawn_blocking(move || reader.view()).await {
                Ok(Ok(changed)) => view = changed,
                // The checkpoints are gone; the page learns that when it connects again.
                _ => break,
            }
        }
        drop(permit);
    }

    /// Waits for a change. Returns whether the page is still open.
    async fn wait(
        self: &Arc<Self>,
        changes: &mut RunChanges,
        events: &mpsc::Sender<Bytes>,
    ) -> bool {
        let first = tokio::time::Instant::now() + COMMENT_INTERVAL;
        let mut comments = tokio::time::interval_at(first, COMMENT_INTERVAL);
        loop {
            tokio::select! {
                () = events.closed() => return false,
                has_changed = self.next(changes) => return has_changed,
                _ = comments.tick() => {
                    if events.send(Bytes::from_static(b": open\n\n")).await.is_err() {
                        return false;
                    }
                }
            }
        }
    }

    /// Returns at the next change; `false` if there will be none. Can be dropped at any time.
    async fn next(self: &Arc<Self>, changes: &mut RunChanges) -> bool {
        match changes {
            RunChanges::Reports(reports) => reports.changed().await.is_ok(),
            RunChanges::Checkpoints(seen) => loop {
                tokio::time::sleep(POLL_INTERVAL).await;
                let reader = Arc::clone(self);
                match tokio::task::spawn_blocking(move || reader.newest()).await {
                    Ok(newest) if newest == *seen => {}
                    Ok(newest) => {
                        *seen = newest;
                        return true;
                    }
                    Err(_) => return false,
                }
            },
        }
    }
}
