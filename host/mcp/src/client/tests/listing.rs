//! Limits and redaction of listings.

use cofferdam_tool::permission::SecretText;
use cofferdam_tool::redact::Redactor;
use serde_json::{Value, json};

use crate::client::testing::Scripted;
use crate::client::{CallError, RemoteItems, ServerListing, TaskSupport, ToolListed};

fn page(tools: Vec<Value>, cursor: Option<&str>) -> Value {
    json!({"tools": tools, "nextCursor": cursor})
}

async fn fetched(pages: Vec<Value>) -> ServerListing {
    ServerListing::fetch(&Scripted::answering(pages), true, false).await.unwrap()
}

#[tokio::test]
async fn pages_are_joined_and_an_empty_cursor_is_one() {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let pages =
        vec![page(vec![tool("a")], Some("")), page(vec![tool("b")], Some("x")), page(vec![], None)];
    let listing = fetched(pages).await;
    assert_eq!(listing.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(listing.tools[0].input_schema, json!({"type": "object", "properties": {}}));
    assert!(listing.left_out.is_empty());
}

#[tokio::test]
async fn a_listing_without_end_ends() {
    let endless = |count: usize| (0..count).map(|_| page(vec![], Some("again"))).collect();
    let listing = fetched(endless(101)).await;
    assert_eq!(listing.left_out, ["all tools after page 100"]);
    let many =
        (0..1001).map(|number| json!({"name": format!("t{number}"), "inputSchema": {}})).collect();
    let listing = fetched(vec![page(many, None)]).await;
    assert_eq!((listing.tools.len(), listing.left_out.len()), (1000, 1));
    let large = "x".repeat(100_000);
    let many = (0..100)
        .map(|n| json!({"name": format!("t{n}"), "description": large, "inputSchema": {}}))
        .collect();
    let listing = fetched(vec![page(many, None)]).await;
    assert_eq!(listing.tools.len(), 83);
    assert_eq!(listing.tools[0].description.len(), 16 * 1024);
}

#[test]
fn a_tool_with_a_schema_that_cannot_be_used_is_left_out_alone() {
    let read = |schema: Value| ToolListed::read(json!({"name": "t", "inputSchema": schema}));
    assert!(read(json!(true)).unwrap_err().contains("is not an object"));
    assert!(read(json!({"type": "array"})).unwrap_err().contains("are not an object"));
    assert!(read(json!({"x": "y".repeat(200_000)})).unwrap_err().contains("too large"));
    let deep = (0..100).fold(json!({}), |inner, _| json!({ "not": inner }));
    assert!(read(deep).unwrap_err().contains("too deeply"));
    // Arguments are not decoded by it, so a schema that a compiler would reject is fine.
    assert!(
        read(json!({"$ref": "https://example.com/x", "type": "object", "pattern": "("})).is_ok()
    );
    assert_eq!(read(Value::Null).unwrap().input_schema, json!({}));
    let tool = json!({"name": "t", "outputSchema": 7, "execution": {"taskSupport": "required"}});
    let tool = ToolListed::read(tool).unwrap();
    assert_eq!((tool.output_schema, tool.support), (None, TaskSupport::Required));
}

#[tokio::test]
async fn resources_are_made_anew_from_known_fields_within_limits() {
    let resources = json!({"resources": [
        {"uri": "book:///one", "name": "One", "description": "sesame-open-1234", "_meta": {"x": 1}},
        {"uri": "no-scheme", "name": "Two"}, 7, {"uri": format!("book:///{}", "x".repeat(3000)), "name": "Three"},
    ]});
    let templates = json!({"resourceTemplates": [{"uriTemplate": "book:///{n}", "name": "Page"}]});
    let remote = Scripted::answering(vec![resources, templates]);
    let passed = RemoteItems::fetch(&remote, Some(&redactor()), &mut Vec::new()).await.unwrap();
    assert_eq!(
        json!(passed.resources),
        json!([{"uri": "book:///one", "name": "One", "description": "[secret k]"}])
    );
    assert_eq!(json!(passed.templates), json!([{"uriTemplate": "book:///{n}", "name": "Page"}]));
}

fn redactor() -> Redactor {
    Redactor::new([("k", &SecretText::new("sesame-open-1234"))]).unwrap()
}

#[tokio::test]
async fn secrets_are_taken_out_of_definitions_and_errors() {
    let tool = |name: &str| {
        let schema =
            json!({"type": "object", "properties": {"a": {"description": "sesame-open-1234"}}});
        json!({"name": name, "title": "sesame-open-1234", "description": "is sesame-open-1234", "inputSchema": schema})
    };
    let listing = fetched(vec![page(vec![tool("t"), tool("sesame-open-1234")], None)]).await;
    let listing = listing.redacted(&redactor());
    assert_eq!(listing.tools.len(), 1);
    let tool = &listing.tools[0];
    assert_eq!(
        (tool.title.as_deref(), tool.description.as_str()),
        (Some("[secret k]"), "is [secret k]")
    );
    assert_eq!(tool.input_schema["properties"]["a"]["description"], "[secret k]");
    assert_eq!(listing.left_out, ["`[secret k]`: its name holds a secret"]);

    let error =
        CallError::Protocol { code: -32000, message: "sesame-open-1234 is wrong".to_owned() };
    let outcome = redactor().outcome(error.into_outcome());
    let expected = r#"{"error":{"message":"[secret k] is wrong","source":"MCP server"}}"#;
    assert_eq!(outcome.shown().unwrap().text(), expected);
}
