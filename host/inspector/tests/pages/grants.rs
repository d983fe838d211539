//! The page of grants, and that of health.

use std::sync::Arc;

use cofferdam_inspector::{HostLoad, Workbench};
use cofferdam_tool::Toolset;
use serde_json::json;

use crate::served::plugin::plugin;
use crate::served::{Served, record_many, toolset};

/// A call of today that contacted a host and was refused another.
fn line(n: u64) -> serde_json::Value {
    let at = cofferdam_record::UtcTime::now().to_string();
    json!({
        "v": 1, "kind": "call", "tool": "fetch", "plugin": "web", "outcome": "ok", "n": n,
        "at": at, "id": format!("aaaaaaaa-{n}"), "us": 10,
        "refused": [
            {"capability": "http:GET https://new.example.com/x", "times": 1},
            {"capability": "clock:precise", "times": 1},
        ],
        "hosts": [{"host": "api.example.com", "port": 443, "requests": 1}],
    })
}

/// Returns the cells of a row by its head.
fn row<'p>(page: &'p str, head: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!("<bdi>{head}</bdi></th>")).unwrap();
    rest.split("</tr>").next().unwrap()
}

#[tokio::test]
async fn grants_are_compared_with_what_calls_used() {
    let served = Served::with_options(|options| {
        options.grants = Some(Arc::new(|| Ok(Some(vec![plugin()]))))
    })
    .await;
    served.write_lines(&[line(1), line(2)]);
    let page = served.get("/grants").await.body;
    let used = row(&page, "http https://api.example.com/");
    assert!(used.contains("2 calls, last <time"), "{used}");
    assert!(
        used.contains("data-copy=\"cofferdam revoke web 'http:https://api.example.com/'"),
        "{used}"
    );
    let unused = row(&page, "http https://old.example.com/");
    assert!(unused.contains("<strong>never used</strong>"), "{unused}");
    let missing = row(&page, "http https://new.example.com/");
    assert!(missing.contains("2 calls, last"), "the refusals: {missing}");
    assert!(
        missing.contains("data-copy=\"cofferdam grant web 'http:https://new.example.com/'"),
        "{missing}"
    );
    assert!(!missing.contains("never used"), "{missing}");
    assert!(row(&page, "environment LANG").contains("not recorded"));
    // What no permission is about.
    let (_, others) = page.split_once("asked for in no manifest").unwrap();
    assert!(others.contains("clock:precise") && !others.contains("new.example.com"), "{others}");
}

#[tokio::test]
async fn without_a_host_the_page_has_what_calls_used() {
    let served = Served::new().await;
    let empty = served.get("/grants").await.body;
    assert!(empty.contains("No plugin is known."), "{empty}");
    served.write_lines(&[line(1)]);
    let page = served.get("/grants").await.body;
    assert!(page.contains("inspect --web --config"), "{page}");
    assert!(
        page.contains("cofferdam grant web &#39;http:GET")
            || page.contains("cofferdam grant web 'http:GET"),
        "{page}"
    );
    let failing = Served::with_options(|options| {
        options.grants = Some(Arc::new(|| Err("no <b>file</b>".to_owned())))
    })
    .await;
    let page = failing.get("/grants").await.body;
    assert!(page.contains("no &lt;b&gt;file&lt;/b&gt;"), "{page}");
}

#[tokio::test]
async fn plugins_that_are_loading_are_no_reason_to_wait() {
    let served = Served::with_options(|options| options.grants = Some(Arc::new(|| Ok(None)))).await;
    served.write_lines(&[line(1)]);
    let page = served.get("/grants").await.body;
    assert!(page.contains("The plugins are loading."), "{page}");
    assert!(page.contains("was called 1 time"), "{page}");
}

#[tokio::test]
async fn hostile_names_of_permissions_stay_text() {
    let hostile = "<script>alert(1)</script>\u{202e}\u{1b}[2J";
    let mut grants = plugin();
    grants.plugin = hostile.to_owned();
    grants.problem = Some(hostile.to_owned());
    for permission in &mut grants.permissions {
        permission.subject = hostile.repeat(1_000_000 / hostile.len());
        permission.asked = hostile.to_owned();
        permission.grant_command = Some(format!("cofferdam {hostile}"));
    }
    let served = Served::with_options(|options| {
        options.grants = Some(Arc::new(move || Ok(Some(vec![grants.clone()]))))
    })
    .await;
    let mut call = line(1);
    call["plugin"] = json!(hostile);
    call["refused"] = json!([{"capability": hostile, "times": 1}]);
    served.write_lines(&[call]);
    let page = served.get("/grants").await.body;
    assert!(!page.contains("<script>alert") && page.len() < 1 << 20, "{} bytes", page.len());
    for hidden in ['\u{202e}', '\u{1b}'] {
        assert!(!page.contains(hidden));
    }
    // A command with hidden characters cannot be copied.
    assert!(!page.contains("data-copy=\"cofferdam &lt;script"), "{page}");
}

/// Tools of a host that is half busy.
struct Bench(Toolset);

impl Workbench for Bench {
    fn tools(&self) -> Toolset {
        self.0.clone()
    }

    fn load(&self) -> Option<HostLoad> {
        let memory_bytes_max = 1 << 30;
        Some(HostLoad {
            calls: 4,
            calls_max: 64,
            waiting: 2,
            waiting_max: 512,
            memory_bytes: 3 << 20,
            memory_bytes_max,
        })
    }
}

#[tokio::test]
async fn health_draws_the_last_hour_with_its_content_in_words() {
    let served = Served::with(Some(Arc::new(Bench(toolset(None))))).await;
    record_many(&served.recorder(), 5).await;
    let page = served.get("/health").await.body;
    for part in [
        "Permits in use</th><td class=\"number\">4 of 64",
        "Calls that wait</th><td class=\"number\">2 of 512",
        "3.0 MiB of 1024.0 MiB",
        "<svg class=\"chart\" role=\"img\" aria-labelledby=\"calls-chart\"",
        "Calls by minute: 15 calls, 5 errors, at most",
        "Durations by minute: p50 ",
        "class=\"errors\"",
    ] {
        assert!(page.contains(part), "{part} is missing in {page}");
    }
    // The table has the same, for readers of the page who do not see it.
    let (_, table) = page.split_once("As a table").unwrap();
    assert!(table.contains("<th scope=\"col\">p99</th>"), "{table}");
    assert!(!page.contains("style="), "{page}");
}
