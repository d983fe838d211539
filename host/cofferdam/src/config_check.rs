//! Check of a whole configuration: everything that commands may reject in it is read at once.
//!
//! Directories of stores and skills are opened, and every reference is resolved. No component is
//! loaded, no server is contacted, and no secret is read.

mod allowances;

#[cfg(feature = "agent")]
use cofferdam_agent::Approvals;

use crate::Result;
use crate::code_mode;
use crate::compose::{self, PluginSpec};
use crate::config::ConfigFile;
use crate::file_tools;
use crate::granting::Values;
#[cfg(any(feature = "anthropic", feature = "openai"))]
use crate::model_specs::{self, ModelSpec};
use crate::records;
#[cfg(feature = "mcp")]
use crate::servers::{self, ServerSpec};
#[cfg(feature = "skills")]
use crate::skill_tools;

/// Parts of a configuration without errors.
pub struct CheckedConfig {
    /// Plugins.
    pub plugins: Vec<PluginSpec>,
    /// MCP servers.
    #[cfg(feature = "mcp")]
    pub servers: Vec<ServerSpec>,
    /// Models by name.
    #[cfg(any(feature = "anthropic", feature = "openai"))]
    pub models: Vec<(String, ModelSpec)>,
    /// Description of the skills, if there are any.
    #[cfg(feature = "skills")]
    pub skills: Option<String>,
    /// Description of what the configuration allows beyond the defaults, in one line each: the
    /// directories and buckets of stores, calls without approval, and checks and records that are
    /// switched off.
    pub allowances: Vec<String>,
    /// Parts that have no effect unless flags add what they name, in one line each.
    pub notes: Vec<String>,
}

/// Checks a configuration.
///
/// # Errors
/// Returns the first error.
pub fn check(file: &ConfigFile) -> Result<CheckedConfig> {
    compose::check_components(file)?;
    #[cfg(feature = "mcp")]
    let servers = servers::of_config(file, Values::Leave, &crate::Operator::default())?;
    #[cfg(any(feature = "anthropic", feature = "openai"))]
    let models = {
        let models = model_specs::of_config(file)?.into_iter();
        models.map(|(name, model)| (name.to_owned(), model)).collect()
    };
    records::check(file)?;
    #[cfg(feature = "mcp")]
    {
        crate::serve::check(file)?;
        servers::check_toolsets(file)?;
    }
    #[cfg(feature = "cluster")]
    crate::cluster::Rollout::of_config(file)?;
    #[cfg(feature = "skills")]
    let skills = skill_tools::summary(file)?;
    file_tools::check(file)?;
    code_mode::check(file)?;
    #[cfg(feature = "labels")]
    crate::label_policy::check(file)?;
    #[cfg(feature = "agent")]
    {
        file.approvals(Approvals::default())?;
        file.loop_settings()?;
        file.check_call_layers()?;
    }
    #[cfg(all(feature = "workflows", any(feature = "anthropic", feature = "openai")))]
    crate::agent_context::check(file)?;
    Ok(CheckedConfig {
        plugins: compose::specs_of_config(file, Values::Leave)?,
        #[cfg(feature = "mcp")]
        servers,
        #[cfg(any(feature = "anthropic", feature = "openai"))]
        models,
        #[cfg(feature = "skills")]
        skills,
        allowances: allowances::allowances(file)?,
        notes: notes(file),
    })
}

#[cfg(feature = "labels")]
fn notes(file: &ConfigFile) -> Vec<String> {
    let unknown = crate::label_policy::unknown_sources(file).map(|name| {
        format!(
            "[labels.sources.{name}] has no effect unless a flag adds a source of this name: no \
             plugin, server or store in this file is called `{name}`"
        )
    });
    unknown.collect()
}

#[cfg(not(feature = "labels"))]
fn notes(_: &ConfigFile) -> Vec<String> {
    Vec::new()
}
