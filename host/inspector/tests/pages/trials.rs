//! Calls that pages make.

use std::sync::Arc;

use cofferdam_inspector::Workbench;
use cofferdam_tool::{ToolDefinition, Toolset};
use serde_json::{Value, json};

use crate::served::{Served, toolset};

/// The sample tools, of which a rule forbids one.
struct Bench(Toolset);

impl Workbench for Bench {
    fn tools(&self) -> Toolset {
        self.0.clone()
    }

    fn forbids(&self, tool: &ToolDefinition, _: &str) -> bool {
        tool.name.as_str() == "fail"
    }

    fn log_id(&self, number: u64) -> Option<String> {
        Some(format!("aaaaaaaa-{number}"))
    }
}

async fn served() -> Served {
    Served::with(Some(Arc::new(Bench(toolset(None))))).await
}

/// Returns the token of the page of a tool.
async fn token(served: &Served, cookie: &str) -> String {
    let headers = [("cookie", cookie), ("sec-fetch-site", "same-origin")];
    let page = served.send("GET", "/tool?name=echo", &headers, "").await.body;
    let (_, rest) = page.split_once("data-token=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

async fn call(served: &Served, cookie: &str, token: &str, body: &Value) -> (u16, String) {
    let reply = served.post("/try", cookie, token, body).await;
    (reply.status, reply.body)
}

fn body(tool: &str, arguments: &str) -> Value {
    json!({"tool": tool, "arguments": arguments, "is_dry_run": false})
}

#[tokio::test]
async fn a_page_calls_a_tool_and_shows_what_a_model_sees() {
    let served = served().await;
    let cookie = served.cookie().await;
    let tools = served.get("/tools").await.body;
    assert!(tools.contains("href=\"/tool?name=echo\""), "{tools}");
    let token = token(&served, &cookie).await;
    let (status, text) =
        call(&served, &cookie, &token, &body("echo", "{\"city\":\"Ulm\u{202e}\"}")).await;
    let result: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &result["outcome"]), (200, &json!("ok")), "{text}");
    assert_eq!(result["text"], json!(r#"{"city":"Ulm\u{202e}","days":3}"#));
    assert_eq!(result["problems"], json!([]));

    let (_, text) = call(&served, &cookie, &token, &body("echo", r#"{"city":7}"#)).await;
    let result: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(result["outcome"], json!("ok"), "numbers become strings: {text}");
    let (_, text) = call(&served, &cookie, &token, &body("echo", r#"{"days":"many"}"#)).await;
    let result: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(result["outcome"], json!("refused"), "{text}");
    assert_eq!(result["problems"][0]["path"], json!("days"), "{text}");
    let (_, text) = call(&served, &cookie, &token, &body("nothing", "{}")).await;
    assert!(text.contains("there is no tool called 'nothing'"), "{text}");
    let (_, text) = call(&served, &cookie, &token, &body("fail", "{}")).await;
    assert!(text.contains("a rule of the configuration forbids this call"), "{text}");
}

#[tokio::test]
async fn only_the_own_pages_call_tools() {
    let served = served().await;
    let (cookie, other) = (served.cookie().await, served.cookie().await);
    let (own, others) = (token(&served, &cookie).await, token(&served, &other).await);
    let echo = body("echo", "{}");
    for token in ["", "login", others.as_str()] {
        assert_eq!(call(&served, &cookie, token, &echo).await.0, 403, "{token}");
    }
    assert_eq!(call(&served, "cofferdam_1=x", &own, &echo).await.0, 401);
    assert_eq!(call(&served, &cookie, &own, &json!({"tool": "echo"})).await.0, 400);
    let long = body("echo", &"x".repeat(5 << 20));
    let (status, text) = call(&served, &cookie, &own, &long).await;
    assert_eq!((status, text.contains("expected at most 4194304 bytes")), (413, true), "{text}");
    assert_eq!(served.get("/try").await.status, 404);
    let headers = [("cookie", cookie.as_str()), ("sec-fetch-site", "same-origin")];
    let head = served.send("HEAD", "/", &headers, "").await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    // An inspector of a log calls nothing.
    let only_log = Served::new().await;
    let cookie = only_log.cookie().await;
    assert_eq!(call(&only_log, &cookie, "x", &echo).await.0, 404);
    assert_eq!(only_log.get("/tool?name=echo").await.status, 404);
}
