//! Views, in one browser: starting one takes longer than most of what is tested.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::json;

use crate::axe::assert_accessible;
use crate::chromium::Browser;
use crate::served::plugin::plugin;
use crate::served::replays::{self, Notes};
use crate::served::review::Review;
use crate::served::{Served, record_calls};
use crate::{approvals, forms, runs, tour};

#[tokio::test(flavor = "multi_thread")]
async fn pages_in_a_browser() {
    let Some(mut browser) = Browser::start() else { return };
    every_view_loads_and_can_be_read(&mut browser).await;
    a_page_is_complete_as_soon_as_its_plugins_are_loaded(&mut browser).await;
    a_recorded_call_runs_again_with_the_keyboard(&mut browser).await;
    calls_appear_as_they_are_recorded_until_the_list_is_paused(&mut browser).await;
    the_keyboard_reaches_everything(&mut browser).await;
    hostile_text_runs_nothing_and_loads_nothing(&mut browser).await;
    the_browser_enforces_the_policy(&mut browser).await;
    forms::a_form_and_its_json_stay_in_step(&mut browser).await;
    forms::a_form_calls_its_tool(&mut browser).await;
    approvals::an_approval_appears_at_once_and_is_answered_with_the_keyboard(&mut browser).await;
    approvals::a_question_is_answered_and_an_answer_elsewhere_ends_it(&mut browser).await;
    runs::a_run_is_shown_as_it_happens(&mut browser).await;
    forms::inputs_are_saved_in_the_browser(&mut browser).await;
    tour::pictures_show_the_pages(&mut browser).await;
    forms::every_schema_has_a_form_whose_value_decodes(&mut browser).await;
}

pub(crate) fn log_in(browser: &mut Browser, served: &Served) {
    browser.open(&served.inspector.login_address().unwrap());
    browser.wait_for("document.querySelector('h1').textContent !== 'Inspector'");
    assert_eq!(browser.value("location.hash"), json!(""));
}

/// Returns the path of the page of the newest call of a tool.
fn path_of(browser: &mut Browser, served: &Served, tool: &str) -> String {
    browser.open(&format!("http://{}/?tool={tool}", served.address));
    let path = browser.value("document.querySelector('tbody a').getAttribute('href')");
    path.as_str().unwrap().to_owned()
}

async fn every_view_loads_and_can_be_read(browser: &mut Browser) {
    let served = Served::with_options(|options| {
        options.grants = Some(Arc::new(|| Ok(Some(vec![plugin()]))));
        options.workflows = Some(Arc::new(Review::default()));
    })
    .await;
    let recorder = served.recorder();
    record_calls(&recorder).await;
    browser.open(&format!("http://{}/", served.address));
    assert_accessible(browser, "the login");
    browser.leave();
    log_in(browser, &served);
    let call = path_of(browser, &served, "echo");
    let failed = path_of(browser, &served, "fail");
    let pages = [
        ("/", "echo"),
        ("/?tool=none", "No recorded call matches."),
        (call.as_str(), "Arguments"),
        (failed.as_str(), "At fault: the tool"),
        ("/tools", "p99"),
        ("/plugins", "sha256:12ab"),
        ("/sessions", "morning"),
        ("/session?name=morning", "echo"),
        ("/events", "once by user"),
        ("/approvals", "No host runs with this inspector."),
        ("/grants", "http https://api.example.com/"),
        ("/workflows", "waits for the user"),
        ("/workflow?name=review&run=0193c0ffee00a1b2c3d4", "Supersteps"),
        ("/health", "Calls by minute: 3 calls"),
    ];
    for (path, text) in pages {
        browser.set_width(1280);
        browser.open(&format!("http://{}{path}", served.address));
        assert!(browser.text().contains(text), "{path}: {}", browser.text());
        assert_accessible(browser, path);
        browser.assert_no_problems(path);
        browser.set_width(640);
        let overflow = "document.documentElement.scrollWidth > innerWidth";
        assert_eq!(browser.value(overflow), json!(false), "{path} at 200 % zoom");
    }
    browser.set_width(1280);
    browser.open(&format!("http://{}/nothing", served.address));
    assert!(browser.text().contains("there is no such page"), "{}", browser.text());
    assert_accessible(browser, "a missing page");
    // The console has the status of the response.
    assert!(browser.take_problems().contains("404"));
    let own = format!("http://{}/", served.address);
    let is_own = |request: &String| request.starts_with(&own) || request.starts_with("about:");
    let requests = browser.take_requests();
    assert!(requests.iter().all(is_own), "{requests:?}");
    browser.leave();
    // The key is in the address that was opened, and in no request.
    let of_keys = requests.iter().filter(|request| request.contains("k="));
    assert_eq!(of_keys.count(), 0, "{requests:?}");
}

