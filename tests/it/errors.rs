//! Compares `docs/errors.md` with the catalog of error types.

use std::fmt::Write as _;

use cofferdam_tests::root;
use cofferdam_tool::ErrorType;

const HEAD: &str = "\
# Error types

Look up the error type of a tool call that ended with neither a value nor a failure reported by the
tool. The model receives only the type: `An unexpected error occurred (<type>). Please try again.`
The call record has the detailed cause, for the operator. \"Transient\" means that the same call may
succeed if it is retried.

<!-- Generated from host/tool/src/error/catalog.rs. To update it, run: BLESS=1 cargo test -p cofferdam-tests errors -->

| type | transient | cause | what to do |
|---|---|---|---|
";

/// Heading of the part that is written by hand.
const BY_HAND: &str = "\n## Types outside the table\n";

fn page() -> String {
    let mut page = HEAD.to_owned();
    for row in ErrorType::ALL {
        let transient = if row.is_transient() { "yes" } else { "no" };
        let cause = row.cause().split_whitespace().collect::<Vec<_>>().join(" ");
        writeln!(page, "| `{}` | {transient} | {cause} | {} |", row.name(), row.help()).unwrap();
    }
    page
}

#[test]
fn the_page_is_up_to_date() {
    let path = root().join("docs/errors.md");
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let (_, by_hand) = written.split_once(BY_HAND).unwrap_or_default();
    let page = format!("{}{BY_HAND}{by_hand}", page());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/errors.md does not match the catalog; to update it, run: \
         BLESS=1 cargo test -p cofferdam-tests errors"
    );
}
