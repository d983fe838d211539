/// `TRYBUILD=overwrite cargo test` rewrites the words.
#[test]
fn are_said_where_the_mistake_is() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
