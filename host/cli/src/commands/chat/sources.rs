//! Sources that the model cites in an answer.

use cofferdam_agent::{MessageContent, Response, Role};
use serde_json::Value;

use crate::print;

/// Maximum number of sources that are shown of an answer.
const SOURCES_MAX: usize = 50;

/// Prints the sources that an answer cites, each once, in the order of the answer.
pub(super) fn note(response: &Response) {
    let mut sources: Vec<String> = Vec::new();
    let replies = response.messages.iter().filter(|message| message.role == Role::Assistant);
    for content in replies.flat_map(|message| &message.contents) {
        let MessageContent::Text(text) = content else { continue };
        // The names of Anthropic and of OpenAI.
        let lists = ["citations", "annotations"].iter().filter_map(|name| text.extra.get(*name));
        for source in lists.filter_map(Value::as_array).flatten().filter_map(source) {
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
    }
    let hidden = sources.len().saturating_sub(SOURCES_MAX);
    for (number, source) in (1..).zip(sources.iter().take(SOURCES_MAX)) {
        print::note(&format!("source {number}: {source}"));
    }
    if hidden > 0 {
        print::note(&format!("and {hidden} more sources"));
    }
}

/// Describes the source of a citation: its title, its address and its pages.
fn source(citation: &Value) -> Option<String> {
    let text = |names: &[&str]| {
        let texts = names.iter().filter_map(|name| citation.get(name)?.as_str());
        texts.map(str::trim).find(|text| !text.is_empty()).map(str::to_owned)
    };
    let title = text(&["title", "document_title", "filename"]);
    let address = text(&["url", "source"]).filter(|address| title.as_ref() != Some(address));
    let number = |name: &str| citation.get(name).and_then(Value::as_u64);
    // The end of a range of pages is not part of it.
    let pages = match (number("start_page_number"), number("end_page_number")) {
        (Some(first), Some(end)) if end > first + 1 => Some(format!("pages {first}-{}", end - 1)),
        (Some(first), _) => Some(format!("page {first}")),
        _ => None,
    };
    let parts: Vec<_> = [title, address, pages].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_source_has_its_title_address_and_pages() {
        let shown = |citation| source(&citation).unwrap_or_default();
        let page = json!({"document_title": "Tides", "start_page_number": 2, "end_page_number": 3});
        assert_eq!(shown(page), "Tides, page 2");
        let pages =
            json!({"document_title": "Tides", "start_page_number": 2, "end_page_number": 5});
        assert_eq!(shown(pages), "Tides, pages 2-4");
        let found = json!({"url": "https://example.com/a", "title": "A", "cited_text": "x"});
        assert_eq!(shown(found), "A, https://example.com/a");
        assert_eq!(shown(json!({"source": "notes", "title": "notes"})), "notes");
        assert_eq!(source(&json!({"cited_text": "x"})), None);
        assert_eq!(source(&json!("x")), None);
    }
}
