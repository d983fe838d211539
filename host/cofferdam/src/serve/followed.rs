//! Tools that follow changes of files and servers, for another service than an MCP server.

use std::sync::Arc;

use cofferdam_engine::Engine;
use tokio_util::sync::CancellationToken;

use super::running::OfferTarget;
use super::{RunningService, ServeOptions, ServedState, follow};
use crate::records::CallLog;
use crate::servers::ChangeSignal;
use crate::{Operator, Result};

/// Loaded tools of a selection.
pub(crate) struct FollowedTools {
    running: Arc<RunningService>,
    call_log: Option<Arc<CallLog>>,
}

impl FollowedTools {
    /// Loads the tools that the options select, and asks the operator for missing grants. Nothing
    /// is published yet.
    ///
    /// # Errors
    /// Returns an error if the selection or its configuration is invalid, a plugin could write a
    /// file that controls its grants, or nothing can be loaded.
    pub(crate) async fn load(
        engine: Engine,
        options: ServeOptions,
        target: Arc<dyn OfferTarget>,
        operator: &Operator,
    ) -> Result<Self> {
        let news = ChangeSignal::default();
        let state = ServedState::load_to_call(&engine, &options, &news, operator).await?;
        let call_log = state.call_log();
        let operator = operator.clone();
        let running = RunningService::new(target, engine, options, state, news, operator);
        Ok(Self { running: Arc::new(running), call_log })
    }

    /// Returns the log that the calls are recorded in, if they are.
    pub(crate) fn call_log(&self) -> Option<&Arc<CallLog>> {
        self.call_log.as_ref()
    }

    /// Publishes the tools now and after each change, until `stop` is canceled.
    ///
    /// # Errors
    /// Returns an error if the tools cannot be published at the start.
    pub(crate) async fn publish(&self, stop: &CancellationToken) -> Result<()> {
        let running = &self.running;
        // Waits for the bus for as long as it is unreachable.
        let Some(published) = stop.run_until_cancelled(running.publish_first()).await else {
            return Ok(());
        };
        published?;
        let following_files = async {
            if running.options.follows_changes
                && let Err(error) = follow(Arc::clone(running)).await
            {
                running.operator.note(&format!("error: {error:#}"));
            }
        };
        let following = async { tokio::join!(following_files, running.follow_servers()) };
        stop.run_until_cancelled(Box::pin(following)).await;
        Ok(())
    }
}