async fn a_page_is_complete_as_soon_as_its_plugins_are_loaded(browser: &mut Browser) {
    let is_loaded = Arc::new(AtomicBool::new(false));
    let loaded = Arc::clone(&is_loaded);
    let served = Served::with_options(|options| {
        let grants = move || Ok(loaded.load(Relaxed).then(|| vec![plugin()]));
        options.grants = Some(Arc::new(grants));
    })
    .await;
    log_in(browser, &served);
    browser.open(&format!("http://{}/grants", served.address));
    assert!(browser.text().contains("The plugins are loading."), "{}", browser.text());
    assert_accessible(browser, "grants that are loading");
    assert_eq!(browser.value("document.querySelectorAll('table').length"), json!(0));
    is_loaded.store(true, Relaxed);
    browser.wait_for("document.querySelector('table')");
    browser.assert_no_problems("grants");
    browser.leave();
}

async fn a_recorded_call_runs_again_with_the_keyboard(browser: &mut Browser) {
    let replayer = Arc::new(Notes::default());
    let served = Served::with_options(|options| options.replayer = Some(replayer)).await;
    replays::record(&served, &["sha256:0001", "sha256:0002"]).await;
    log_in(browser, &served);
    let path = path_of(browser, &served, "echo");
    browser.open(&format!("http://{}{path}", served.address));
    let outcome =
        |text: &str| format!("document.getElementById('replay-outcome').textContent === '{text}'");
    browser.value("document.getElementById('replay-component').selectedIndex = 1");
    browser.value("document.querySelector('#replay button').focus()");
    browser.press("Enter");
    browser.wait_for(&outcome("differs"));
    let differences = "document.getElementById('replay-differences').textContent";
    assert_eq!(browser.value(differences), json!("result: <i>1</i> \\u{1b}[2J → 2"));
    browser.value("document.getElementById('replay-component').selectedIndex = 0");
    browser.wait_for("document.activeElement.textContent === 'Run again'");
    browser.press(" ");
    browser.wait_for(&outcome("cannot be replayed"));
    assert_accessible(browser, "replay");
    browser.assert_no_problems("replay");
    browser.leave();
}

async fn calls_appear_as_they_are_recorded_until_the_list_is_paused(browser: &mut Browser) {
    let served = Served::new().await;
    let recorder = served.recorder();
    record_calls(&recorder).await;
    log_in(browser, &served);
    let rows = |count: u32| format!("document.querySelectorAll('tbody tr').length === {count}");
    browser.wait_for(&rows(3));
    browser.wait_for("document.getElementById('live-state').textContent === 'Live.'");
    record_calls(&recorder).await;
    browser.wait_for(&rows(6));
    browser.wait_for("document.getElementById('live-news').textContent === '3 new calls'");
    browser.value("document.getElementById('live-pause').focus()");
    browser.press(" ");
    browser.wait_for("document.getElementById('live-pause').ariaPressed === 'true'");
    record_calls(&recorder).await;
    std::thread::sleep(std::time::Duration::from_millis(700));
    assert_eq!(browser.value(&rows(6)), json!(true));
    assert_eq!(
        browser.value("document.getElementById('live-state').textContent"),
        json!("Paused.")
    );
    // Calls that were missed come when the list goes on.
    browser.press(" ");
    browser.wait_for(&rows(9));
    browser.assert_no_problems("live");
    browser.leave();
}

async fn the_keyboard_reaches_everything(browser: &mut Browser) {
    let served = Served::new().await;
    record_calls(&served.recorder()).await;
    log_in(browser, &served);
    browser.wait_for("!document.getElementById('live-pause').hidden");
    let focused = "(() => { const e = document.activeElement; const s = getComputedStyle(e); \
                   return [e.textContent.trim() || e.name, s.outlineStyle, s.outlineWidth] })()";
    let mut names = Vec::new();
    for _ in 0..40 {
        browser.press("Tab");
        // Behind the last control, the focus leaves the page.
        if browser.value("document.activeElement === document.body") == json!(true) {
            break;
        }
        let state = browser.value(focused);
        assert_eq!(state[1], json!("solid"), "no visible focus: {state}");
        names.push(state[0].clone());
    }
    for name in
        ["Skip to content", "Tools", "Health", "tool", "refused", "Filter", "Pause", "echo", "fail"]
    {
        assert!(names.contains(&json!(name)), "{name} is not in {names:?}");
    }
    browser.value("document.querySelector('[name=tool]').focus()");
    browser.type_text("echo");
    browser.press("Enter");
    browser.wait_for("location.search.includes('tool=echo') && document.querySelectorAll('tbody tr').length === 1");
    browser.value("document.querySelector('tbody a').focus()");
    browser.press("Enter");
    browser
        .wait_for("location.pathname.startsWith('/call/') && document.readyState === 'complete'");
    browser.assert_no_problems("keyboard");
    browser.leave();
}

