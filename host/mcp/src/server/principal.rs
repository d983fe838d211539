//! Identity of a caller: a local program, or the owner of a token.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use cofferdam_tool::pattern::ToolPattern;
use sha2::{Digest as _, Sha256};

/// Identity that a request is answered for. Every client on standard input is `local` and may use
/// everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    name: Arc<str>,
    sources: Option<Arc<BTreeSet<String>>>,
    tools: Option<Arc<[ToolPattern]>>,
    decides: bool,
}

tokio::task_local! {
    /// Principal of the HTTP request that the task answers.
    static OF_REQUEST: Principal;
}

impl Principal {
    /// Answers an HTTP request of the principal. The SDK asks for the schema of a tool without
    /// saying for whom; [`Principal::of_request`] says it.
    pub(crate) async fn answer<T>(&self, answer: impl Future<Output = T>) -> T {
        OF_REQUEST.scope(self.clone(), answer).await
    }

    /// Returns the principal of the HTTP request that the current task answers.
    pub(crate) fn of_request() -> Option<Self> {
        OF_REQUEST.try_with(Self::clone).ok()
    }

    /// Returns the principal for the user who started the process.
    #[must_use]
    pub fn local() -> Self {
        static NAME: LazyLock<Arc<str>> = LazyLock::new(|| "local".into());
        Self { name: Arc::clone(&NAME), sources: None, tools: None, decides: true }
    }

    /// Creates a principal that was authenticated under a name. `sources` names the plugins, stores
    /// and servers whose tools it may use; `None` means all.
    pub fn new(name: impl Into<Arc<str>>, sources: Option<BTreeSet<String>>) -> Self {
        Self { name: name.into(), sources: sources.map(Arc::new), tools: None, decides: false }
    }

    /// Returns the name, which is unique among the principals of one server. Sessions and tasks
    /// belong to this name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a number from 0 to 99 that depends only on the name, for offers to a share of the
    /// principals ([`OfferVariant`](super::OfferVariant)).
    #[must_use]
    pub fn percentile(&self) -> u8 {
        let digest = Sha256::digest(self.name.as_bytes());
        let number = digest.iter().take(8).fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        u8::try_from(number % 100).unwrap_or_default()
    }

    /// Returns the principal with the right to give grants, for the user who started the server.
    #[must_use]
    pub fn as_grantor(self) -> Self {
        Self { decides: true, ..self }
    }

    /// Returns whether the principal may be asked for grants.
    #[must_use]
    pub fn decides(&self) -> bool {
        self.decides
    }

    /// Limits the tools that the principal may list and call to those that match a pattern; `None`
    /// means all tools of its sources.
    #[must_use]
    pub fn limited_to(self, tools: Option<Vec<ToolPattern>>) -> Self {
        Self { tools: tools.map(Into::into), ..self }
    }

    /// Returns true if the principal may use everything of a source, such as its files. A principal
    /// that is limited to certain tools may do so only for sources that are named explicitly.
    #[must_use]
    pub fn may_use(&self, source: &str) -> bool {
        match &self.sources {
            Some(sources) => sources.contains(source),
            None => self.tools.is_none(),
        }
    }

    /// Returns true if the principal may list and call some tools of a source, if it has them.
    #[must_use]
    pub(crate) fn may_call_some(&self, source: &str) -> bool {
        self.sources.as_ref().is_none_or(|sources| sources.contains(source))
    }

    /// Returns true if the principal may list and call a tool of a source.
    #[must_use]
    pub fn may_call(&self, source: &str, tool: &str) -> bool {
        self.may_call_some(source)
            && self
                .tools
                .as_ref()
                .is_none_or(|tools| tools.iter().any(|pattern| pattern.matches(tool)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(pattern: &str) -> ToolPattern {
        ToolPattern::new(pattern).unwrap()
    }

    #[test]
    fn percentiles_are_stable_and_spread() {
        assert_eq!(Principal::new("token:ann", None).percentile(), 19);
        let names = (0..10_000).map(|number| format!("token:{number}"));
        let below = names.filter(|name| Principal::new(name.as_str(), None).percentile() < 10);
        assert!((900..1100).contains(&below.count()));
    }

    #[test]
    fn a_limit_to_tools_gives_no_files() {
        let limited = Principal::new("a", None).limited_to(Some(vec![pattern("csv_*")]));
        assert!(limited.may_call("csv", "csv_filter") && !limited.may_call("text", "word_count"));
        assert!(!limited.may_use("notes") && limited.may_call_some("csv"));
        let sources = Some(BTreeSet::from(["notes".to_owned()]));
        let both = Principal::new("a", sources).limited_to(Some(vec![pattern("csv_*")]));
        assert!(both.may_use("notes") && !both.may_call("csv", "csv_filter"));
        assert!(!both.may_call_some("csv"));
        let none = Principal::new("a", None).limited_to(Some(Vec::new()));
        assert!(!none.may_call("csv", "csv_filter") && !none.may_use("csv"));
    }
}
