//! Names, arguments, results and files that try to become markup, or to deceive the reader.

use serde_json::json;

use crate::served::Served;

const SCRIPT: &str =
    "<script>alert(1)</script><img src=x onerror=alert(1)>\"'><svg/onload=alert(1)>";
const LINK: &str = "javascript:alert(1)";
const HIDDEN: &str = "invoice\u{202e}fdp.exe\u{200b}\u{1b}]0;title\u{7}\u{9b}31m\u{e0041}";

fn line(n: u64, text: &str) -> serde_json::Value {
    json!({
        "v": 1, "kind": "call", "tool": text, "plugin": text, "outcome": "ok", "session": text,
        "n": n, "at": "2026-11-20T08:00:00.000000Z", "id": format!("aaaaaaaa-{n}"), "call": text,
        "source": text, "digest": text, "principal": text, "client": text, "us": 1000,
        "error": text, "label": text, "run_us": 500,
        "refused": [{"capability": text, "times": 1, "reason": text}],
        "files": [{"mount": text, "path": text, "what": "created", "bytes": 1}],
        "hosts": [{"host": text, "port": 80, "requests": 1}],
    })
}

#[tokio::test]
async fn text_of_untrusted_parties_stays_text() {
    let served = Served::new().await;
    served.write_lines(&[line(1, SCRIPT), line(2, LINK), line(3, HIDDEN)]);
    let session = "/session?name=%3Cscript%3Ealert%281%29%3C%2Fscript%3E";
    for path in [
        "/",
        "/call/aaaaaaaa-1",
        "/call/aaaaaaaa-2",
        "/call/aaaaaaaa-3",
        "/tools?since=all",
        "/plugins?since=all",
        "/sessions?since=all",
        session,
        "/?tool=%22%3E%3Cscript%3Ealert%281%29%3C%2Fscript%3E&refused=%3Cscript%3E",
    ] {
        let body = served.get(path).await.body;
        for markup in ["<script>", "<img", "<svg/", "href=\"javascript", " onerror=alert(1)>\""] {
            assert!(!body.contains(markup), "{path} has {markup}: {body}");
        }
        // Scripts are files of this server only, and styles are not inline.
        assert_eq!(
            body.matches("<script").count(),
            body.matches("<script type=\"module\" src=\"/assets/").count(),
            "{path}"
        );
        assert!(!body.contains("style=") && !body.contains("<style"), "{path}");
        for hidden in ['\u{202e}', '\u{200b}', '\u{1b}', '\u{7}', '\u{9b}', '\u{e0041}'] {
            assert!(!body.contains(hidden), "{path} has {}", hidden.escape_unicode());
        }
    }
    let hidden = served.get("/call/aaaaaaaa-3").await.body;
    assert!(hidden.contains("<span class=\"mark\">\\u{202e}</span>fdp.exe"), "{hidden}");
    assert!(served.get("/").await.body.contains("invoice\\u{202e}fdp.exe"));
}

#[tokio::test]
async fn long_text_is_cut_with_a_note() {
    let served = Served::new().await;
    let long = "<b>ü\u{202e}".repeat(400_000);
    let capped = |n| {
        let mut entry = line(n, "tool");
        entry["error"] = json!("e".repeat(100_000));
        entry["files"] = json!(vec![
            json!({"mount": "m", "path": "p".repeat(5000), "what": "changed", "bytes": 1});
            900
        ]);
        entry
    };
    served.write_lines(&[line(1, long.get(..400_000).unwrap()), capped(2)]);
    for path in
        ["/", "/call/aaaaaaaa-1", "/call/aaaaaaaa-2", "/tools?since=all", "/sessions?since=all"]
    {
        let body = served.get(path).await.body;
        assert!(body.len() < 1 << 20, "{path} has {} bytes", body.len());
        assert!(body.contains(" more bytes"), "{path}");
    }
    let listed = served.get("/call/aaaaaaaa-2").await.body;
    assert!(listed.contains("<p>700 more</p>"));
}

#[tokio::test]
async fn a_result_of_ten_megabytes_is_cut_on_the_page() {
    use std::sync::Arc;

    use cofferdam_tool::declaration::Declaration;
    use cofferdam_tool::sink::CallSink;
    use cofferdam_tool::{CallContext, Functions, Toolset};

    let served = Served::new().await;
    let recorder = served.recorder();
    let declaration = Declaration::new("flood", "A tool.", r#"{"type":"object"}"#);
    let functions = Functions::new("samples")
        .with(declaration, async |_, _| Ok(json!("<script>\u{202e}".repeat(1_000_000))))
        .unwrap();
    let mut toolset = Toolset::new();
    toolset.set_sink(Arc::clone(&recorder) as Arc<dyn CallSink>);
    toolset.add(Arc::new(functions)).unwrap();
    let _ = toolset.call("flood", Some(b"{}"), &CallContext::new("1")).await;
    recorder.close();
    let list = served.get("/").await.body;
    let (_, rest) = list.split_once("href=\"/call/").unwrap();
    let page = served.get(&format!("/call/{}", rest.split('"').next().unwrap())).await.body;
    assert!(page.len() < 1 << 20, "{} bytes", page.len());
    assert!(page.contains(" more bytes") && !page.contains("<script>"));
}

#[tokio::test]
async fn commands_and_cases_hide_nothing() {
    use std::sync::Arc;

    use cofferdam_tool::CallContext;

    use crate::served::toolset;

    let served = Served::new().await;
    let recorder = served.recorder();
    let tools = toolset(Some(&recorder));
    let city = json!({"city": format!("{SCRIPT}{HIDDEN}"), "'; id; '": "$(id)"}).to_string();
    let _ = tools.call("echo", Some(city.as_bytes()), &CallContext::new("1")).await;
    let long = json!({"city": "x".repeat(70_000)}).to_string();
    let _ = tools.call("echo", Some(long.as_bytes()), &CallContext::new("2")).await;
    Arc::clone(&recorder).close();
    let list = served.get("/").await.body;
    let mut calls = list.split("href=\"/call/").skip(1).map(|rest| rest.split('"').next().unwrap());
    let long = served.get(&format!("/call/{}", calls.next().unwrap())).await.body;
    assert!(long.contains("too long for a command line"), "{long}");
    assert!(!long.contains("as-case"));
    let page = served.get(&format!("/call/{}", calls.next().unwrap())).await.body;
    assert!(!page.contains("<script>alert") && !page.contains('\u{202e}'), "{page}");
    // Both are copied as they are seen: hidden characters are escapes of JSON.
    let (_, case) = page.split_once("<pre id=\"as-case\"").unwrap();
    let (case, _) = case.split_once("</pre>").unwrap();
    assert!(
        case.contains("invoice\\u202efdp.exe\\u200b") && !case.contains("class=\"mark\""),
        "{case}"
    );
    assert!(page.contains("data-copy-from=\"as-case\""));
    assert!(page.contains("data-copy-from=\"as-command\""));
}
