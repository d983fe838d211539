//! Selections of pages such as `1-3,7`.

use cofferdam_sdk::ToolFailure;

/// Returns the selected page numbers in their order, without repetitions; all if there is no text.
pub(crate) fn parse(text: Option<&str>, page_count: usize) -> Result<Vec<usize>, ToolFailure> {
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    let Some(text) = text else { return Ok((1..=page_count).collect()) };
    let mut selected = Vec::new();
    for part in text.split(',') {
        let (first, last) = range(part.trim()).ok_or_else(|| {
            ToolFailure::new(format!("`{text}` is not a selection of pages"))
                .suggestion("pass numbers and ranges such as `1-3,7` or `10-`")
                .permanent()
        })?;
        if first == 0 || first > page_count || last.is_some_and(|last| last < first) {
            return Err(ToolFailure::new(format!("there are no pages `{}`", part.trim()))
                .suggestion(format!("the file has {page_count} pages, from 1"))
                .permanent());
        }
        for page in first..=last.unwrap_or(page_count).min(page_count) {
            if !selected.contains(&page) {
                selected.push(page);
            }
        }
    }
    Ok(selected)
}

/// Parses `3`, `3-5` or `3-`.
fn range(text: &str) -> Option<(usize, Option<usize>)> {
    let number = |text: &str| text.trim().parse().ok();
    match text.split_once('-') {
        None => number(text).map(|page| (page, Some(page))),
        Some((first, "")) => Some((number(first)?, None)),
        Some((first, last)) => Some((number(first)?, Some(number(last)?))),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn pages_are_selected() {
        let check = |text, expected: &[usize]| assert_eq!(parse(text, 9).unwrap(), expected);
        check(None, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        check(Some("2"), &[2]);
        check(Some(" 7 - 8, 1-2,2"), &[7, 8, 1, 2]);
        check(Some("8-"), &[8, 9]);
        check(Some("8-9999999"), &[8, 9]);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["x", "1,", "-3", "0", "10", "5-4", "1--2", "-1", "99999999999999999999"] {
            assert!(parse(Some(text), 9).is_err(), "{text}");
        }
        assert!(parse(None, 0).unwrap().is_empty());
    }
}
