//! `docs/errors.md` is what the catalogue of error types says.

use std::fmt::Write as _;

use cofferdam_tests::root;
use cofferdam_tool::ErrorType;

const HEAD: &str = "\
# Error types

How a tool call can end without a value and without a failure that the tool reports itself. A model is told the type and
nothing else: `An unexpected error occurred (<type>). Please try again.` The cause in detail is in the call record, for the
person who runs the host. \"Transient\" means that the same call may succeed when it is made again.

<!-- Made from host/tool/src/error/catalog.rs. Write it anew with: BLESS=1 cargo test -p cofferdam-tests errors -->

| type | transient | cause | what to do |
|---|---|---|---|
";

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
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page(),
        "docs/errors.md is not what the catalogue says; write it anew with: \
         BLESS=1 cargo test -p cofferdam-tests errors"
    );
}
