//! Selection of tools by name and by `[toolsets.NAME]`.

use std::collections::BTreeSet;

use cofferdam_tool::{RefusedCall, Toolset};

use crate::config::ConfigFile;
use crate::{Error, Result, Selection, servers, text};

/// Tools that a selection can name, and the configuration that defines its toolsets.
pub(crate) struct KnownTools<'a> {
    pub(crate) config: Option<&'a ConfigFile>,
    pub(crate) toolset: &'a Toolset,
    /// True if all plugins are loaded and all servers connected. If so, an unknown tool does not
    /// exist.
    pub(crate) is_complete: bool,
}

impl KnownTools<'_> {
    /// Returns the names of the selected tools, or `None` if the selection is all tools.
    ///
    /// # Errors
    /// Returns an error for a toolset that is not configured, and for tools, plugins, groups and
    /// servers that do not exist.
    pub(crate) fn selected(&self, selection: &Selection) -> Result<Option<BTreeSet<String>>> {
        if selection.selects_all_tools() {
            return Ok(None);
        }
        let mut names = BTreeSet::new();
        for tool in &selection.tools {
            self.check(tool).map_err(|refused| Error::invalid(text::refusal(&refused)))?;
            names.insert(tool.clone());
        }
        for toolset in &selection.toolsets {
            self.add_toolset(toolset, &mut names)?;
        }
        Ok(Some(names))
    }

    /// Returns a toolset of the selected tools.
    ///
    /// # Errors
    /// Like [`selected`](Self::selected).
    pub(crate) fn restrict(&self, selection: &Selection) -> Result<Toolset> {
        Ok(match self.selected(selection)? {
            Some(names) => self.toolset.restrict(|tool| names.contains(tool.name.as_str())),
            None => self.toolset.clone(),
        })
    }

    fn add_toolset(&self, name: &str, names: &mut BTreeSet<String>) -> Result<()> {
        let file = self.config.ok_or_else(|| Error::invalid("--toolset needs --config"))?;
        let Some(table) = file.config.toolsets.get(name) else {
            let known: Vec<_> = file.config.toolsets.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Error::invalid(format!(
                "there is no [toolsets.{name}] in the configuration; there is {known}"
            )));
        };
        for tool in &table.tools {
            self.check(tool.get_ref())
                .map_err(|refused| file.error(tool.span(), text::refusal(&refused)))?;
            names.insert(tool.get_ref().clone());
        }
        for plugin in &table.plugins {
            let tools = self.tools_of(plugin.get_ref());
            if tools.is_empty() && self.is_complete {
                let message = format!("there is no plugin `{}` with tools", plugin.get_ref());
                return Err(file.error(plugin.span(), message).into());
            }
            names.extend(tools);
        }
        for group in &table.groups {
            let tools = self.tools_in_group(group.get_ref());
            if tools.is_empty() && self.is_complete {
                let message = format!("no plugin has a group `{}`", group.get_ref());
                return Err(file.error(group.span(), message).into());
            }
            names.extend(tools);
        }
        for server in &table.servers {
            if !servers::is_named(file, server.get_ref()) {
                let message = format!("there is no server `{}`", server.get_ref());
                return Err(file.error(server.span(), message).into());
            }
            names.extend(self.tools_of(server.get_ref()));
        }
        Ok(())
    }

    /// Returns an error if a tool does not exist and everything is loaded.
    fn check(&self, tool: &str) -> Result<(), RefusedCall> {
        match self.toolset.definition(tool) {
            Err(error) if self.is_complete => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the tools of one source, under their names in the toolset.
    fn tools_of(&self, source: &str) -> Vec<String> {
        let tools = self.toolset.tools().filter(|(_, its)| its.name() == source);
        tools.map(|(definition, _)| definition.name.to_string()).collect()
    }

    /// Returns the tools of plugins in a group, under their names in the toolset.
    fn tools_in_group(&self, group: &str) -> Vec<String> {
        let tools = self.toolset.definitions().filter(|tool| tool.group.as_deref() == Some(group));
        tools.map(|tool| tool.name.to_string()).collect()
    }
}
