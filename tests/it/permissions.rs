//! Permissions: those a plugin asks for, those the operator offers, and those its calls get.

use std::collections::BTreeMap;
use std::sync::Arc;

use cofferdam_engine::manifest::embed_manifest;
use cofferdam_engine::{Component, Grants, LoadError};
use cofferdam_tests::{Host, guest};
use cofferdam_tool::permission::{
    ClockPrecision, RequestedLimits, RequestedPermissions, SecretText,
};
use cofferdam_tool::{CallContext, Completion, Limits, Outcome, Output};
use serde_json::{Value, json};

const SECRET: &str = "ghp_0123456789abcdef";

/// Offers every permission that the guest `granted` can use.
fn generous() -> Grants {
    let text = |text: &str| SecretText::new(text);
    Grants {
        env: BTreeMap::from([("LANG".to_owned(), text("de")), ("TOKEN".to_owned(), text(SECRET))]),
        config: BTreeMap::from([
            ("units".to_owned(), text("metric")),
            ("other".to_owned(), text("x")),
        ]),
        secrets: BTreeMap::from([
            ("github".to_owned(), text(SECRET)),
            ("bound".to_owned(), text("0123456789")),
        ]),
        readable_secrets: ["github".to_owned()].into(),
        ..Grants::default()
    }
}

async fn host(manifest: Option<&str>, grants: Grants) -> Host {
    let mut host = Host::new();
    host.grants = grants;
    let component = Component::from_file_ambient(guest("granted"));
    let component = match manifest {
        Some(manifest) => component.with_manifest(manifest),
        None => component,
    };
    let plugin = host.try_load(&component).await.unwrap();
    host.add(plugin);
    host
}

async fn call(host: &Host, tool: &str, arguments: Value) -> Completion {
    host.call(tool, &arguments.to_string()).await
}

/// Returns the value of a result: `null` if there is none.
async fn value(host: &Host, tool: &str, arguments: Value) -> Value {
    let completion = call(host, tool, arguments).await;
    match completion.outcome {
        Outcome::Ok(Output::Value(value)) => value,
        other => panic!("{tool}: {other:?}"),
    }
}

#[tokio::test]
async fn a_plugin_without_a_manifest_gets_what_is_offered() {
    let host = host(None, generous()).await;
    assert_eq!(value(&host, "env", json!({"name": "LANG"})).await, json!("de"));
    assert_eq!(value(&host, "config", json!({"key": "units"})).await, json!("metric"));
    let mut names: Vec<String> =
        serde_json::from_value(value(&host, "names", json!({})).await).unwrap();
    names.sort();
    assert_eq!(names, ["LANG", "TOKEN", "other", "units"]);
}

#[tokio::test]
async fn a_manifest_is_a_bound_of_its_own() {
    let manifest = "[permissions]\nenv = [\"LANG\", \"HOME\"]\nconfig = \
        [\"units\"]\n[limits]\nwall-ms-max = 1234\n";
    let host = host(Some(manifest), generous()).await;
    assert_eq!(value(&host, "names", json!({})).await, json!(["LANG", "units"]));
    let refused = call(&host, "secret", json!({"name": "github"})).await;
    assert_eq!(refused.outcome, Outcome::Ok(Output::Value(Value::Null)));
    assert_eq!(refused.record.refused[0].capability, "secret:github");
}

#[tokio::test]
async fn nothing_is_granted_that_was_not_offered() {
    let host = host(None, Grants::default()).await;
    assert_eq!(value(&host, "names", json!({})).await, json!([]));
    for (tool, arguments) in [
        ("env", json!({"name": "PATH"})),
        ("config", json!({"key": "units"})),
        ("secret", json!({"name": "github"})),
    ] {
        assert_eq!(value(&host, tool, arguments).await, Value::Null, "{tool}");
    }
}

#[tokio::test]
async fn a_secret_that_is_only_bound_cannot_be_read() {
    let host = host(None, generous()).await;
    assert_eq!(value(&host, "secret", json!({"name": "bound"})).await, Value::Null);
}

#[tokio::test]
async fn a_secret_is_in_nothing_that_leaves_a_call() {
    let host = host(None, generous()).await;
    for (name, way) in [
        ("github", "return"),
        ("github", "print"),
        ("github", "panic"),
        ("github", "fail"),
        ("none", "return"),
        ("none", "print"),
    ] {
        let completion = call(&host, "leak", json!({"name": name, "way": way})).await;
        let written = format!(
            "{:?} {} {}",
            completion,
            serde_json::to_string(&completion.record).unwrap(),
            completion.outcome.shown().unwrap().text()
        );
        assert!(!written.contains(SECRET), "{name} {way}: {written}");
        assert!(written.contains("[secret github]"), "{name} {way}: {written}");
    }
}

#[tokio::test]
async fn a_secret_that_is_too_short_refuses_the_plugin() {
    let mut host = Host::new();
    host.grants.secrets.insert("pin".to_owned(), SecretText::new("1234"));
    let error = host.try_load(&Component::from_file_ambient(guest("granted"))).await.err().unwrap();
    assert!(matches!(error, LoadError::UnusableSecret(_)), "{error}");
    assert!(!error.to_string().contains("1234"));
}

