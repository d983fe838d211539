//! An inspector and its options.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use cofferdam_tool::prompt::PendingPrompts;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::guard::RequestGuard;
use crate::live::LiveCalls;
use crate::live_run;
use crate::login::Logins;
use crate::prompts::PromptFeed;
use crate::source::LogSource;
use crate::{CallReplayer, GrantSource, InspectorError, Workbench, WorkflowSource};

/// Maximum number of tools that pages call at the same time.
const TRIALS_MAX: usize = 4;
/// Maximum number of pages that read the log at the same time.
const READERS_MAX: usize = 4;

/// Returns the command that grants a plugin a permission that it was refused, if there is one.
pub type GrantAdvice = Arc<dyn Fn(&str, &str) -> Option<String> + Send + Sync>;

/// Returns the command that calls a tool, by its name and its arguments as JSON, if there is one.
pub type CallCommand = Arc<dyn Fn(&str, &str) -> Option<String> + Send + Sync>;

/// Options of an inspector.
#[derive(Clone)]
pub struct InspectorOptions {
    /// Directory of the call log. It may not exist yet.
    pub directory: PathBuf,
    /// Flags with which `cofferdam log` reads this directory, after a space; empty for its default.
    pub log_flags: String,
    /// Commands that grant what was refused, by plugin and capability.
    pub grant_advice: GrantAdvice,
    /// Commands that make recorded calls again. Nothing secret is in them.
    pub call_command: CallCommand,
    /// Tools that pages can call. Without it, pages only show.
    pub workbench: Option<Arc<dyn Workbench>>,
    /// Prompts of running calls that pages show, and answer if the prompts accept answers.
    pub prompts: Option<PendingPrompts>,
    /// Permissions of plugins. Without it, pages show only what calls used.
    pub grants: Option<GrantSource>,
    /// Runs calls again that were recorded for it.
    pub replayer: Option<Arc<dyn CallReplayer>>,
    /// Workflows and their checkpoints.
    pub workflows: Option<Arc<dyn WorkflowSource>>,
}

impl InspectorOptions {
    /// Returns options with a directory only.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            grant_advice: Arc::new(|_, _| None),
            log_flags: String::new(),
            call_command: Arc::new(|_, _| None),
            workbench: None,
            prompts: None,
            grants: None,
            replayer: None,
            workflows: None,
        }
    }
}

impl std::fmt::Debug for InspectorOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InspectorOptions")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// Pages about the calls of one log. Clones share logins.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use cofferdam_inspector::{Inspector, InspectorOptions};
/// use tokio_util::sync::CancellationToken;
///
/// let options = InspectorOptions::new("records");
/// let (inspector, listener) = Inspector::listen(options, "127.0.0.1:0".parse()?).await?;
/// tracing::info!("open {}", inspector.login_address()?);
/// inspector.serve(listener, CancellationToken::new()).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Inspector {
    pub(crate) state: Arc<InspectorState>,
}

pub(crate) struct InspectorState {
    pub(crate) options: InspectorOptions,
    pub(crate) address: SocketAddr,
    pub(crate) guard: RequestGuard,
    pub(crate) logins: Logins,
    pub(crate) source: Arc<LogSource>,
    pub(crate) live: LiveCalls,
    pub(crate) prompts: Option<PromptFeed>,
    /// Permits of pages that follow a run.
    pub(crate) run_streams: Arc<Semaphore>,
    /// Permits to call a tool.
    pub(crate) trials: Semaphore,
    /// Permits to read the log for a page.
    pub(crate) readers: Semaphore,
}

impl Inspector {
    /// Listens on a loopback address. With port 0, the system chooses a port.
    ///
    /// # Errors
    /// [`InspectorError::NotLoopback`] if other machines could reach the address, and
    /// [`InspectorError::Listen`] if it cannot be listened on.
    pub async fn listen(
        options: InspectorOptions,
        address: SocketAddr,
    ) -> Result<(Self, TcpListener), InspectorError> {
        if !address.ip().is_loopback() {
            return Err(InspectorError::NotLoopback(address));
        }
        let failure = |error| InspectorError::Listen { address, error };
        let listener = TcpListener::bind(address).await.map_err(failure)?;
        let address = listener.local_addr().map_err(failure)?;
        let source = Arc::new(LogSource::new(options.directory.clone()));
        let state = InspectorState {
            prompts: options.prompts.clone().map(PromptFeed::new),
            options,
            address,
            guard: RequestGuard::new(address),
            logins: Logins::new(address.port()),
            live: LiveCalls::new(Arc::clone(&source)),
            source,
            run_streams: Arc::new(Semaphore::new(live_run::STREAMS_MAX)),
            trials: Semaphore::new(TRIALS_MAX),
            readers: Semaphore::new(READERS_MAX),
        };
        Ok((Self { state: Arc::new(state) }, listener))
    }

    /// Returns an address with a new key, with which one browser can log in within five minutes.
    ///
    /// # Errors
    /// [`InspectorError::NoRandomNumbers`].
    pub fn login_address(&self) -> Result<String, InspectorError> {
        let key = self.state.logins.new_key()?;
        Ok(format!("http://{}/#k={key}", self.state.address))
    }

    /// Serves pages to browsers that connect to its listener, until `stop` is canceled.
    pub async fn serve(&self, listener: TcpListener, stop: CancellationToken) {
        crate::server::serve(Arc::clone(&self.state), listener, stop).await;
    }
}

impl std::fmt::Debug for Inspector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inspector").field("address", &self.state.address).finish_non_exhaustive()
    }
}
