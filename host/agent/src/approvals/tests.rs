//! Tests of rules about arguments. Each list of paths and arguments is a way around rules that was
//! reported of another product.

use std::sync::{Arc, Mutex};

use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::{Functions, Toolset};
use serde_json::{Value, json};

use super::path::{Comparison, allows, concerns, objection, same_folder};
use super::*;
use crate::ApprovalRequest;
use crate::{
    AfterScript, Agent, InvalidAgent, Message, MessageContent, Reply, Role, ScriptedClient,
};

/// Paths that may mean another file than they seem to.
const UNCLEAR: &[&str] = &[
    "",
    "docs/../secret",
    "docs/./a",
    "docs//a",
    "docs/a/",
    "docs/..",
    "docs/%2e%2e/secret",
    "docs/..%2fsecret",
    "docs\\..\\secret",
    "\\\\?\\C:\\docs\\a",
    "C:docs/a",
    "docs/a\0b",
    "docs/a\nb",
    "docs/\u{ff0e}\u{ff0e}/secret",
    "docs\u{2215}..\u{2215}secret",
    "docs/a\u{200b}b",
    "docs/\u{202e}a",
    "docs/$HOME/a",
    "~/docs/a",
    "docs/a;rm",
    "docs/a|b",
    "docs/`id`",
    "docs/$(id)",
    "docs/<(id)",
    "docs/a>b",
    "docs/*",
    "docs/...",
    "docs /a",
    "docs/a. ",
];

#[test]
fn an_unclear_path_is_never_allowed_and_always_denied() {
    for path in UNCLEAR {
        assert_eq!(allows("docs/**", path), Comparison::Unclear, "{path:?}");
        if *path != "docs/a/" {
            assert_eq!(concerns("other/**", path), Comparison::Unclear, "{path:?}");
        }
    }
}

#[test]
fn a_path_is_allowed_only_where_the_pattern_says() {
    let allowed = |pattern, path| allows(pattern, path) == Comparison::Matches;
    for (pattern, path) in [
        ("docs/**", "docs/a.txt"),
        ("docs/**", "docs/b/c/d.txt"),
        ("docs/*.md", "docs/a.md"),
        ("**/a.md", "a.md"),
        ("**/a.md", "b/c/a.md"),
        ("a/**/z", "a/z"),
        ("a/**/z", "a/b/c/z"),
        ("d?cs/a", "docs/a"),
        ("/home/u/**", "/home/u/a"),
        ("docs/.*", "docs/.env"),
        ("docs/é*", "docs/été"),
    ] {
        assert!(allowed(pattern, path), "{pattern} {path}");
    }
    for (pattern, path) in [
        // The directory itself, a longer name, a nested directory of the same name.
        ("docs/**", "docs"),
        ("docs/**", "docs2/a"),
        ("docs/**", "b/docs/a"),
        ("docs/**", "Docs/a"),
        ("docs/**", "/docs/a"),
        ("/docs/**", "docs/a"),
        ("docs/*", "docs/b/a"),
        ("docs/*", "docs/.env"),
        ("docs/**", "docs/.git/config"),
        ("docs/*.md", "docs/a.md.exe"),
        ("d?cs/a", "d/cs/a"),
    ] {
        assert!(!allowed(pattern, path), "{pattern} {path}");
    }
    // Many wildcards take no more time.
    assert!(!allowed(&"*a".repeat(100), &"a".repeat(5000).replace("aa", "ab")));
}

#[test]
fn a_denied_path_is_denied_in_every_spelling() {
    let concerned = |pattern, path| concerns(pattern, path) != Comparison::Differs;
    for (pattern, path) in [
        ("secret/**", "secret/a"),
        ("secret/**", "Secret/A"),
        ("secret/**", "secret/.hidden/a"),
        ("secret/keys/**", "secret"),
        ("secret/keys/**", "secret/"),
        ("secret", "secret/a"),
        ("secret/**", "/home/u/secret/a"),
        ("secret/**", "/secret/a"),
        ("/home/u/secret/**", "secret/a"),
        ("**/.git/**", "a/.git/config"),
        ("**/*.pem", "a/b/KEY.PEM"),
    ] {
        assert!(concerned(pattern, path), "{pattern} {path}");
    }
    for (pattern, path) in
        [("secret/**", "public/a"), ("secret/**", "secrets/a"), ("**/.git/**", "a/b")]
    {
        assert!(!concerned(pattern, path), "{pattern} {path}");
    }
}