#[tokio::test]
async fn clocks_are_coarse_unless_a_precise_one_is_granted() {
    let steps = async |clock| {
        let grants = Grants { clock, ..Grants::default() };
        let host = host(Some("[permissions]\nclock = \"precise\"\n"), grants).await;
        let steps: Vec<u64> =
            serde_json::from_value(value(&host, "steps", json!({})).await).unwrap();
        let date: u64 = serde_json::from_value(value(&host, "date", json!({})).await).unwrap();
        (steps, date)
    };
    let (coarse, date) = steps(ClockPrecision::Coarse).await;
    assert!(!coarse.is_empty() && coarse.iter().all(|step| step % 1_000_000 == 0), "{coarse:?}");
    assert_eq!(date % 1_000_000, 0);
    let (frozen, date) = steps(ClockPrecision::Frozen).await;
    assert!(frozen.is_empty(), "{frozen:?}");
    assert!(date > 1_700_000_000_000_000_000);
    let (precise, _) = steps(ClockPrecision::Precise).await;
    assert!(precise.iter().any(|step| step % 1_000_000 != 0), "{precise:?}");
}

#[tokio::test]
async fn a_clock_that_is_not_asked_for_stays_coarse() {
    let host = host(
        Some("[permissions]\n"),
        Grants { clock: ClockPrecision::Precise, ..Grants::default() },
    )
    .await;
    let steps: Vec<u64> = serde_json::from_value(value(&host, "steps", json!({})).await).unwrap();
    assert!(steps.iter().all(|step| step % 1_000_000 == 0), "{steps:?}");
}

#[tokio::test]
async fn random_numbers_differ_unless_they_are_withheld() {
    let draws = async |random| {
        let host = host(None, Grants { random, ..Grants::default() }).await;
        (value(&host, "random", json!({})).await, value(&host, "random", json!({})).await)
    };
    let (first, second) = draws(true).await;
    assert_ne!(first[0], second[0]);
    let (first, second) = draws(false).await;
    assert_eq!(first, second);
}

#[tokio::test]
async fn limits_are_lowered_by_the_plugin_and_by_the_call() {
    let mut host = Host::new();
    host.limits = Limits { wall_ms_max: 60_000, ..Limits::default() };
    let component =
        Component::from_file_ambient(guest("crash")).with_manifest("[limits]\nwall-ms-max = 100\n");
    let plugin = host.try_load(&component).await.unwrap();
    assert_eq!(plugin.granted().policy.limits.wall_ms_max, 100);
    host.add(plugin);
    let ended = host.call("sleep", r#"{"ms":30000}"#).await;
    assert_eq!(ended.record.error_type.as_deref(), Some("Timeout"));

    let plugin = host.try_load(&Component::from_file_ambient(guest("crash"))).await.unwrap();
    let mut host = Host::new();
    host.add(plugin);
    let limits = RequestedLimits { wall_ms_max: Some(100), ..RequestedLimits::default() };
    let context = CallContext { limits: Some(Arc::new(limits)), ..CallContext::new("narrow") };
    let ended = host.try_call("sleep", r#"{"ms":30000}"#, &context).await.unwrap();
    assert_eq!(ended.record.error_type.as_deref(), Some("Timeout"));
}

#[tokio::test]
async fn a_plugin_can_set_itself_an_instruction_budget() {
    let mut host = Host::new();
    let component = Component::from_file_ambient(guest("crash"))
        .with_manifest("[limits]\nfuel-max = 1000000\n");
    let plugin = host.try_load(&component).await.unwrap();
    host.add(plugin);
    let ended = host.call("spin", "{}").await;
    assert_eq!(ended.record.error_type.as_deref(), Some("CpuLimit"));
}

#[tokio::test]
async fn a_manifest_inside_of_a_component_is_found() {
    let bytes = std::fs::read(guest("granted")).unwrap();
    let with = embed_manifest(&bytes, "[permissions]\nenv = [\"LANG\"]\n").unwrap();
    let mut host = Host::new();
    host.grants = generous();
    let plugin = host.try_load(&Component::from_bytes(with.clone())).await.unwrap();
    let RequestedPermissions::Stated(asked) = plugin.requested() else { panic!("stated") };
    assert!(asked.env.contains("LANG"));
    host.add(plugin);
    assert_eq!(value(&host, "names", json!({})).await, json!(["LANG"]));
    // A manifest file beside the component replaces the embedded one.
    let beside = Component::from_bytes(with).with_manifest("[permissions]\n");
    let plugin = host.try_load(&beside).await.unwrap();
    assert!(plugin.granted().policy.env.is_empty());
}

#[tokio::test]
async fn a_component_of_the_sdk_carries_its_manifest() {
    let host = Host::new();
    let plugin = host.try_load(&Component::from_file_ambient(guest("csv"))).await.unwrap();
    let RequestedPermissions::Stated(asked) = plugin.requested() else {
        panic!("the manifest of csv is missing")
    };
    assert!(asked.files_any.is_some() && asked.http.is_empty());
}

#[tokio::test]
async fn a_manifest_that_breaks_a_rule_refuses_the_plugin() {
    let host = Host::new();
    let component = Component::from_file_ambient(guest("granted"))
        .with_manifest("[permissions]\nnetwork = true\n");
    let error = host.try_load(&component).await.err().unwrap();
    assert!(matches!(error, LoadError::Manifest(_)), "{error}");
    assert!(error.to_string().contains("2:1: unknown field `network`"), "{error}");
}
