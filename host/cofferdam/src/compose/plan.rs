//! Checked parts of a host, before anything is loaded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam_files::FileAccessTools;

use super::{PluginSpec, check_reach, plugin_specs, policy_files_of};
use crate::config::ConfigFile;
use crate::granting::Values;
use crate::policy_files::ServedFiles;
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
        let protected =
            [protected, &super::protected_directories(selection, config.as_ref())].concat();
        specs.iter_mut().for_each(|spec| spec.protect(&protected));
        check_reach(&specs)?;
        let mut plan = Self { config, specs, files: None, protected, records };
        let files = file_tools::tools(
            selection.files.as_ref(),
            plan.config.as_ref(),
            values,
            &plan.policy_files(),
            previous,
        )?;
        plan.files = files.map(Arc::new);
        Ok(plan)
    }

    /// Returns the files that control grants, which no tool may write to.
    pub(crate) fn policy_files(&self) -> Vec<PathBuf> {
        let mut files = policy_files_of(&self.specs);
        files.extend_from_slice(&self.protected);
        if let Some(file) = &self.config {
            files.extend(servers::deciding_files(file));
            files.push(file.path.clone());
        }
        files
    }

    /// Returns the files that stores of served agents must not contain.
    #[cfg(feature = "mcp")]
    pub(crate) fn served_files(&self) -> ServedFiles {
        let mounts = self.specs.iter().flat_map(|spec| &spec.options.grants.mounts);
        let stores = self.files.iter().flat_map(|files| files.stores());
        let open = mounts.map(|mount| &mount.store).chain(stores.map(|store| &store.store));
        let open = open.filter_map(|store| store.root_ambient().map(Path::to_owned));
        let granted = self.config.iter().flat_map(ConfigFile::granted_directories);
        ServedFiles { policy_files: self.policy_files(), readable: open.chain(granted).collect() }
    }

    /// Returns the plan if the selection has any source of tools.
    ///
    /// # Errors
    /// Returns an error if it has none.
    pub(crate) fn require_tools(self, selection: &Selection) -> Result<Self> {
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
