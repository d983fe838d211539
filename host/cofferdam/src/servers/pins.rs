//! Consent to the statements of a server. The first statements are recorded in `cofferdam.lock`;
//! anything that differs later is left out until the operator accepts it.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cofferdam_mcp::client::{IgnoredStatements, Review, Statements};
use parking_lot::Mutex;

use crate::Operator;
use crate::difference::DefinitionDiff;
use crate::pins::{ComparedServer, Pins};

/// Maximum number of names in one line.
const NAMES_MAX: usize = 20;

/// Pin of one server.
pub struct ServerPins {
    server: String,
    config: PathBuf,
    state: Mutex<PinState>,
    operator: Operator,
}

#[derive(Default)]
struct PinState {
    /// Latest statements of the server, if they are not accepted.
    change: Option<ServerChange>,
    /// Modification time of the lock file at the last comparison.
    seen: Option<SystemTime>,
    /// True if the operator was notified of `change`.
    is_reported: bool,
}

/// A change that is not accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerChange {
    pub(crate) left_out: IgnoredStatements,
    /// Difference of the statements, for the operator.
    pub difference: DefinitionDiff,
    /// Current statements of the server.
    pub statements: Statements,
}

impl ServerPins {
    pub(crate) fn new(server: &str, config: &Path, operator: &Operator) -> Self {
        let (server, config, operator) = (server.to_owned(), config.to_owned(), operator.clone());
        Self { server, config, state: Mutex::default(), operator }
    }

    /// Returns the configuration that names the server.
    pub(crate) fn config(&self) -> &Path {
        &self.config
    }

    /// Returns the change that needs consent, if any.
    pub fn change(&self) -> Option<ServerChange> {
        self.state.lock().change.clone()
    }

    /// Accepts `statements`, which are those that the operator has seen; the server may have
    /// changed again since.
    pub fn accept(&self, statements: &Statements) -> crate::Result<PathBuf> {
        let mut pins = Pins::of_config_ambient(&self.config)?;
        pins.accept_server(&self.server, statements);
        pins.save()?;
        Ok(pins.path().to_owned())
    }

    /// Notifies the operator once of a change that is not accepted.
    pub(crate) fn tell(&self) {
        let mut state = self.state.lock();
        let Some(change) = state.change.clone().filter(|_| !state.is_reported) else { return };
        state.is_reported = true;
        drop(state);
        let (server, config) = (&self.server, self.config.display());
        self.operator.note(&format!(
            "warning: the server `{server}` has changed since it was accepted; left out until you accept it: {}\n  look at \
             the change and run: cofferdam approve {server} --config {config}",
            names(&change.left_out)
        ));
    }

    /// Returns whether the lock file was written since a change was found.
    pub(crate) fn may_be_accepted(&self) -> bool {
        let state = self.state.lock();
        state.change.is_some() && state.seen != written(&self.config)
    }

    fn compare(&self, statements: &Statements) -> crate::Result<Option<ServerChange>> {
        let pins = Pins::of_config_ambient(&self.config)?;
        match pins.compare_server(&self.server, statements) {
            ComparedServer::Same => Ok(None),
            ComparedServer::Changed(change) => Ok(Some(*change)),
            ComparedServer::New => {
                let is_empty = statements.tools.is_empty()
                    && statements.prompts.is_empty()
                    && statements.resources.is_empty();
                // A server without any offer has nothing to record yet.
                if !is_empty && let Err(error) = self.accept(statements) {
                    self.operator.note(&format!(
                        "warning: a later change of the server `{}` will not be noticed: {error:#}",
                        self.server
                    ));
                }
                Ok(None)
            }
        }
    }
}

impl Review for ServerPins {
    fn left_out(&self, statements: &Statements) -> IgnoredStatements {
        let seen = written(&self.config);
        let change = self.compare(statements).unwrap_or_else(|error| {
            // The accepted state is unknown, so everything is left out.
            let everything = IgnoredStatements {
                instructions: statements.instructions.is_some(),
                tools: statements.tools.keys().cloned().collect(),
                prompts: statements.prompts.keys().cloned().collect(),
                resources: statements.resources.keys().cloned().collect(),
            };
            let difference = DefinitionDiff::unknown(format!("{error:#}"));
            Some(ServerChange { left_out: everything, difference, statements: statements.clone() })
        });
        let mut state = self.state.lock();
        state.is_reported &= state.change == change;
        state.seen = seen;
        state.change = change;
        state.change.as_ref().map(|change| change.left_out.clone()).unwrap_or_default()
    }
}

fn written(config: &Path) -> Option<SystemTime> {
    std::fs::metadata(Pins::path_of(config)).and_then(|metadata| metadata.modified()).ok()
}

/// Returns the names of everything that is left out, in one line.
pub(crate) fn names(left_out: &IgnoredStatements) -> String {
    let tools = left_out.tools.iter().map(|name| format!("`{name}`"));
    let prompts = left_out.prompts.iter().map(|name| format!("the prompt `{name}`"));
    let resources =
        left_out.resources.iter().map(|address| format!("the description of `{address}`"));
    let mut all: Vec<_> = tools.chain(prompts).chain(resources).collect();
    if left_out.instructions {
        all.push("its instructions".to_owned());
    }
    let more = all.len().saturating_sub(NAMES_MAX);
    all.truncate(NAMES_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", all.join(", "))
}