async fn hostile_text_runs_nothing_and_loads_nothing(browser: &mut Browser) {
    let text = "<script>alert(1)</script><img src=http://192.0.2.1/x onerror=alert(1)>\u{202e}\
                javascript:alert(1)";
    let served = Served::with_options(|options| {
        let mut grants = plugin();
        grants.plugin = text.to_owned();
        options.grants = Some(Arc::new(move || Ok(Some(vec![grants.clone()]))));
        options.workflows = Some(Arc::new(Review { suffix: text.to_owned(), ..Review::default() }));
    })
    .await;
    served.write_lines(&[json!({
        "v": 1, "kind": "call", "tool": text, "plugin": text, "outcome": "error", "session": text,
        "n": 1, "at": "2026-11-20T08:00:00.000000Z", "id": "aaaaaaaa-1", "call": text, "us": 9,
        "error": text, "refused": [{"capability": text, "times": 1, "reason": text}],
        "files": [{"mount": text, "path": text, "what": "created", "bytes": 1}],
    })]);
    log_in(browser, &served);
    let name = "review%3Cscript%3Ealert(1)%3C%2Fscript%3E%3Cimg%20src%3Dhttp%3A%2F%2F192.0.2.1%2Fx%20\
                onerror%3Dalert(1)%3E%E2%80%AEjavascript%3Aalert(1)";
    let run = format!("/workflow?name={name}&run=0193c0ffee00a1b2c3d4");
    for path in [
        "/",
        "/call/aaaaaaaa-1",
        "/tools?since=all",
        "/sessions?since=all",
        "/grants",
        "/workflows",
        run.as_str(),
    ] {
        browser.open(&format!("http://{}{path}", served.address));
        assert!(browser.text().contains("<script>alert(1)</script>"), "{path}");
        assert_eq!(
            browser.value("document.querySelectorAll('main img, main script').length"),
            json!(0)
        );
        browser.assert_no_problems(path);
    }
    let links = "[...document.links].filter((link) => link.protocol !== 'http:').length";
    assert_eq!(browser.value(links), json!(0));
    let requests = browser.take_requests();
    browser.leave();
    assert!(
        !requests.iter().any(|request| request.starts_with("http://192.0.2.1")),
        "{requests:?}"
    );
}

async fn the_browser_enforces_the_policy(browser: &mut Browser) {
    let served = Served::new().await;
    record_calls(&served.recorder()).await;
    log_in(browser, &served);
    browser.assert_no_problems("before");
    // Markup from a string, a script in the page, a style, an image and a request elsewhere.
    let attempts = [
        "try { document.body.innerHTML = '<b>x</b>'; 'done' } catch (error) { error.name }",
        "(() => { const s = document.createElement('style'); s.textContent = 'main { width: 1px }'; \
         document.head.append(s); return document.querySelector('main').offsetWidth > 1 ? 'TypeError' : 'done' })()",
        "fetch('http://192.0.2.1/').then(() => 'done', (error) => error.name)",
        "fetch('/live', { method: 'POST' }).then((answer) => (answer.ok ? 'done' : 'TypeError'))",
    ];
    for attempt in attempts {
        assert_eq!(browser.value(attempt), json!("TypeError"), "{attempt}");
    }
    let problems = browser.take_problems();
    assert!(
        problems.contains("Content Security Policy") || problems.contains("TrustedHTML"),
        "{problems}"
    );
    // Another page cannot show this one in a frame, nor read it.
    let other = Served::new().await;
    browser.open(&format!("http://{}/", other.address));
    let foreign = format!("http://{}/", served.address);
    let read = format!("fetch('{foreign}').then(() => 'done', (error) => error.name)");
    assert_eq!(browser.value(&read), json!("TypeError"));
    // Back at the first page, the cookie still holds.
    browser.open(&foreign);
    assert!(browser.text().contains("echo"));
    browser.leave();
    browser.take_problems();
}
