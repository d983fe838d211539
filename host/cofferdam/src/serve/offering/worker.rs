//! Tools of a worker, which gateways call.

use cofferdam_engine::Engine;
use cofferdam_tool::{ToolSource as _, Toolset};

use super::{LAST_PERCENTILE, ServeOptions, ServedState};
use crate::compose;
use crate::loading::{self, LoadState};
use crate::servers::{self, ChangeSignal};
use crate::{Operator, Result};

impl ServedState {
    /// Loads everything and asks the operator for missing grants, as for a command that calls
    /// tools.
    pub(in crate::serve) async fn load_to_call(
        engine: &Engine,
        options: &ServeOptions,
        news: &ChangeSignal,
        operator: &Operator,
    ) -> Result<Self> {
        let (state, loader) = Box::pin(Self::start(engine, options, None, news, operator)).await?;
        let mut state = state.loaded(loader).await?;
        if let Some(unavailable) = state.nothing() {
            return Err(unavailable.clone().into_error());
        }
        state.ask_for_grants()?;
        state.check_mounts(&options.selection)?;
        servers::wait_for_all(&state.servers, &state.operator).await;
        Ok(state)
    }

    /// Asks the operator for the permissions that plugins ask for and do not have.
    fn ask_for_grants(&mut self) -> Result<()> {
        let deciding = compose::policy_files_of(self.plugins.iter().map(|(spec, _)| spec));
        for (spec, state) in &mut self.plugins {
            if let LoadState::Ready(plugin) = state {
                *plugin = loading::ask_for_grants(plugin, spec, &deciding, &self.operator)?;
            }
        }
        Ok(())
    }

    /// Loads the code of all plugins: gateways call a version for a while after it was replaced,
    /// when its file has another one.
    pub(crate) async fn preload(&self) {
        for (_, plugin) in self.ready() {
            if let Err(error) = plugin.preload().await {
                // The first call returns the error.
                tracing::warn!(plugin = plugin.name(), %error, "the code is not loaded");
            }
        }
    }

    /// Returns the selected tools, and `run_code` if it is offered.
    ///
    /// # Errors
    /// Returns an error for a selection of tools that do not exist, and for names that conflict.
    pub(crate) fn callable(&self, options: &ServeOptions) -> Result<Toolset> {
        let mut toolset = self.toolset(LAST_PERCENTILE)?;
        self.observe_calls(&mut toolset, options);
        let (toolset, only) = self.selected(toolset, options)?;
        Ok(match only {
            Some(only) => toolset.restrict(|tool| only.contains(tool.name.as_str())),
            None => toolset,
        })
    }
}
