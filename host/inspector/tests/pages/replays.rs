//! Replays that pages ask for.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::served::Served;
use crate::served::replays::{Notes, record};

async fn post(served: &Served, cookie: &str, token: &str, body: &Value) -> (u16, String) {
    let reply = served.post("/replay", cookie, token, body).await;
    (reply.status, reply.body)
}

/// Returns the ids of the calls, the newest first.
async fn ids(served: &Served) -> Vec<String> {
    let list = served.get("/").await.body;
    let ids = list.split("data-id=\"").skip(1);
    ids.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_recorded_call_runs_again_in_the_component_that_is_chosen() {
    let notes = Arc::new(Notes::default());
    let replayer = Arc::clone(&notes);
    let served = Served::with_options(|options| options.replayer = Some(replayer)).await;
    record(&served, &["sha256:0001", "sha256:0002"]).await;
    let ids = ids(&served).await;
    let (newer, older) = (&ids[0], &ids[1]);
    let cookie = served.cookie().await;
    let headers = [("cookie", cookie.as_str()), ("sec-fetch-site", "same-origin")];
    let page = served.send("GET", &format!("/call/{newer}"), &headers, "").await.body;
    assert!(page.contains("<option value=\"configured\">"), "{page}");
    assert!(
        page.contains(&format!("<option value=\"{older}\">another version: sha256:0001")),
        "{page}"
    );
    let (_, token) = page.split_once("data-token=\"").unwrap();
    let token = token.split('"').next().unwrap();
    let order = |component: &str| json!({"call": newer, "component": component});

    let (status, text) = post(&served, &cookie, token, &order("recorded")).await;
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &answer["outcome"]), (200, &json!("identical")), "{text}");
    assert_eq!(answer["notes"][0], json!("1.0 ms of CPU time when it was recorded, now 2.0 ms"));
    assert_eq!(answer["notes"][1], json!("The replay is approximate: a clock"));
    let (_, text) = post(&served, &cookie, token, &order(older)).await;
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["outcome"], json!("differs"), "{text}");
    assert_eq!(answer["differences"][0], json!("result: <i>1</i> \\u{1b}[2J → 2"));
    let (_, text) = post(&served, &cookie, token, &order("configured")).await;
    assert!(text.contains("the file <b>\\\\u{202e}</b> is missing"), "{text}");
    let asked = notes.0.lock().unwrap().clone();
    assert_eq!(asked, ["echo in sha256:0002", "echo in sha256:0001", "echo in configured"]);

    let (_, text) = post(&served, &cookie, token, &order("00000000-1")).await;
    assert!(text.contains("cannot be replayed"), "{text}");
}

#[tokio::test]
async fn only_the_own_pages_replay_calls() {
    let notes = Arc::new(Notes::default());
    let replayer = Arc::clone(&notes);
    let served = Served::with_options(|options| options.replayer = Some(replayer)).await;
    record(&served, &["sha256:0001"]).await;
    let order = json!({"call": ids(&served).await[0], "component": "recorded"});
    let cookie = served.cookie().await;
    for token in ["", "login", "0000"] {
        assert_eq!(post(&served, &cookie, token, &order).await.0, 403, "{token}");
    }
    assert_eq!(post(&served, "cofferdam_1=x", "", &order).await.0, 401);
    assert!(notes.0.lock().unwrap().is_empty());
    assert_eq!(served.get("/replay").await.status, 404);
    // Without a replayer, there is no button.
    let only_log = Served::new().await;
    record(&only_log, &["sha256:0001"]).await;
    let page = only_log.get(&format!("/call/{}", ids(&only_log).await[0])).await.body;
    assert!(!page.contains("id=\"replay\"") && page.contains("cofferdam replay "), "{page}");
    let cookie = only_log.cookie().await;
    assert_eq!(post(&only_log, &cookie, "", &order).await.0, 404);
}
