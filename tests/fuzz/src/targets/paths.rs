//! Any strings as paths, globs and search patterns: a path stays below its root and survives a
//! round trip.

use cofferdam_files::{NameRules, SearchQuery, StorePath};

/// Parses the first line as a path and the second as a pattern.
pub(crate) fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (path, pattern) = text.split_once('\n').unwrap_or((text, text));
    for rules in [NameRules::Portable, NameRules::Native] {
        let read = [StorePath::file_under(path, rules), StorePath::directory_under(path, rules)];
        for found in read.into_iter().flatten() {
            below_the_root(&found);
            assert_eq!(
                StorePath::directory_under(found.as_str(), rules).as_ref(),
                Ok(&found),
                "read again"
            );
        }
    }
    if let Ok(search) = SearchQuery::new(pattern, true) {
        let _ = search.with_glob(Some(path));
    }
}

fn below_the_root(path: &StorePath) {
    for segment in path.segments() {
        let is_name = !segment.is_empty() && segment != "." && segment != "..";
        assert!(is_name && !segment.contains(['/', '\\', '\0']), "{path:?} leaves its root");
    }
}
