//! Components that are refused as plugins, with the messages.

use cofferdam_engine::{Component, LoadError};
use cofferdam_tests::{Host, guest};

async fn refusal(bytes: Vec<u8>) -> String {
    match Host::new().try_load(&Component::from_bytes(bytes)).await {
        Ok(_) => panic!("the component is taken"),
        Err(error) => one_line(&error),
    }
}

async fn refusal_of(name: &str) -> String {
    refusal(std::fs::read(guest(name)).unwrap()).await
}

fn one_line(error: &LoadError) -> String {
    let text = error.to_string();
    assert!(!text.contains('\n'), "more than one line: {text}");
    assert!(!text.is_empty());
    text
}

fn component(wat: &str) -> Vec<u8> {
    wat::parse_str(wat).unwrap()
}

#[tokio::test]
async fn what_is_no_component() {
    assert!(refusal(component("(module)")).await.contains("core module"));
    for bytes in
        [vec![], vec![0; 100_000], b"hello, this is text".to_vec(), b"\x7fELF\x02\x01\x01".to_vec()]
    {
        refusal(bytes).await;
    }
}

#[tokio::test]
async fn a_component_that_is_cut_off_anywhere() {
    let whole = std::fs::read(guest("list_empty")).unwrap();
    for end in (0..whole.len()).step_by(991) {
        let cut = Component::from_bytes(whole[..end].to_vec());
        assert!(Host::new().try_load(&cut).await.is_err(), "cut at {end} of {} bytes", whole.len());
    }
}

#[tokio::test]
async fn unknown_imports() {
    let bytes =
        component(r#"(component (import "my:own/thing@1.0.0" (instance (export "f" (func)))))"#);
    let error = refusal(bytes).await;
    assert_eq!(error, "imports `my:own/thing@1.0.0`, which Cofferdam does not offer");
}

/// Toolchains import the interface, or the type, that a function of the component only mentions.
#[tokio::test]
async fn imports_that_are_only_types_ask_for_nothing() {
    let wat = r#"(component
        (import "my:own/types@1.0.0" (instance (type $unit (enum "c" "f")) (export "unit" (type (eq $unit)))))
        (type $day (enum "today"))
        (import "day" (type (eq $day)))
    )"#;
    let error = refusal(component(wat)).await;
    assert!(error.starts_with("exports neither"), "{error}");
}

#[tokio::test]
async fn a_component_without_tools() {
    let error = refusal(component("(component)")).await;
    assert!(
        error.starts_with("exports neither `cofferdam:plugin/tools@0.1.0` nor a function"),
        "{error}"
    );
}

#[tokio::test]
async fn an_export_of_another_type() {
    let wat = r#"(component (instance $i) (export "cofferdam:plugin/tools@0.1.0" (instance $i)))"#;
    let error = refusal(component(wat)).await;
    assert!(error.starts_with("does not fit the plugin interface:"), "{error}");
}

#[tokio::test]
async fn definitions_that_cannot_be_had() {
    assert!(refusal_of("list_traps").await.starts_with("did not list its tools: Trap.Unreachable"));
    assert!(refusal_of("list_spins").await.starts_with("did not list its tools: Timeout"));
}

#[tokio::test]
async fn definitions_that_break_a_rule() {
    let error = refusal_of("bad_schema").await;
    assert!(error.starts_with("Tool 'bad': invalid declaration at '/properties/n"), "{error}");
    assert!(refusal_of("list_twice").await.contains("same"), "two tools of one name");
}
