//! Pagination of lists.

use rmcp::ErrorData;
use rmcp::model::PaginatedRequestParams;

/// Prefix of a cursor. Cursors are opaque to clients, and the prefix keeps other strings from being
/// taken for one.
const CURSOR: &str = "from-";

/// Returns the requested page and the cursor of the next one. A missing or empty cursor requests
/// the first page.
pub(super) fn page<T>(
    all: Vec<T>,
    request: Option<PaginatedRequestParams>,
    size: usize,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    let cursor = request.and_then(|request| request.cursor).unwrap_or_default();
    let start: usize = match cursor.as_str() {
        "" => 0,
        cursor => cursor
            .strip_prefix(CURSOR)
            .and_then(|start| start.parse().ok())
            // The list may have become shorter, so a cursor past its end is valid; a string that no
            // response can have contained is not.
            .ok_or_else(|| ErrorData::invalid_params("this is not a cursor of this list", None))?,
    };
    let end = start.saturating_add(size.max(1));
    let next = (end < all.len()).then(|| format!("{CURSOR}{end}"));
    Ok((all.into_iter().skip(start).take(size.max(1)).collect(), next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(cursor: &str) -> Option<PaginatedRequestParams> {
        let mut request = PaginatedRequestParams::default();
        request.cursor = Some(cursor.to_owned());
        Some(request)
    }

    #[test]
    fn pages_follow_each_other() {
        let all = vec![1, 2, 3];
        let (first, next) = page(all.clone(), None, 2).unwrap();
        assert_eq!((first, next.as_deref()), (vec![1, 2], Some("from-2")));
        assert_eq!(page(all.clone(), request("from-2"), 2).unwrap(), (vec![3], None));
        assert_eq!(page(all.clone(), request(""), 5).unwrap(), (vec![1, 2, 3], None));
        assert_eq!(page(all.clone(), request("from-9"), 5).unwrap(), (vec![], None));
        for bad in ["2", "from-", "from--1", "from-x", "from-99999999999999999999"] {
            assert!(page(all.clone(), request(bad), 2).is_err(), "{bad}");
        }
    }
}
