//! `[labels]`: the label policy, which decides which calls are blocked.

use std::collections::{BTreeMap, BTreeSet};

use cofferdam_labels::{Confidentiality, Integrity, LabelPolicy, StatedLabels};
use serde::Deserialize;
use toml::Spanned;

/// `[labels]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a table")]
pub struct LabelsTable {
    /// True if labels are used.
    pub policy: bool,
    /// True if untrusted results are hidden from the model.
    auto_hide_untrusted: bool,
    /// True if the operator is asked about a violation.
    approval_on_violation: bool,
    /// Tools that may be called in an untrusted context.
    allow_untrusted_tools: Vec<Spanned<String>>,
    /// Model of `[models]` that sees hidden values.
    pub quarantine_model: Option<Spanned<String>>,
    /// Labels of tools, by the name that the model uses.
    tools: BTreeMap<Spanned<String>, StatedTable>,
    /// Labels of all tools of a plugin, a server or a store of `--files`.
    sources: BTreeMap<Spanned<String>, StatedTable>,
}

/// Stated labels (`LBL-5`).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a table")]
struct StatedTable {
    source_integrity: Option<Integrity>,
    confidentiality: Option<Confidentiality>,
    accepts_untrusted: Option<bool>,
    max_allowed_confidentiality: Option<Confidentiality>,
    authorized_principals: Option<BTreeSet<String>>,
}

impl Default for LabelsTable {
    fn default() -> Self {
        Self {
            policy: false,
            auto_hide_untrusted: true,
            approval_on_violation: false,
            allow_untrusted_tools: Vec::new(),
            quarantine_model: None,
            tools: BTreeMap::new(),
            sources: BTreeMap::new(),
        }
    }
}

impl LabelsTable {
    /// Returns the policy that the table defines.
    pub(crate) fn to_policy(&self) -> LabelPolicy {
        let mut policy = LabelPolicy::new()
            .auto_hide_untrusted(self.auto_hide_untrusted)
            .approval_on_violation(self.approval_on_violation);
        for tool in &self.allow_untrusted_tools {
            policy = policy.allow_untrusted_tool(tool.get_ref());
        }
        for (tool, stated) in &self.tools {
            policy = policy.tool(tool.get_ref(), stated.clone().into());
        }
        for (source, stated) in &self.sources {
            policy = policy.source(source.get_ref(), stated.clone().into());
        }
        policy
    }

    /// Returns the tools that the table names, in order.
    pub fn tools(&self) -> impl Iterator<Item = &Spanned<String>> {
        self.allow_untrusted_tools.iter().chain(self.tools.keys())
    }

    /// Returns the sources that the table names.
    pub fn sources(&self) -> impl Iterator<Item = &Spanned<String>> {
        self.sources.keys()
    }
}

impl From<StatedTable> for StatedLabels {
    fn from(table: StatedTable) -> Self {
        Self {
            source_integrity: table.source_integrity,
            confidentiality: table.confidentiality,
            accepts_untrusted: table.accepts_untrusted,
            max_allowed_confidentiality: table.max_allowed_confidentiality,
            authorized_principals: table.authorized_principals,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Result<LabelsTable, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn labels_are_off_and_hiding_is_on_by_default() {
        let table = table("").unwrap();
        assert!(!table.policy && table.auto_hide_untrusted && !table.approval_on_violation);
        assert_eq!(table.tools().count() + table.sources().count(), 0);
    }

    #[test]
    fn all_keys_are_read() {
        let table = table(
            r#"
            policy = true
            auto-hide-untrusted = false
            approval-on-violation = true
            allow-untrusted-tools = ["a"]
            quarantine-model = "small"
            [tools.send]
            source-integrity = "trusted"
            confidentiality = "user_identity"
            accepts-untrusted = true
            max-allowed-confidentiality = "private"
            authorized-principals = ["me"]
            [sources.notes]
            confidentiality = "private"
            "#,
        )
        .unwrap();
        let names: Vec<_> = table.tools().map(|name| name.get_ref().as_str()).collect();
        assert_eq!(names, ["a", "send"]);
        let policy = format!("{:?}", table.to_policy());
        for word in ["UserIdentity", "\"me\"", "notes", "approval_on_violation: true"] {
            assert!(policy.contains(word), "{word} is missing in {policy}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, message) in [
            ("polcy = true", "unknown field `polcy`"),
            ("[tools.a]\nconfidentiality = \"secret\"", "unknown variant `secret`"),
            (
                "[sources.a]\nmax-confidentiality = \"public\"",
                "unknown field `max-confidentiality`",
            ),
        ] {
            let error = table(text).unwrap_err();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }
}
