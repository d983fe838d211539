//! Changes on disk, as they come.

use std::path::PathBuf;

use anyhow::Context;
use notify::RecommendedWatcher;
use tokio::sync::mpsc::{self, UnboundedReceiver};

/// A watcher that watches nothing yet, and the paths that change once it does. Reading is no change.
pub(crate) fn changes(of: &str) -> anyhow::Result<(RecommendedWatcher, UnboundedReceiver<PathBuf>)> {
    let (send, receive) = mpsc::unbounded_channel();
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if let Ok(event) = event
            && !event.kind.is_access()
        {
            for path in event.paths {
                // Whoever no longer listens wants to know nothing.
                let _ = send.send(path);
            }
        }
    });
    Ok((watcher.with_context(|| format!("changes of {of} are not noticed"))?, receive))
}
