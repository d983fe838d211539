//! Search of tools by what they do, for models that do not see a long list.

use std::collections::BTreeSet;

use crate::ToolDefinition;

/// Name of the tool that searches.
pub const SEARCH_TOOL: &str = "tools_search";
/// Default number of tools that a search shows.
pub const SHOWN: usize = 5;
/// Maximum number of tools that a search shows.
pub const SHOWN_MAX: usize = 20;
/// Maximum length of a query, in characters. The rest is ignored.
const QUERY_CHARS_MAX: usize = 1000;
/// Minimum bytes of a query word that also matches words that begin with it.
const PREFIX_BYTES_MIN: usize = 3;

/// Words that a model looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolQuery {
    words: BTreeSet<String>,
}

impl ToolQuery {
    /// Creates a query from a text. Returns `None` if the text has no words.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let words = words(&text.chars().take(QUERY_CHARS_MAX).collect::<String>());
        (!words.is_empty()).then_some(Self { words })
    }

    /// Returns the entries that match, the best first. Entries that match equally well stay in
    /// their order.
    pub fn ranked<'e, E>(
        &self,
        entries: impl IntoIterator<Item = &'e E>,
        definition: impl Fn(&E) -> &ToolDefinition,
    ) -> Vec<&'e E> {
        let scored = entries.into_iter().map(|entry| (self.score(definition(entry)), entry));
        let mut found: Vec<_> = scored.filter(|(score, _)| *score > 0).collect();
        found.sort_by(|(left, _), (right, _)| right.cmp(left));
        found.into_iter().map(|(_, entry)| entry).collect()
    }

    /// Returns the score of a tool. Words in the name count most, then those in the title and the
    /// description. A query word that is only the beginning of a word counts half.
    fn score(&self, definition: &ToolDefinition) -> usize {
        let name = words(definition.name.as_str());
        let title = words(definition.title.as_deref().unwrap_or_default());
        let description = words(&definition.description);
        let scores = self.words.iter().map(|word| {
            4 * matched(&name, word) + 2 * matched(&title, word) + matched(&description, word)
        });
        scores.sum()
    }
}

fn matched(words: &BTreeSet<String>, word: &str) -> usize {
    if words.contains(word) {
        return 2;
    }
    let is_prefix = word.len() >= PREFIX_BYTES_MIN;
    usize::from(is_prefix && words.iter().any(|other| other.starts_with(word)))
}

fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declaration::Declaration;

    #[test]
    fn words_in_names_count_most_and_beginnings_half() {
        let tools: Vec<_> = [
            ("send_mail", "Sends a letter."),
            ("letter_count", "Counts."),
            ("mailbox", "Lists letters."),
            ("clock", "Tells the time."),
        ]
        .map(|(name, description)| {
            Declaration::new(name, description, r#"{"type":"object"}"#).compile().unwrap()
        })
        .into();
        let found = |query: &str| -> Vec<_> {
            let query = ToolQuery::new(query).unwrap();
            let found = query.ranked(&tools, |tool| tool);
            found.into_iter().map(|tool| tool.name.as_str()).collect()
        };
        assert_eq!(found("LETTER"), ["letter_count", "send_mail", "mailbox"]);
        assert_eq!(found("mail"), ["send_mail", "mailbox"]);
        // Short words match whole words only.
        assert_eq!(found("t"), Vec::<&str>::new());
        assert_eq!(found(&format!("{} clock", "x".repeat(1000))), Vec::<&str>::new());
        assert_eq!(ToolQuery::new(" -- "), None);
    }
}
