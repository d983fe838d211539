//! Who calls: a local program, or the owner of a token.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

/// The one whose request is answered. Whoever can write to standard input is `local` and may use everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    name: Arc<str>,
    sources: Option<Arc<BTreeSet<String>>>,
    decides: bool,
}

impl Principal {
    /// The person who started the process.
    #[must_use]
    pub fn local() -> Self {
        static NAME: LazyLock<Arc<str>> = LazyLock::new(|| "local".into());
        Self { name: Arc::clone(&NAME), sources: None, decides: true }
    }

    /// Somebody who was authenticated under a name. `sources` names the plugins, stores and servers whose tools may be used;
    /// `None` means all.
    pub fn new(name: impl Into<Arc<str>>, sources: Option<BTreeSet<String>>) -> Self {
        Self { name: name.into(), sources: sources.map(Arc::new), decides: false }
    }

    /// The name, unique among the principals of one server. It is what sessions and tasks belong to.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same, and may give grants: whoever started the server.
    #[must_use]
    pub fn who_decides(self) -> Self {
        Self { decides: true, ..self }
    }

    /// Whether grants may be asked for.
    #[must_use]
    pub fn decides(&self) -> bool {
        self.decides
    }

    /// Whether tools of a source may be listed and called.
    #[must_use]
    pub fn may_use(&self, source: &str) -> bool {
        self.sources.as_ref().is_none_or(|sources| sources.contains(source))
    }
}
