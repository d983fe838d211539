//! Checked parts of a host, before anything is loaded.

use std::path::PathBuf;
use std::sync::Arc;

use cofferdam_files::FileAccessTools;

use super::{PluginSpec, check_reach, plugin_specs, policy_files_of};
use crate::config::ConfigFile;
use crate::granting::Values;
use crate::records::{self, PlannedLog};
use crate::{Error, Result, Selection, file_tools, servers, skill_tools};

/// Configuration, plugins and file-access tools of a selection. None of them can write to a file
/// that controls grants.
pub struct HostPlan {
    /// Configuration, read once.
    pub config: Option<ConfigFile>,
    /// Plugins that are not loaded yet.
    pub specs: Vec<PluginSpec>,
    /// File-access tools over the stores of the selection.
    pub files: Option<Arc<FileAccessTools>>,
    /// Paths that no tool may write to.
    pub(crate) protected: Vec<PathBuf>,
    /// Call log that is to be opened.
    pub(crate) records: Option<PlannedLog>,
}

impl HostPlan {
    /// Reads the configuration and opens stores.
    ///
    /// `values` controls whether secrets and variables are read. No tool may write to `protected`.
    /// A store of the selection that `previous` also has stays open.
    ///
    /// # Errors
    /// Returns an error if the configuration is invalid, a store cannot be opened, or a tool could
    /// write to a file that controls grants.
    pub fn new(
        selection: &Selection,
        values: Values,
        protected: &[PathBuf],
        previous: Option<&FileAccessTools>,
    ) -> Result<Self> {
        let config = selection.config.as_deref().map(ConfigFile::read_ambient).transpose()?;
        let mut specs = plugin_specs(selection, config.as_ref(), values)?;
        let records = records::plan(selection, config.as_ref())?;
        for spec in &mut specs {
            let (name, config) = (spec.options.name.as_str(), config.as_ref());
            let level = records::recording_level(selection, config, name, records.is_some());
            spec.options.recording = level;
        }
        // Also while nothing is recorded: the log holds earlier calls.
        let log = records::directory_ambient(config.as_ref());
        let protected = [protected, &skill_tools::directories(selection, config.as_ref())].concat();
        let protected: Vec<_> = protected.into_iter().chain(log).collect();
        specs.iter_mut().for_each(|spec| spec.protect(&protected));
        check_reach(&specs)?;
        let mut deciding = policy_files_of(&specs);
        deciding.extend_from_slice(&protected);
        if let Some(file) = &config {
            deciding.extend(servers::deciding_files(file));
            deciding.push(file.path.clone());
        }
        let files = file_tools::tools(
            selection.files.as_ref(),
            config.as_ref(),
            values,
            &deciding,
            previous,
        )?;
        Ok(Self { config, specs, files: files.map(Arc::new), protected, records })
    }

    /// Returns the plan if the selection has any source of tools.
    ///
    /// # Errors
    /// Returns an error if it has none.
    pub fn require_tools(self, selection: &Selection) -> Result<Self> {
        let config = self.config.as_ref();
        let has_tools = !self.specs.is_empty()
            || !selection.sources.is_empty()
            || self.files.is_some()
            || config.is_some_and(servers::are_named)
            || skill_tools::are_named(selection, config);
        if has_tools {
            Ok(self)
        } else {
            Err(Error::invalid(
                "no tools are named; name a plugin, a configuration or a store of files",
            ))
        }
    }

    /// Returns the paths that scripts of skills may not write to: the protected ones, and those of
    /// plugins and their configuration.
    #[cfg(feature = "skills")]
    pub(crate) fn protected_from_skills(&self) -> Vec<PathBuf> {
        [self.protected.as_slice(), &policy_files_of(&self.specs)].concat()
    }
}
