//! Replays of recorded calls for the pages of an inspector.

use std::path::PathBuf;
use std::sync::Arc;

use cofferdam_engine::Engine;
use cofferdam_inspector::{CallReplayer, ReplayComponent, ReplayFuture, ReplayedCall};
use cofferdam_record::Log;
use cofferdam_tool::recording::CallRecording;

use crate::config::ConfigFile;
use crate::replay::{self, ReplayPlugins};
use crate::{EngineOptions, Operator, Result};

/// Runs recorded calls again, in components that the log keeps or a configuration names.
pub struct EngineReplayer {
    engine: EngineSource,
    config: Option<PathBuf>,
    log: PathBuf,
}

/// Engine of replays.
#[derive(Clone)]
enum EngineSource {
    /// Starts with each replay: a page that shows a log needs none.
    Options(EngineOptions),
    /// The engine of a server.
    Engine(Engine),
}

impl EngineReplayer {
    /// Creates a replayer of the log in a directory, which starts an engine for each replay.
    #[must_use]
    pub fn new(options: EngineOptions, config: Option<PathBuf>, log: PathBuf) -> Self {
        Self { engine: EngineSource::Options(options), config, log }
    }

    /// Creates a replayer that uses a running engine.
    #[cfg(feature = "mcp")]
    pub(crate) fn of_engine(engine: Engine, config: Option<PathBuf>, log: PathBuf) -> Self {
        Self { engine: EngineSource::Engine(engine), config, log }
    }
}

impl CallReplayer for EngineReplayer {
    fn replay(&self, recording: Arc<CallRecording>, component: ReplayComponent) -> ReplayFuture {
        let (engine, log) = (self.engine.clone(), self.log.clone());
        let (config, of_component) = match component {
            ReplayComponent::Recorded(of) => (None, of),
            ReplayComponent::Configured => (self.config.clone(), Arc::clone(&recording)),
        };
        Box::pin(async move {
            let replayed = replay(engine, config, log, &of_component, &recording).await;
            replayed.map_err(|error| format!("{error:#}"))
        })
    }

    fn has_configuration(&self) -> bool {
        self.config.is_some()
    }
}

async fn replay(
    engine: EngineSource,
    config: Option<PathBuf>,
    log: PathBuf,
    of_component: &CallRecording,
    recording: &Arc<CallRecording>,
) -> Result<ReplayedCall> {
    let engine = match engine {
        EngineSource::Options(options) => options.start()?,
        EngineSource::Engine(engine) => engine,
    };
    let config = config.as_deref().map(ConfigFile::read_ambient).transpose()?;
    let log = Log::open(log).map_err(|error| crate::Error::invalid(error.to_string()))?;
    let plugins = ReplayPlugins::new(engine, Operator::default());
    let plugin = plugins.config(config).log(log).of(of_component).await?;
    let report = replay::run(&plugin, recording).await;
    let report = report.map_err(|error| crate::Error::invalid(error.to_string()))?;
    Ok(ReplayedCall {
        differences: report.differences.iter().map(ToString::to_string).collect(),
        gaps: report.gaps,
        is_same_component: report.is_same_component,
        recorded_cpu_us: report.recorded_cpu_us,
        cpu_us: report.cpu_us,
    })
}