#[test]
fn a_pattern_that_can_match_nothing_is_refused() {
    for pattern in ["", "../a", "a/./b", "a//b", "a\\b", "a**/b", "~/a", "a/%41", "a/", "C:/a"] {
        assert!(objection(pattern).is_some(), "{pattern}");
    }
    assert!(objection(&"a".repeat(257)).is_some());
    let empty = ApprovalRule::new(ApprovalEffect::Deny, "f")
        .argument("a", ArgumentPattern::OneOf(Vec::new()));
    let path = ApprovalRule::new(ApprovalEffect::Deny, "f")
        .argument("a", ArgumentPattern::Path("../a".to_owned()));
    let many = vec![ApprovalRule::new(ApprovalEffect::Ask, "f"); 1001];
    for rules in [vec![empty], vec![path], many] {
        assert!(Approvals::default().rules(rules).is_err());
    }
    // A misspelled key does not make a rule about every call.
    let misspelled = json!({"effect": "allow", "tool": "f", "argument": {"a": "any"}});
    assert!(serde_json::from_value::<ApprovalRule>(misspelled).is_err());
}

#[test]
fn a_rule_that_matches_no_tool_has_a_warning() {
    let toolset = tool("write", &Arc::default());
    let deny = |tool: &str| ApprovalRule::new(ApprovalEffect::Deny, tool);
    let warnings = |rule| Approvals::default().rules([rule]).unwrap().misspelled(&toolset);
    let from = |tool: &str, origin: &str| {
        let rule = deny(tool);
        ApprovalRule { origin: Some(origin.to_owned()), ..rule }
    };
    let path = |name: &str| deny("*").argument(name, ArgumentPattern::Any);
    for (rule, expected) in [
        (deny("writ"), "did you mean `write`?"),
        (path("filename"), "no such tool has `filename`"),
        (path("path").argument("other", ArgumentPattern::Any), "`other` and `path`"),
        (from("*", "plugin:notes"), "no such tool has the origin `plugin:notes`"),
        (from("write", "program:other"), "no such tool has the origin `program:other`"),
    ] {
        let found = warnings(rule);
        assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
    }
    for rule in [deny("*"), deny("write"), deny("unrelated"), path("path")] {
        assert_eq!(warnings(rule), Vec::<String>::new());
    }
    assert_eq!(warnings(from("*", "program:tests")), Vec::<String>::new());
    let mode = |tool: &str| Approvals::default().with(tool, ApprovalMode::Always);
    let expected = "a mode of approvals concerns the tool `writ`, which does not exist; did you \
                    mean `write`?";
    assert_eq!(mode("writ").misspelled(&toolset), [expected]);
    assert_eq!(mode("write").with("unrelated", ApprovalMode::Never).misspelled(&toolset).len(), 0);
}

#[tokio::test]
async fn an_approval_for_all_calls_covers_the_others_of_the_reply() {
    let call = |id: &str| MessageContent::call(id, "f", r#"{"path":"docs/a"}"#);
    let reply = Message::new(Role::Assistant, vec![call("1"), call("2")]);
    let client = ScriptedClient::new([Reply { messages: vec![reply], ..Reply::default() }]);
    let toolset = tool("f", &Arc::default());
    let session = Session::new();
    let asking = Approvals::by_default(ApprovalMode::Always);
    let agent = Agent::builder(client).tools(toolset.clone()).approvals(asking.clone());
    let response = agent.build().unwrap().run("go").session(&session).await.unwrap();
    let [first, second] =
        <[_; 2]>::try_from(response.approval_requests().collect::<Vec<_>>()).unwrap();
    assert!(!asking.is_allowed_since(second, &toolset, &session));
    allow_always(&session, Scope::every_call(first).unwrap());
    assert!(asking.is_allowed_since(second, &toolset, &session));
    // Neither calls that needed no approval, nor those of another tool or a stricter rule.
    let is_allowed = |approvals: Approvals, toolset: &Toolset| {
        approvals.is_allowed_since(second, toolset, &session)
    };
    assert!(!is_allowed(Approvals::default(), &toolset));
    assert!(!is_allowed(asking.clone().with("f", ApprovalMode::Always), &toolset));
    assert!(!is_allowed(rules(json!([{"effect": "deny", "tool": "f"}])), &toolset));
    assert!(!is_allowed(asking.clone(), &tool("g", &Arc::default())));
    let moved = ApprovalRequest { origin: None, ..second.clone() };
    assert!(!asking.is_allowed_since(&moved, &toolset, &session));
}

fn tool(name: &str, log: &Arc<Mutex<Vec<String>>>) -> Toolset {
    let schema = r#"{"type":"object","properties":{
        "path":{"type":"string"},"to":{"type":"string"},"text":{"type":"string"},
        "count":{"type":"number"},"options":{"type":"object"},
        "mode":{"enum":["read","delete"]},"id":{"type":"string","format":"uuid"}}}"#;
    let log = Arc::clone(log);
    let functions = Functions::new("tests").with(
        Declaration::new(name, "For tests.", schema),
        move |arguments, _| {
            log.lock().unwrap().push(json!(arguments.value()).to_string());
            async { Ok(json!("ok")) }
        },
    );
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(functions.unwrap())).unwrap();
    toolset
}

