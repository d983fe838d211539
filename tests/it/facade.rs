//! The library `cofferdam` with a configuration, as embedders use it.

use std::path::Path;
use std::sync::{Arc, Mutex};

use cofferdam::engine::Compiler;
use cofferdam::{CallError, Host, HostBuilder, Observer};
use cofferdam_agent::{AgentBuilder, MessageContent, ScriptedClient};
use cofferdam_mcp::{Server, ServerOptions};
use cofferdam_tests::{binary, guest};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::functions::FunctionEnd;
use cofferdam_tool::{Functions, ToolError};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_util::sync::CancellationToken;

/// Records notes.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Observer for Notes {
    fn note(&self, message: &str) {
        self.0.lock().unwrap().push(message.to_owned());
    }
}

/// Returns a builder with a configuration in `folder`.
fn of_config(folder: &Path, config: &str) -> HostBuilder {
    let path = folder.join("cofferdam.toml");
    std::fs::write(&path, config).unwrap();
    let compiler =
        Compiler::Child { program: binary(), arguments: vec!["cofferdam-compile-child".into()] };
    Host::builder().config_file(path).compiler(compiler).cache_directory(folder.join("cache"))
}

fn plugin(name: &str, keys: &str) -> String {
    format!("[plugins.{name}]\ncomponent = \"{}\"\n{keys}\n", guest(name).display())
}

#[tokio::test]
async fn a_transient_failure_is_retried_as_the_configuration_says() {
    let folder = tempfile::tempdir().unwrap();
    for (keys, attempts) in [("", 1), ("transient-retries = 2", 3)] {
        let host = of_config(folder.path(), &plugin("crash", keys)).build().await.unwrap();
        let error = host.call("fail_transiently", json!({})).await.unwrap_err();
        let CallError::Failure { record, .. } = error else { panic!("{error}") };
        assert_eq!(record.attempts, attempts, "{keys}");
    }
    let error = of_config(folder.path(), &plugin("crash", "transient-retries = 101")).build().await;
    let error = error.err().unwrap().to_string();
    assert!(error.contains("`transient-retries` is 101; at most 100"), "{error}");
}

#[tokio::test]
async fn calls_of_a_plugin_are_limited_together() {
    let folder = tempfile::tempdir().unwrap();
    let config = plugin("crash", "usage = { max-invocations = 3, max-invocation-failures = 1 }")
        + &plugin("text", "usage = { max-invocations = 1 }");
    let host = of_config(folder.path(), &config).build().await.unwrap();
    host.call("word_count", json!({"text": "a b"})).await.unwrap();
    let error = host.call("word_count", json!({"text": "a b"})).await.unwrap_err();
    assert!(error.to_string().contains("maximum"), "{error}");
    host.call("ok", json!({})).await.unwrap();
    host.call("fail_transiently", json!({})).await.unwrap_err();
    // A failure of one tool counts for the other tools of its plugin.
    let error = host.call("ok", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("maximum failure limit"), "{error}");
}

#[tokio::test]
async fn a_plugin_that_does_not_load_leaves_the_others_and_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let config = plugin("text", "") + "[plugins.gone]\ncomponent = \"gone.wasm\"\n";
    let notes = Arc::new(Notes::default());
    let host = of_config(folder.path(), &config).observer(Arc::clone(&notes) as Arc<dyn Observer>);
    let host = host.build().await.unwrap();
    assert_eq!(
        host.call("word_count", json!({"text": "a b"})).await.unwrap().value().unwrap()["words"],
        2
    );
    let names: Vec<_> = host.unavailable().iter().map(|plugin| plugin.name.to_string()).collect();
    assert_eq!(names, ["gone"]);
    let notes = notes.0.lock().unwrap().join("\n");
    assert!(notes.contains("the plugin `gone` is left out"), "{notes}");
}

/// Returns a tool `fail` of the program, which raises an error.
fn failing(shows_details: bool) -> Functions {
    let schema = r#"{"type":"object","properties":{}}"#;
    let functions =
        Functions::new("tests").with(Declaration::new("fail", "Fails.", schema), async |_, _| {
            let error = ToolError::host("Broken").with_detail("secret");
            Err(FunctionEnd::Error(Box::new(error)))
        });
    functions.unwrap().with_detailed_errors(shows_details)
}

/// Returns the result that the model of an agent gets.
async fn by_agent(agent: impl FnOnce(ScriptedClient) -> AgentBuilder) -> String {
    let script = "{\"calls\":[{\"tool\":\"fail\"}]}\n{\"text\":\"done\"}";
    let model = ScriptedClient::read("script", script.as_bytes()).unwrap();
    let response = agent(model).build().unwrap().run("go").await;
    let messages = response.unwrap().messages;
    let mut results =
        messages.iter().flat_map(|message| &message.contents).filter_map(|content| match content {
            MessageContent::FunctionResult(result) => Some(result.result.clone()),
            _ => None,
        });
    results.next().unwrap()
}

/// Returns the result that an MCP client gets.
async fn by_server(server: Server) -> String {
    let (near, far) = tokio::io::duplex(1 << 20);
    let (far_input, far_output) = tokio::io::split(far);
    let serving = tokio::spawn(async move {
        server.serve_stream(far_input, far_output, CancellationToken::new()).await
    });
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let parameters = json!({"name": "fail", "arguments": {}, "_meta": meta});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": parameters});
    let (input, mut output) = tokio::io::split(near);
    output.write_all(format!("{request}\n").as_bytes()).await.unwrap();
    let mut line = String::new();
    BufReader::new(input).read_line(&mut line).await.unwrap();
    serving.abort();
    let response: Value = serde_json::from_str(&line).unwrap();
    response["result"]["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_error_of_a_function_reads_the_same_everywhere_if_its_message_is_shown() {
    let texts = async |shows_details: bool| {
        let folder = tempfile::tempdir().unwrap();
        let builder = of_config(folder.path(), "").source(Arc::new(failing(shows_details)));
        let host = builder.build().await.unwrap();
        let called = host.call("fail", json!({})).await.unwrap_err().text().unwrap();
        let server = host.mcp_server(ServerOptions::default()).unwrap();
        [called, by_agent(|model| host.agent(model)).await, by_server(server).await]
    };
    let detailed = r#"{"error":{"message":"An unexpected error occurred (Broken): secret"}}"#;
    assert_eq!(texts(true).await, [detailed; 3]);
    // LOOP-14 and RES-5 each fix a text without the message.
    let generic =
        r#"{"error":{"message":"An unexpected error occurred (Broken). Please try again."}}"#;
    assert_eq!(texts(false).await, [generic, "Error: Function failed.", generic]);
}

#[tokio::test]
async fn rules_of_the_configuration_hold_for_agents_and_servers_of_a_host() {
    let folder = tempfile::tempdir().unwrap();
    let rule = "[agent]\napprovals = [{ effect = \"deny\", tool = \"fail\" }]\n";
    let host =
        of_config(folder.path(), rule).source(Arc::new(failing(true))).build().await.unwrap();
    let server = host.mcp_server(ServerOptions::default()).unwrap();
    for denied in [by_agent(|model| host.agent(model)).await, by_server(server).await] {
        assert!(!denied.contains("Broken"), "{denied}");
    }
}
