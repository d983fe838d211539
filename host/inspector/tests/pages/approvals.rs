//! Approvals and questions that wait, answers of pages, and answers that are not from a page.

use cofferdam_tool::prompt::{PendingPrompts, PromptAnswer, PromptKind};
use serde_json::{Value, json};

use crate::live::{connect, read_until};
use crate::served::{Reply, Served, open_prompt};

/// Returns the page of a prompt, and its token.
async fn page(served: &Served, cookie: &str, id: &str) -> (String, String) {
    let headers = [("cookie", cookie), ("sec-fetch-site", "same-origin")];
    let page = served.send("GET", &format!("/approval?id={id}"), &headers, "").await.body;
    let (_, rest) = page.split_once("data-token=\"").unwrap();
    let token = rest.split('"').next().unwrap().to_owned();
    (page, token)
}

async fn answer(served: &Served, cookie: &str, token: &str, body: &Value) -> Reply {
    served.post("/answer", cookie, token, body).await
}

fn approve(id: &str) -> Value {
    json!({"id": id, "action": "approve"})
}

#[tokio::test]
async fn a_page_shows_a_call_completely_and_approves_it_once() {
    let prompts = PendingPrompts::new(true);
    let served = Served::with_prompts(&prompts).await;
    let arguments = "{\"file\":\"a\u{202e}dm.txt\",\"why\":\"<script>alert(1)</script>\"}";
    let mut open = open_prompt(&prompts, PromptKind::Approval, arguments);
    let id = open.id().to_owned();
    let cookie = served.cookie().await;
    let list = served.get("/approvals").await.body;
    assert!(list.contains(&format!("href=\"/approval?id={id}\"")), "{list}");
    let (page, token) = page(&served, &cookie, &id).await;
    for part in [
        "Allow a call of <bdi>delete</bdi>?",
        "a<span class=\"mark\">\\u{202e}</span>dm.txt",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "A rule asks for approval of this call.",
        "may destroy something",
        "wire 1 as local",
    ] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    assert!(!page.contains('\u{202e}') && !page.contains("<script>"), "{page}");
    // No button works before the script lets it.
    assert_eq!(page.matches("data-answer=").count(), 2);
    assert_eq!(page.matches("\" disabled>").count(), 2, "{page}");

    let taken = answer(&served, &cookie, &token, &approve(&id)).await;
    assert_eq!((taken.status, taken.body.contains("You approved it.")), (200, true), "{taken:?}");
    assert_eq!(open.answer().await, PromptAnswer::Approved);
    for action in ["approve", "deny"] {
        let body = json!({"id": id, "action": action});
        let again = answer(&served, &cookie, &token, &body).await;
        assert_eq!(again.status, 409, "{again:?}");
        assert!(again.body.contains("the prompt was approved in the inspector"), "{again:?}");
    }
    let ended = served.get(&format!("/approval?id={id}")).await;
    assert!(ended.body.contains("This was approved in the inspector."), "{ended:?}");
    assert!(served.get("/approvals").await.body.contains("Nothing waits for you."));
}

#[tokio::test]
async fn a_reason_goes_to_the_call_and_an_answer_elsewhere_ends_the_page() {
    let prompts = PendingPrompts::new(true);
    let served = Served::with_prompts(&prompts).await;
    let cookie = served.cookie().await;
    let mut open = open_prompt(&prompts, PromptKind::Approval, "{}");
    let (_, token) = page(&served, &cookie, open.id()).await;
    let body = json!({"id": open.id(), "action": "deny", "reason": "wrong file"});
    assert_eq!(answer(&served, &cookie, &token, &body).await.status, 200);
    assert_eq!(open.answer().await, PromptAnswer::Denied(Some("wrong file".to_owned())));

    let mut events = connect(&served, "/live/prompts", &cookie).await;
    let open = open_prompt(&prompts, PromptKind::Approval, "{\"secret\":1}");
    let id = open.id().to_owned();
    let shown = read_until(&mut events, &id, 1).await;
    assert!(!shown.contains("secret"), "{shown}");
    assert_eq!(open.withdraw("answered by the client"), None);
    let shown = read_until(&mut events, "answered by the client", 1).await;
    assert!(shown.contains(&id), "{shown}");
    let late = answer(&served, &cookie, &token, &approve(&id)).await;
    assert_eq!(late.status, 409);
    assert!(late.body.contains("the prompt was answered by the client"), "{late:?}");
}

