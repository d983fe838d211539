//! Changes of the catalog while clients listen.

use std::sync::Arc;

use rmcp::model::{Resource, ResourceTemplate};
use serde_json::json;
use tokio::sync::watch;

use super::catalog::{Catalog, CatalogEntry, Catalogs};

/// Lists that have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListChanges {
    pub(super) tools: bool,
    pub(super) prompts: bool,
    pub(super) resources: bool,
}

/// Changes of the catalog from now on. Changes that accumulate between two calls of [`Self::next`]
/// are merged.
pub(super) struct Changes {
    receiver: watch::Receiver<Arc<Catalogs>>,
    seen: Arc<Catalogs>,
}

impl Changes {
    pub(super) fn new(mut receiver: watch::Receiver<Arc<Catalogs>>) -> Self {
        let seen = Arc::clone(&receiver.borrow_and_update());
        Self { receiver, seen }
    }

    /// Returns the next change that a client can see, or `None` when the server is gone.
    pub(super) async fn next(&mut self) -> Option<ListChanges> {
        loop {
            self.receiver.changed().await.ok()?;
            let now = Arc::clone(&self.receiver.borrow_and_update());
            let before = std::mem::replace(&mut self.seen, Arc::clone(&now));
            let change = differences(&before, &now);
            if change.tools || change.prompts || change.resources {
                return Some(change);
            }
        }
    }
}

/// Returns the lists that have changed for any caller. A client whose own lists are as before reads
/// them once more.
fn differences(before: &Catalogs, now: &Catalogs) -> ListChanges {
    let mut all = ListChanges { tools: false, prompts: false, resources: false };
    if before.percents().ne(now.percents()) {
        return ListChanges { tools: true, prompts: true, resources: true };
    }
    for (before, now) in before.all().zip(now.all()) {
        let ListChanges { tools, prompts, resources } = difference(before, now);
        all.tools |= tools;
        all.prompts |= prompts;
        all.resources |= resources;
    }
    all
}

fn difference(before: &Catalog, now: &Catalog) -> ListChanges {
    let tools = |catalog: &Catalog| {
        let listed = catalog.tools.iter().filter(|entry| entry.is_listed);
        json!(listed.map(CatalogEntry::tool).collect::<Vec<_>>())
    };
    let renderer = |catalog: &Catalog, name: &str| {
        let mut entries = catalog.tools.iter();
        entries
            .find(|entry| entry.definition.name.as_str() == name)
            .map(|entry| json!(entry.tool()))
    };
    let prompts = |catalog: &Catalog| {
        let offers = catalog.prompts.iter();
        offers.map(|offer| (offer.name.clone(), renderer(catalog, &offer.tool))).collect::<Vec<_>>()
    };
    let resources = |catalog: &Catalog| {
        let offers = catalog.resources.iter();
        let made: Vec<_> =
            offers.map(|offer| (offer.uri.clone(), renderer(catalog, &offer.tool))).collect();
        let others: Vec<_> =
            catalog.resource_sources.iter().map(|source| source.prefix().to_owned()).collect();
        (made, others)
    };
    fn passed(catalog: &Catalog) -> (Vec<&Resource>, Vec<&ResourceTemplate>) {
        let (resources, templates, _) = catalog.passed.seen();
        (resources, templates)
    }
    ListChanges {
        tools: tools(before) != tools(now),
        prompts: prompts(before) != prompts(now) || before.passed.seen().2 != now.passed.seen().2,
        resources: resources(before) != resources(now) || passed(before) != passed(now),
    }
}
