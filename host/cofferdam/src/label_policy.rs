//! Label policies of `[labels]`, for conversations, workflows and served agents.

use std::sync::Arc;

use cofferdam_labels::LabelPolicy;
use cofferdam_tool::Toolset;

use crate::config::ConfigFile;
#[cfg(any(feature = "anthropic", feature = "openai"))]
use crate::model_specs;
use crate::records::CallLog;
use crate::{Host, Result, label_recorder, text};

/// Source of the tools for skills.
const SKILLS_SOURCE: &str = "skills";

/// Tools to which a label policy applies, and the log of its decisions.
#[derive(Clone, Copy)]
pub struct LabelledTools<'a> {
    /// Tools that can be called.
    pub toolset: &'a Toolset,
    /// True if the toolset has the tools of all plugins and servers. If so, labels of other tools
    /// and sources are errors.
    pub is_complete: bool,
    /// Log in which decisions are recorded.
    pub call_log: Option<&'a Arc<CallLog>>,
}

impl<'a> LabelledTools<'a> {
    /// Returns the tools of a host. They are incomplete if a server is unreachable or has changed.
    #[must_use]
    pub fn of(host: &'a Host) -> Self {
        Self {
            toolset: host.toolset(),
            is_complete: has_all_servers(host),
            call_log: host.call_log(),
        }
    }

    /// Returns the policy of the configuration, or `None` if neither `is_asked` nor the
    /// configuration enables one.
    ///
    /// # Errors
    /// Returns an error if the configuration names a tool, a source or a model that does not exist.
    pub fn policy(self, is_asked: bool, file: Option<&ConfigFile>) -> Result<Option<LabelPolicy>> {
        let recorded = |policy: LabelPolicy| match self.call_log {
            Some(log) => policy.audit(label_recorder(log)),
            None => policy,
        };
        let Some(file) = file else {
            return Ok(is_asked.then(|| recorded(LabelPolicy::new())));
        };
        let table = &file.config.labels;
        if !is_asked && !table.policy {
            return Ok(None);
        }
        if self.is_complete {
            self.check_names(file)?;
        }
        check(file)?;
        quarantined(recorded(table.to_policy()), file).map(Some)
    }

    /// Checks that the configuration labels only tools and sources that exist, because a label of
    /// any other has no effect.
    fn check_names(self, file: &ConfigFile) -> Result<()> {
        let table = &file.config.labels;
        // Labels of tools that are not offered have no effect, but are no mistake.
        let toolset = self.toolset.unrestricted();
        for name in table.tools() {
            if toolset.definition(name.get_ref()).is_err() {
                let message = format!(
                    "labels: there is no tool `{}`; {}",
                    name.get_ref(),
                    known_tools(toolset)
                );
                return Err(file.error(name.span(), message).into());
            }
        }
        for name in table.sources() {
            if !toolset.sources().any(|source| source.name() == name.get_ref()) {
                let sources: Vec<_> =
                    toolset.sources().map(|source| format!("`{}`", source.name())).collect();
                let message = format!(
                    "labels: no plugin, server or file store with tools is called `{}`; there are {}",
                    name.get_ref(),
                    sources.join(", ")
                );
                return Err(file.error(name.span(), message).into());
            }
        }
        Ok(())
    }
}

/// Checks the part of `[labels]` that does not depend on tools.
///
/// # Errors
/// Returns an error if the quarantine model does not exist, or if this build has no client for it.
pub(crate) fn check(file: &ConfigFile) -> Result<()> {
    let Some(name) = &file.config.labels.quarantine_model else { return Ok(()) };
    #[cfg(any(feature = "anthropic", feature = "openai"))]
    if file.config.models.contains_key(name.get_ref()) {
        return Ok(());
    }
    let message = if cfg!(any(feature = "anthropic", feature = "openai")) {
        format!("there is no model `{}` in this file", name.get_ref())
    } else {
        "this program has no client for models; enable its feature `anthropic` or `openai`, or \
         remove `quarantine-model`"
            .to_owned()
    };
    Err(file.error(name.span(), message).into())
}

/// Returns the sources that a configuration labels although nothing in it has such a name: no
/// plugin, server, store or skill. A flag may add them, such as `--files notes=./notes`.
pub(crate) fn unknown_sources(file: &ConfigFile) -> impl Iterator<Item = &str> {
    let config = &file.config;
    let is_server = |name: &str| {
        #[cfg(feature = "mcp")]
        return config.servers.contains_key(name);
        #[cfg(not(feature = "mcp"))]
        return name.is_empty();
    };
    let is_known = move |name: &str| {
        name == SKILLS_SOURCE
            || config.plugins.contains_key(name)
            || config.stores.contains_key(name)
            || is_server(name)
    };
    config.labels.sources().map(|name| name.get_ref().as_str()).filter(move |name| !is_known(name))
}

/// Adds the quarantine model of the configuration, if it has one, to a policy.
#[cfg(any(feature = "anthropic", feature = "openai"))]
fn quarantined(policy: LabelPolicy, file: &ConfigFile) -> Result<LabelPolicy> {
    let Some(name) = &file.config.labels.quarantine_model else { return Ok(policy) };
    let model = model_specs::choose(Some(name.get_ref()), None, Some(file))?;
    Ok(policy.quarantine(model_specs::client(&model, None)?))
}

/// Returns the policy: without clients for models, [`check`] refuses a quarantine model.
#[cfg(not(any(feature = "anthropic", feature = "openai")))]
#[expect(clippy::unnecessary_wraps, reason = "builds with clients can fail")]
fn quarantined(policy: LabelPolicy, _: &ConfigFile) -> Result<LabelPolicy> {
    Ok(policy)
}

fn has_all_servers(host: &Host) -> bool {
    #[cfg(feature = "mcp")]
    return host.servers().unreachable.is_empty() && host.servers().changed().is_empty();
    #[cfg(not(feature = "mcp"))]
    true
}

fn known_tools(toolset: &Toolset) -> String {
    match toolset.definitions().len() {
        0 => "there are no tools".to_owned(),
        count => format!("`cofferdam list` shows the {}", text::counted(count, "tool")),
    }
}