/// Result of one call under `approvals`: `ran`, `asked`, or the string that the model sees.
async fn outcome(approvals: Approvals, session: &Session, arguments: &str) -> String {
    let call = Message::new(Role::Assistant, vec![MessageContent::call("1", "f", arguments)]);
    let client = ScriptedClient::new([Reply { messages: vec![call], ..Reply::default() }])
        .then(AfterScript::Silence);
    let log = Arc::default();
    let agent = Agent::builder(client).tools(tool("f", &log)).approvals(approvals).build().unwrap();
    let response = agent.run("go").session(session).await.unwrap();
    if response.approval_requests().next().is_some() {
        assert!(log.lock().unwrap().is_empty());
        return "asked".to_owned();
    }
    if !log.lock().unwrap().is_empty() {
        return "ran".to_owned();
    }
    let result = response.messages.iter().find_map(|message| message.results().next().cloned());
    result.unwrap().result
}

fn rules(form: Value) -> Approvals {
    let rules: Vec<ApprovalRule> = serde_json::from_value(form).unwrap();
    Approvals::by_default(ApprovalMode::Always).rules(rules).unwrap()
}

#[tokio::test]
async fn an_allowed_call_has_no_arguments_that_the_rule_does_not_name() {
    let approvals = rules(json!([{"effect": "allow", "tool": "f", "arguments": {
        "path": {"path": "docs/**"}, "count": {"range": {"min": 1, "max": 3}}, "text": "any"}}]));
    for (arguments, expected) in [
        (r#"{"path":"docs/a","count":3,"text":"x"}"#, "ran"),
        (r#"{"path":"docs/a","count":3.0}"#, "ran"),
        (r#"{"path":"docs/a","count":1,"to":null}"#, "ran"),
        (r#"{"path":"docs/a","count":4}"#, "asked"),
        (r#"{"path":"docs/a","count":0.5}"#, "asked"),
        (r#"{"path":"docs/a","count":"2"}"#, "asked"),
        (r#"{"path":"docs/a"}"#, "asked"),
        (r#"{"count":1}"#, "asked"),
        (r#"{"path":["docs/a"],"count":1}"#, "asked"),
        (r#"{"path":"docs/a","count":1,"to":"secret"}"#, "asked"),
        (r#"{"path":"docs/../secret","count":1}"#, "asked"),
        (r#"{"path":"docs/\u002e\u002e/secret","count":1}"#, "asked"),
        (r#"{"path":"docs/a","path":"secret","count":1}"#, "asked"),
        (r#"{"path":"secret","path":"docs/a","count":1,"#, "asked"),
        ("", "asked"),
        ("[]", "asked"),
    ] {
        let session = Session::new();
        assert_eq!(outcome(approvals.clone(), &session, arguments).await, expected, "{arguments}");
    }
}

#[tokio::test]
async fn a_tool_receives_the_arguments_that_were_compared() {
    let allow =
        json!([{"effect": "allow", "tool": "f", "arguments": {"path": {"path": "docs/**"}}}]);
    for arguments in [
        r#"{"path":"secret","path":"docs/a"}"#,
        r#"{"path":"docs/a","path":"secret"}"#,
        r#"{"path":"docs/a","Path":"secret"}"#,
        r#"{"p\u0061th":"docs/a"}"#,
    ] {
        let call = Message::new(Role::Assistant, vec![MessageContent::call("1", "f", arguments)]);
        let client = ScriptedClient::new([Reply { messages: vec![call], ..Reply::default() }])
            .then(AfterScript::Silence);
        let log = Arc::default();
        let agent = Agent::builder(client).tools(tool("f", &log)).approvals(rules(allow.clone()));
        agent.build().unwrap().run("go").session(&Session::new()).await.unwrap();
        let log = log.lock().unwrap();
        assert!(log.iter().all(|seen| seen == r#"{"path":"docs/a"}"#), "{arguments} {log:?}");
    }
}

#[tokio::test]
async fn the_strictest_rule_counts_in_any_order() {
    let allow = json!({"effect": "allow", "tool": "*"});
    let ask = json!({"effect": "ask", "tool": "f", "arguments": {"path": {"path": "etc/**"}}});
    let deny = json!({"effect": "deny", "tool": "f", "arguments": {"path": {"path": "secret/**"}}});
    let denied = "Error: A rule does not allow this call.";
    for order in [json!([allow, ask, deny]), json!([deny, ask, allow])] {
        for (arguments, expected) in [
            (r#"{"path":"docs/a"}"#, "ran"),
            (r#"{"path":"etc/a"}"#, "asked"),
            (r#"{"path":"Secret/a"}"#, denied),
            (r#"{"path":"docs/../secret"}"#, denied),
            (r#"{"path":7}"#, denied),
            ("{}", denied),
        ] {
            let session = Session::new();
            let found = outcome(rules(order.clone()), &session, arguments).await;
            assert_eq!(found, expected, "{arguments}");
        }
    }
}

#[tokio::test]
async fn a_denied_value_is_denied_in_every_spelling_that_the_tool_receives_as_it() {
    let id = "0193C0FF-EE00-7A1B-92C3-D4E5F6071829";
    let approvals = rules(json!([
        {"effect": "allow", "tool": "f"},
        {"effect": "deny", "tool": "f", "arguments": {"mode": {"equals": "delete"}}},
        {"effect": "deny", "tool": "f", "arguments": {"id": {"one-of": [id]}}}]));
    let denied = "Error: A rule does not allow this call.";
    let other = "0193c0ff-ee00-7a1b-92c3-d4e5f6071820";
    for (arguments, expected) in [
        (json!({"mode": "delete", "id": other}), denied),
        (json!({"mode": "DELETE", "id": other}), denied),
        (json!({"mode": "read", "id": id}), denied),
        (json!({"mode": "read", "id": id.to_lowercase()}), denied),
        (json!({"mode": "Read", "id": id.replace("0193C0FF", "0193C0ff")}), denied),
        (json!({"mode": "Read", "id": other.to_uppercase()}), "ran"),
    ] {
        let (session, arguments) = (Session::new(), arguments.to_string());
        assert_eq!(outcome(approvals.clone(), &session, &arguments).await, expected, "{arguments}");
    }
}

#[tokio::test]
async fn a_rule_about_every_tool_is_not_about_tools_without_the_argument() {
    let form = json!([{"effect": "deny", "tool": "*", "arguments": {"file": {"path": "a/**"}}}]);
    let denied = "Error: A rule does not allow this call.";
    assert_eq!(outcome(rules(form.clone()), &Session::new(), "{}").await, "asked");
    assert_eq!(outcome(rules(form.clone()), &Session::new(), r#"{"file":"a/b"}"#).await, denied);
    assert_eq!(outcome(rules(form), &Session::new(), "{").await, denied);
}

#[tokio::test]
async fn exact_values_are_compared_as_json() {
    let approvals = rules(json!([{"effect": "allow", "tool": "f", "origin": "program:tests",
        "arguments": {"options": {"equals": {"a": 1, "b": [2]}}}}]));
    for (arguments, expected) in [
        (r#"{"options":{"b":[2],"a":1.0}}"#, "ran"),
        (r#"{"options":{"b":[2],"a":1,"c":null}}"#, "asked"),
        (r#"{"options":{"b":[2,2],"a":1}}"#, "asked"),
    ] {
        let session = Session::new();
        assert_eq!(outcome(approvals.clone(), &session, arguments).await, expected, "{arguments}");
    }
    let other = json!([{"effect": "allow", "tool": "f", "origin": "program:other"}]);
    assert_eq!(outcome(rules(other), &Session::new(), "{}").await, "asked");
    let read_only = json!([{"effect": "allow", "tool": "f", "read-only": true}]);
    assert_eq!(outcome(rules(read_only), &Session::new(), "{}").await, "asked");
}

#[tokio::test]
async fn a_callback_can_only_make_rules_stricter() {
    let decide = |effect| {
        let allow = json!([{"effect": "allow", "tool": "f"}]);
        rules(allow).decide(move |_: &FunctionCall, _: &ToolDefinition| effect)
    };
    for (effect, expected) in [
        (None, "ran"),
        (Some(ApprovalEffect::Allow), "ran"),
        (Some(ApprovalEffect::Ask), "asked"),
        (Some(ApprovalEffect::Deny), "Error: A rule does not allow this call."),
    ] {
        assert_eq!(outcome(decide(effect), &Session::new(), "{}").await, expected);
    }
}

#[tokio::test]
async fn a_standing_approval_of_a_folder_grants_no_more_than_it_shows() {
    let session = Session::new();
    let always = || Approvals::by_default(ApprovalMode::Always);
    let request = ApprovalRequest {
        function_call: FunctionCall {
            name: "f".to_owned(),
            arguments: r#"{"path":"docs/a","text":"x","count":1}"#.to_owned(),
            ..FunctionCall::default()
        },
        origin: Some(cofferdam_tool::origin::ToolOrigin::program("tests")),
        ..ApprovalRequest::default()
    };
    let scope = Scope::same_folder(&request, "path", &["text"]).unwrap();
    allow_always(&session, scope.clone());
    // It lasts as long as the session.
    let form = serde_json::to_value(&session).unwrap();
    let session: Session = serde_json::from_value(form).unwrap();
    for (arguments, expected) in [
        (r#"{"path":"docs/b/c","text":"other","count":1}"#, "ran"),
        (r#"{"path":"docs/b","count":1}"#, "ran"),
        (r#"{"path":"docs/b","text":"x","count":2}"#, "asked"),
        (r#"{"path":"docs/b","text":"x","count":1,"to":"secret"}"#, "asked"),
        (r#"{"path":"docs/../a","text":"x","count":1}"#, "asked"),
        (r#"{"path":"docs","text":"x","count":1}"#, "asked"),
    ] {
        assert_eq!(outcome(always(), &session, arguments).await, expected, "{arguments}");
    }
    let deny = json!([{"effect": "deny", "tool": "f", "arguments": {"path": {"path": "docs/**"}}}]);
    let denied = outcome(rules(deny), &session, r#"{"path":"docs/b","count":1}"#).await;
    assert_eq!(denied, "Error: A rule does not allow this call.");
    assert!(forbid_again(&session, &scope));
    assert_eq!(same_folder("/docs/a").as_deref(), Some("/docs/**"));
    for path in ["a", "/a", "docs/../a", "docs/%2e/a"] {
        assert_eq!(same_folder(path), None, "{path}");
    }
    // Without patterns a rule covers nothing.
    let arguments = BTreeMap::new();
    let Scope::Matching { name, origin, .. } = scope else { panic!("a rule with patterns") };
    allow_always(&session, Scope::Matching { name, origin, arguments });
    assert_eq!(outcome(always(), &session, "{}").await, "asked");
}

#[tokio::test]
async fn an_approval_does_not_outlive_a_rule_that_denies() {
    let session = Session::new();
    let call = Message::new(Role::Assistant, vec![MessageContent::call("1", "f", "{}")]);
    let client = ScriptedClient::new([Reply { messages: vec![call], ..Reply::default() }])
        .then(AfterScript::Silence);
    let log = Arc::default();
    let agent = |approvals: Approvals| {
        Agent::builder(client.clone()).tools(tool("f", &log)).approvals(approvals).build().unwrap()
    };
    let response = agent(rules(json!([]))).run("go").session(&session).await.unwrap();
    let answer = response.approval_requests().next().unwrap().approve();
    let denying = agent(rules(json!([{"effect": "deny", "tool": "f"}])));
    denying.run(vec![answer]).session(&session).await.unwrap();
    assert!(log.lock().unwrap().is_empty());
}

#[test]
fn a_rule_about_an_argument_that_does_not_exist_is_refused() {
    let approvals =
        rules(json!([{"effect": "deny", "tool": "f", "arguments": {"pth": {"path": "a/**"}}}]));
    let agent = Agent::builder(ScriptedClient::new([Reply::text("")]))
        .tools(tool("f", &Arc::default()))
        .approvals(approvals);
    let error = agent.build().map(|_| ()).unwrap_err();
    assert!(matches!(error, InvalidAgent::ApprovalRule(_)));
    assert_eq!(error.to_string(), "approval rule for `f`: the tool has no argument `pth`");
}

/// Returns an agent whose model calls `f` with `ask` and with `run`, and then answers.
fn mixed(log: &Arc<Mutex<Vec<String>>>, client: &ScriptedClient, runs_others: bool) -> Agent {
    let ask = json!([{"effect": "ask", "tool": "f", "arguments": {"text": {"equals": "ask"}}}]);
    let rules: Vec<ApprovalRule> = serde_json::from_value(ask).unwrap();
    let approvals = Approvals::default().rules(rules).unwrap().run_others_at_once(runs_others);
    let agent = Agent::builder(client.clone()).tools(tool("f", log)).approvals(approvals);
    agent.build().unwrap()
}

fn mixed_client() -> ScriptedClient {
    let contents = ["ask", "run", "ask", "run"].iter().enumerate().map(|(index, text)| {
        let arguments = json!({"text": text}).to_string();
        MessageContent::call(format!("{text}-{index}"), "f", arguments)
    });
    let calls = Message::new(Role::Assistant, contents.collect());
    let reply = Reply { messages: vec![calls], ..Reply::default() };
    ScriptedClient::new([reply, Reply::text("done")]).recording()
}

/// Returns the ids of the calls and of the results of each message of the last request.
fn last_request(client: &ScriptedClient) -> Vec<String> {
    let request = client.requests().pop().unwrap();
    let ids = |message: &Arc<Message>| {
        let calls = message.calls().map(|call| call.call_id.clone());
        let results = message.results().map(|result| result.call_id.clone());
        calls.chain(results).collect::<Vec<_>>().join(" ")
    };
    request.messages.iter().map(ids).collect()
}

#[tokio::test]
async fn other_calls_run_while_the_user_is_asked() {
    let (log, client, session) = (Arc::default(), mixed_client(), Session::new());
    let agent = mixed(&log, &client, true);
    let response = agent.run("go").session(&session).await.unwrap();
    assert_eq!(log.lock().unwrap().len(), 2);
    let results: Vec<_> =
        response.messages[1].results().map(|result| result.call_id.as_str()).collect();
    assert_eq!(results, ["run-1", "run-3"]);
    let requests: Vec<_> = response.approval_requests().cloned().collect();
    assert_eq!(requests.len(), 2);
    let answers = vec![requests[0].approve(), requests[1].refuse(None)];
    let response = agent.run(answers).session(&session).await.unwrap();
    assert_eq!(response.text(), "done");
    // The approved call has run, and no other has run again.
    assert_eq!(log.lock().unwrap().len(), 3);
    let calls = "ask-0 run-1 ask-2 run-3";
    assert_eq!(last_request(&client), ["", calls, calls]);
}

#[tokio::test]
async fn the_model_sees_what_has_run_if_the_rest_is_abandoned() {
    let (log, client, session) = (Arc::default(), mixed_client(), Session::new());
    let agent = mixed(&log, &client, true);
    agent.run("go").session(&session).await.unwrap();
    agent.run("something else").session(&session).await.unwrap();
    assert_eq!(log.lock().unwrap().len(), 2);
    assert_eq!(last_request(&client), ["", "run-1 run-3", "run-1 run-3", ""]);
}

#[tokio::test]
async fn by_default_nothing_runs_while_the_user_is_asked() {
    let (log, client, session) = (Arc::default(), mixed_client(), Session::new());
    let agent = mixed(&log, &client, false);
    let response = agent.run("go").session(&session).await.unwrap();
    assert!(log.lock().unwrap().is_empty());
    assert_eq!(response.messages.len(), 1);
    agent.run("something else").session(&session).await.unwrap();
    assert_eq!(last_request(&client), ["", ""]);
}
