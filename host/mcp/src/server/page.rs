//! Pages of a list.

use rmcp::ErrorData;
use rmcp::model::PaginatedRequestParams;

/// What a cursor begins with: it is opaque to clients, and nothing else is mistaken for one.
const CURSOR: &str = "from-";

/// The page that a request asks for, and the cursor of the next one. No cursor, or an empty one, is
/// the beginning.
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
            // A list may have become shorter; what nobody can have been given is an error.
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
