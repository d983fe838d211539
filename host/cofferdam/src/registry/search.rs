//! Searches for plugins in MCP registries and in index files.
//!
//! Without a configuration, the public MCP registry is searched. No credentials are sent. An index
//! that fails is left out; the search fails if all of them do. What an index says about a plugin is
//! the word of its publisher: signatures are checked when the plugin is added.

use std::collections::BTreeSet;

use cofferdam_registry::{
    CATALOG_BYTES_MAX, CatalogPage, CatalogSearch, ListedServer, RegistryClient, ServerStatus,
};

use super::unavailable;
use crate::config::{ConfigFile, PluginIndex};
use crate::error::Context as _;
use crate::{Error, Operator, Result, Work};

/// Registry that is searched if no index is named.
pub const PUBLIC_INDEX: &str = "https://registry.modelcontextprotocol.io";

/// Searches indexes for plugins.
pub struct PluginSearch {
    client: RegistryClient,
    indexes: Vec<PluginIndex>,
    operator: Operator,
}

/// Result of a search.
#[derive(Debug, Clone, Default)]
pub struct SearchReport {
    /// Servers: plugins first, then by name. Third parties wrote the strings.
    pub servers: Vec<ListedServer>,
    /// Number of servers that match and are left out: no plugins, or no longer active.
    pub others: usize,
    /// Reasons why indexes were not searched, or not to their end.
    pub notes: Vec<String>,
}

impl PluginSearch {
    /// Creates a search in the indexes that are named, or else those of `config`, or else the
    /// public MCP registry.
    ///
    /// # Errors
    /// Returns an error if a setting of the configuration is invalid.
    pub fn new_ambient(
        config: Option<&ConfigFile>,
        named: Vec<PluginIndex>,
        operator: &Operator,
    ) -> Result<Self> {
        let client = RegistryClient::new(super::settings(config)?);
        let client = client.context("[registry] cannot be used")?;
        let configured = config.iter().flat_map(|file| {
            let indexes = file.config.registry.indexes.iter().cloned();
            indexes.map(|index| index.resolved(|path| file.resolve(path)))
        });
        let mut indexes = if named.is_empty() { configured.collect() } else { named };
        if indexes.is_empty() {
            let public: PluginIndex = PUBLIC_INDEX.parse().context("no index can be searched")?;
            indexes.push(public);
        }
        Ok(Self { client, indexes, operator: operator.clone() })
    }

    /// Searches the indexes for `term`: registries by name, index files by name, title and
    /// description. Finds active plugins, or with `include_others` all servers.
    ///
    /// # Errors
    /// Returns an error if no index can be searched.
    pub async fn run(&self, term: &str, include_others: bool) -> Result<SearchReport> {
        let mut report = SearchReport::default();
        let (mut failures, mut known) = (Vec::new(), BTreeSet::new());
        for index in &self.indexes {
            let label = format!("searching {index}");
            self.operator.progress(Some(&Work { label, done: 0, total: 0 }));
            let found = self.search(index, term).await;
            self.operator.progress(None);
            let found = match found {
                Ok(found) => found,
                Err(error) => {
                    failures.push(format!("{error:#}"));
                    continue;
                }
            };
            report.notes.extend(note(index, &found));
            for server in found.servers {
                let component = server.component.as_ref().map(ToString::to_string);
                if !known.insert((server.name.clone(), server.version.clone(), component)) {
                    continue;
                }
                let is_plugin = server.component.is_some();
                match include_others || is_plugin && server.status == ServerStatus::Active {
                    true => report.servers.push(server),
                    false => report.others = report.others.saturating_add(1),
                }
            }
        }
        if failures.len() == self.indexes.len() {
            return Err(Error::NotAccepted(failures.join("; ")));
        }
        report.notes.extend(failures.into_iter().map(|failure| format!("error: {failure}")));
        report.servers.sort_by_cached_key(|server| {
            let name = server.name.to_lowercase();
            (server.component.is_none(), name, server.version.clone())
        });
        Ok(report)
    }

    async fn search(&self, index: &PluginIndex, term: &str) -> Result<CatalogSearch> {
        let read = match index {
            PluginIndex::Registry(base) => {
                return self.client.search(base.as_str(), term).await.map_err(unavailable);
            }
            PluginIndex::Web(url) => {
                let read = self.client.read_web(url.as_str(), CATALOG_BYTES_MAX).await;
                read.map_err(unavailable)?
            }
            PluginIndex::File(path) => {
                let read = cofferdam_files::read_named_ambient(path, CATALOG_BYTES_MAX);
                read.with_context(|| format!("{index} cannot be read"))?
            }
        };
        let page = CatalogPage::from_index(&read);
        let CatalogPage { mut servers, skipped, .. } =
            page.with_context(|| format!("{index} is not an index of plugins"))?;
        servers.retain(|server| server.matches(term));
        Ok(CatalogSearch { servers, skipped, is_cut: false })
    }
}

/// Returns what the operator should know about the contents of an index.
fn note(index: &PluginIndex, found: &CatalogSearch) -> Vec<String> {
    let mut notes = Vec::new();
    if found.is_cut {
        notes.push(format!("{index} has more results than are read; search for a longer term"));
    }
    if found.skipped > 0 {
        let count = crate::text::counted(found.skipped, "server");
        notes.push(format!("left out of {index}: {count} without a name or a version"));
    }
    notes
}
