//! Calls of tools whose source is not ready yet.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_tool::invoke::Progress;
use rmcp::ErrorData;

use super::ServerShared;
use super::caller::Caller;
use super::catalog::Catalog;
use super::report::{Forwarder, ToolReport};

/// Maximum length of a wait that is not reported.
const UNREPORTED_MAX: Duration = Duration::from_secs(1);

/// Result of a wait.
pub(super) struct WaitOutcome {
    pub(super) catalog: Arc<Catalog>,
    /// Last progress value that was sent to the client during the wait, if any.
    pub(super) progress: Option<f64>,
}

impl ServerShared {
    /// Returns `catalog`, or a later one that contains the tool `name` if sources that may contain
    /// it are still loading. A client that wants progress learns what its call waits for.
    pub(super) async fn catalog_with(
        &self,
        catalog: Arc<Catalog>,
        name: &str,
        caller: &Caller,
    ) -> Result<WaitOutcome, ErrorData> {
        let is_found = |catalog: &Catalog| catalog.find(name, &caller.principal).is_some();
        let Some(wait) = catalog.loading_wait(&caller.principal).filter(|_| !is_found(&catalog))
        else {
            return Ok(WaitOutcome { catalog, progress: None });
        };
        let mut reports = Forwarder::new(caller, None, name);
        let reporting = async {
            tokio::time::sleep(UNREPORTED_MAX).await;
            let loading = catalog.loading(&caller.principal).join(", ");
            let message = format!("waiting for sources of tools that are not ready yet: {loading}");
            let progress = Progress { done: 0.0, total: None, message: Some(message) };
            reports.send(ToolReport::Progress(progress)).await;
            std::future::pending().await
        };
        let catalog = tokio::select! {
            biased;
            () = caller.cancellation().cancelled() => {
                return Err(ErrorData::internal_error("cancelled", None));
            }
            catalog = self.catalog_when(&caller.principal, wait, is_found) => catalog,
            catalog = reporting => catalog,
        };
        Ok(WaitOutcome { catalog, progress: reports.highest_progress() })
    }
}
