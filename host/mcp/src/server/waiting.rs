//! Calls of tools whose source is not ready yet.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_tool::invoke::Progress;
use rmcp::ErrorData;

use super::Shared;
use super::caller::Caller;
use super::catalog::Catalog;
use super::report::{Forwarder, Report};

/// Waits shorter than this are not reported.
const UNREPORTED_MAX: Duration = Duration::from_secs(1);

/// The state after a wait.
pub(super) struct Waited {
    pub(super) catalog: Arc<Catalog>,
    /// The progress that the client was sent meanwhile, if it was.
    pub(super) progress: Option<f64>,
}

impl Shared {
    /// Returns `catalog`, or the one that has the tool `name` if sources that may have it are still
    /// being loaded. A client that wants progress is told what its call waits for.
    pub(super) async fn catalog_with(
        &self,
        catalog: Arc<Catalog>,
        name: &str,
        caller: &Caller,
    ) -> Result<Waited, ErrorData> {
        let is_found = |catalog: &Catalog| catalog.find(name, &caller.principal).is_some();
        let Some(wait) = catalog.loading_wait(&caller.principal).filter(|_| !is_found(&catalog))
        else {
            return Ok(Waited { catalog, progress: None });
        };
        let mut reports = Forwarder::new(caller, None, name);
        let reporting = async {
            tokio::time::sleep(UNREPORTED_MAX).await;
            let loading = catalog.loading(&caller.principal).join(", ");
            let message = format!("waiting for sources of tools that are not ready yet: {loading}");
            let progress = Progress { done: 0.0, total: None, message: Some(message) };
            reports.send(Report::Progress(progress)).await;
            std::future::pending().await
        };
        let catalog = tokio::select! {
            biased;
            () = caller.cancellation().cancelled() => {
                return Err(ErrorData::internal_error("cancelled", None));
            }
            catalog = self.catalog_when(wait, is_found) => catalog,
            catalog = reporting => catalog,
        };
        Ok(Waited { catalog, progress: reports.furthest() })
    }
}