#[tokio::test]
async fn only_the_own_pages_answer() {
    let prompts = PendingPrompts::new(true);
    let served = Served::with_prompts(&prompts).await;
    let open = open_prompt(&prompts, PromptKind::Approval, "{}");
    let (cookie, other) = (served.cookie().await, served.cookie().await);
    let (_, token) = page(&served, &cookie, open.id()).await;
    let (_, others) = page(&served, &other, open.id()).await;
    let body = approve(open.id());
    for wrong in ["", "login", &others] {
        assert_eq!(answer(&served, &cookie, wrong, &body).await.status, 403, "{wrong}");
    }
    assert_eq!(answer(&served, "cofferdam_1=x", &token, &body).await.status, 401);
    let own = format!("http://{}", served.address);
    let (json, site) = (("content-type", "application/json"), ("sec-fetch-site", "same-origin"));
    let sent = [("cookie", cookie.as_str()), ("x-cofferdam", &token)];
    for headers in [
        vec![json, site, ("origin", "https://evil.example")],
        vec![json, site, ("origin", "null")],
        vec![json, site],
        vec![json, ("origin", &own), ("sec-fetch-site", "cross-site")],
        vec![json, ("origin", &own)],
        vec![("content-type", "text/plain"), site, ("origin", &own)],
        vec![json, site, ("origin", &own), ("host", "evil.example")],
    ] {
        let headers = [&sent[..], &headers].concat();
        let reply = served.send("POST", "/answer", &headers, &body.to_string()).await;
        assert_eq!(reply.status, 403, "{headers:?}");
    }
    // Reading an address answers nothing.
    let address = format!("/answer?id={}&action=approve", open.id());
    assert_eq!(served.get(&address).await.status, 404);
    assert_eq!(prompts.waiting().len(), 1);

    for (wrong, status) in [
        (approve("0"), 404),
        (approve(""), 404),
        (json!({"id": open.id(), "action": "grant"}), 400),
        (json!({"id": open.id(), "action": "approve", "always": true}), 400),
        (json!({"id": open.id(), "action": "send", "content": "{}"}), 400),
        (json!({"id": open.id(), "action": "decline"}), 400),
        (json!({"id": open.id(), "action": "deny", "reason": "x".repeat(2 << 20)}), 413),
        (json!([]), 400),
    ] {
        let reply = answer(&served, &cookie, &token, &wrong).await;
        assert_eq!(reply.status, status, "{reply:?}");
    }
    assert_eq!(prompts.waiting().len(), 1);
    assert_eq!(served.get("/approval?id=0").await.status, 404);
}

#[tokio::test]
async fn without_the_right_pages_only_show() {
    let prompts = PendingPrompts::new(false);
    let served = Served::with_prompts(&prompts).await;
    let open = open_prompt(&prompts, PromptKind::Approval, "{}");
    let cookie = served.cookie().await;
    let (page, token) = page(&served, &cookie, open.id()).await;
    assert!(page.contains("--inspector=approve") && !page.contains("data-answer"), "{page}");
    let refused = answer(&served, &cookie, &token, &approve(open.id())).await;
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("prompts can only be seen here"), "{refused:?}");
    assert_eq!(prompts.waiting().len(), 1);

    // An inspector of a log has no prompts.
    let only_log = Served::new().await;
    let cookie = only_log.cookie().await;
    assert_eq!(answer(&only_log, &cookie, "x", &approve(open.id())).await.status, 404);
    assert_eq!(only_log.get("/live/prompts").await.status, 204);
    assert!(only_log.get("/approvals").await.body.contains("No host runs with this inspector."));
}

#[tokio::test]
async fn arguments_that_cannot_be_shown_are_not_approved() {
    let prompts = PendingPrompts::new(true);
    let served = Served::with_prompts(&prompts).await;
    let long = format!("{{\"text\":\"{}\"}}", "\u{202e}x".repeat(3 << 20));
    let open = open_prompt(&prompts, PromptKind::Approval, &long);
    let cookie = served.cookie().await;
    let (page, token) = page(&served, &cookie, open.id()).await;
    assert!(page.len() < 2 << 20, "{} bytes", page.len());
    assert!(page.contains("can be denied here, but not approved"));
    assert!(!page.contains("data-answer=\"approve\""));
    let refused = answer(&served, &cookie, &token, &approve(open.id())).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.body.contains("too long to be shown"), "{refused:?}");
    let body = json!({"id": open.id(), "action": "deny"});
    assert_eq!(answer(&served, &cookie, &token, &body).await.status, 200);
}

#[tokio::test]
async fn a_question_has_a_form_whose_values_are_checked() {
    let prompts = PendingPrompts::new(true);
    let served = Served::with_prompts(&prompts).await;
    let cookie = served.cookie().await;
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["name"],
    });
    let mut open = open_prompt(&prompts, PromptKind::Form(schema), "{}");
    let id = open.id().to_owned();
    let (page, token) = page(&served, &cookie, &id).await;
    assert!(page.contains("data-name=\"days\"") && page.contains("data-answer=\"send\""), "{page}");
    let send = |content: &str| json!({"id": id, "action": "send", "content": content});
    for (wrong, path) in [("{}", "name"), (r#"{"name":"a","days":"many"}"#, "days"), ("{", "")] {
        let reply = answer(&served, &cookie, &token, &send(wrong)).await;
        assert_eq!(reply.status, 422, "{reply:?}");
        let problems: Value = serde_json::from_str(&reply.body).unwrap();
        assert_eq!(problems["problems"][0]["path"], json!(path), "{problems}");
    }
    let taken = answer(&served, &cookie, &token, &send(r#"{"name":"Ada","days":2}"#)).await;
    assert_eq!(taken.status, 200, "{taken:?}");
    assert_eq!(open.answer().await, PromptAnswer::Filled(json!({"name": "Ada", "days": 2})));

    // A schema that cannot be decoded has no form, but can be refused.
    let mut open = open_prompt(&prompts, PromptKind::Form(json!({"type": 7})), "{}");
    let (page, token) = self::page(&served, &cookie, open.id()).await;
    assert!(page.contains("cannot be shown") && !page.contains("id=\"try\""), "{page}");
    let body = json!({"id": open.id(), "action": "decline"});
    assert_eq!(answer(&served, &cookie, &token, &body).await.status, 200);
    assert_eq!(open.answer().await, PromptAnswer::Declined);
}
