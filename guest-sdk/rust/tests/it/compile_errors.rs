/// `TRYBUILD=overwrite cargo test` updates the expected messages.
#[test]
fn are_said_where_the_mistake_is() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
