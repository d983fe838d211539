//! Offers the checkpoints of a log to witnesses while a host runs. A witness that does not answer
//! delays no call and no checkpoint.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::WitnessClient;

/// Time between two offers: that between two checkpoints.
const INTERVAL: Duration = Duration::from_secs(60);
/// Time for the last offer.
const SHUTDOWN_TIME: Duration = Duration::from_secs(2);

/// State of the offers to witnesses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WitnessHealth {
    /// True if a witness did not sign the last time.
    pub is_failing: bool,
    /// Last error, which may be over.
    pub error: Option<String>,
}

/// Offers to witnesses, until they are shut down or dropped.
#[must_use = "dropping the task ends the offers"]
pub struct WitnessTask {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    health: Arc<Mutex<WitnessHealth>>,
}

impl WitnessTask {
    /// Offers the checkpoints of the log in a directory every minute.
    ///
    /// # Panics
    /// If the caller is not within a Tokio runtime.
    pub fn start(directory: PathBuf, witnesses: Vec<WitnessClient>) -> Self {
        let (stop, mut stopped) = watch::channel(false);
        let health = Arc::<Mutex<WitnessHealth>>::default();
        let shared = Arc::clone(&health);
        let task = tokio::spawn(async move {
            loop {
                let _ = tokio::time::timeout(INTERVAL, stopped.changed()).await;
                // Before the offer, so that the last one is after the stop.
                let is_last = *stopped.borrow_and_update();
                offer(&directory, &witnesses, &shared).await;
                if is_last {
                    return;
                }
            }
        });
        Self { stop, task, health }
    }

    /// Returns the state of the offers.
    #[must_use]
    pub fn health(&self) -> WitnessHealth {
        self.health.lock().clone()
    }

    /// Offers the last checkpoints and ends, within two seconds. Close the recorder first.
    pub async fn shutdown(mut self) -> WitnessHealth {
        self.stop.send_replace(true);
        if tokio::time::timeout(SHUTDOWN_TIME, &mut self.task).await.is_err() {
            let error = "the last checkpoint was not signed before the end";
            tracing::warn!(target: "cofferdam::record", error);
        }
        self.health()
    }
}

impl Drop for WitnessTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn offer(
    directory: &std::path::Path,
    witnesses: &[WitnessClient],
    health: &Mutex<WitnessHealth>,
) {
    let mut failure = None;
    for witness in witnesses {
        if let Err(error) = witness.submit(directory).await {
            failure = Some(error.to_string());
        }
    }
    let mut health = health.lock();
    let was_failing = std::mem::replace(&mut health.is_failing, failure.is_some());
    if let (Some(error), false) = (&failure, was_failing) {
        tracing::warn!(target: "cofferdam::record", %error, "a checkpoint was not witnessed");
    }
    health.error = failure.or(health.error.take());
}
