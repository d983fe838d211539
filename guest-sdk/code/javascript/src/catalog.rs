//! Catalog of the granted tools that the host passes to a program.

use serde::Deserialize;

/// Granted tools.
#[derive(Debug, Default, Deserialize)]
pub struct Catalog {
    /// The tools, in the host's order.
    #[serde(default)]
    pub tools: Vec<Tool>,
}

/// A tool that a program can call.
#[derive(Debug, Default, Clone, Deserialize)]
pub struct Tool {
    /// Name that the host knows.
    pub name: String,
    /// Identifier in the program.
    pub id: String,
    /// Declared argument names.
    #[serde(default)]
    pub properties: Vec<String>,
    /// Required argument names.
    #[serde(default)]
    pub required: Vec<String>,
    /// Whether other argument names are rejected.
    #[serde(default)]
    pub closed: bool,
}

impl Catalog {
    /// Parses the host's JSON. An unreadable catalog has no tools.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// Returns the tool with an identifier.
    #[must_use]
    pub fn tool(&self, id: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.id == id)
    }

    /// Returns the identifiers, separated by commas; at most 20.
    #[must_use]
    pub fn ids(&self) -> String {
        const SHOWN: usize = 20;
        let shown: Vec<_> = self.tools.iter().take(SHOWN).map(|tool| tool.id.as_str()).collect();
        let text = shown.join(", ");
        match self.tools.len().saturating_sub(SHOWN) {
            0 => text,
            more => format!("{text} and {more} more"),
        }
    }
}

/// Returns the candidate that is most similar to `name`, if one is similar enough.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_ascii_lowercase();
    let allowed = (name.len() / 3).max(1);
    candidates
        .map(|candidate| (distance(&lower, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(distance, candidate)| {
            *distance <= allowed
                || (lower.len() > 3 && candidate.to_ascii_lowercase().contains(&lower))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the number of inserted, deleted and replaced bytes between two names.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, left) in one.bytes().enumerate() {
        let mut diagonal = line;
        let mut before = line + 1;
        for (cell, right) in row.iter_mut().skip(1).zip(other.bytes()) {
            let replaced = diagonal + usize::from(left != right);
            diagonal = *cell;
            before = replaced.min(before + 1).min(*cell + 1);
            *cell = before;
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_similar_name_is_found() {
        let names = ["word_count", "find_lines", "compare"];
        assert_eq!(nearest("wordCount", names.into_iter()), Some("word_count"));
        assert_eq!(nearest("lines", names.into_iter()), Some("find_lines"));
        assert_eq!(nearest("weather", names.into_iter()), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn an_unreadable_catalog_is_empty() {
        assert!(Catalog::parse("nonsense").tools.is_empty());
        assert!(Catalog::parse("{}").tools.is_empty());
    }
}
