//! Runs of workflows as they happen.

use std::sync::Arc;

use cofferdam_inspector::{RunProgress, RunQuestion};
use serde_json::json;

use crate::axe::assert_accessible;
use crate::chromium::Browser;
use crate::served::Served;
use crate::served::review::Review;
use crate::views::log_in;

/// Returns an expression that is true if the graph and the table show these states.
fn states(expected: [&str; 4]) -> String {
    let expected = json!(expected);
    format!(
        "JSON.stringify([...document.querySelectorAll('.graph [data-executor]')].map((node) => \
         node.getAttribute('class'))) === '{expected}' && JSON.stringify([...document\
         .querySelectorAll('td.state')].map((cell) => cell.dataset.state)) === '{expected}'"
    )
}

fn text_of(id: &str) -> String {
    format!("document.getElementById('{id}').textContent")
}

pub(crate) async fn a_run_is_shown_as_it_happens(browser: &mut Browser) {
    let progress = RunProgress::new("review");
    let review = Review { progress: Some(progress.clone()), ..Review::default() };
    let served = Served::with_options(|options| options.workflows = Some(Arc::new(review))).await;
    log_in(browser, &served);
    browser.open(&format!("http://{}/workflows", served.address));
    browser.value("document.querySelector('tbody a').focus()");
    browser.press("Enter");
    browser.wait_for(&format!("{} === 'Live.'", text_of("live-state")));
    assert_eq!(browser.value(&states(["idle"; 4])), json!(true));

    progress.superstep_started(1);
    progress.executor_started("writer");
    browser.wait_for(&states(["running", "idle", "idle", "idle"]));
    browser.wait_for(&format!("{} === 'runs writer'", text_of("run-state")));
    assert_accessible(browser, "a run");
    progress.executor_completed("writer");
    progress.superstep_completed(Some("0193c0ffee00a1b2c3d4-000001".to_owned()));
    progress.superstep_started(2);
    progress.executor_started("approve");
    browser.wait_for(&states(["ran", "idle", "running", "idle"]));
    let supersteps = "[...document.querySelectorAll('#run-supersteps tbody tr')].map((row) => \
                      row.innerText.trim().replaceAll('\\t', '|')).join(' ')";
    let expected = "1|writer|approve|0193c0ffee00a1b2c3d4-000001 2|approve|runs approve";
    assert_eq!(browser.value(supersteps), json!(expected));
    let title = "document.querySelector('.graph .running title').textContent";
    assert_eq!(browser.value(title), json!("approve: runs now"));

    // A page in the background gets no updates, and catches up.
    let show = |hidden: bool| {
        format!(
            "Object.defineProperty(document, 'hidden', {{ value: {hidden}, configurable: true }}); \
             document.dispatchEvent(new Event('visibilitychange'))"
        )
    };
    browser.value(&show(true));
    let (executor, id) = ("approve".to_owned(), "approve-1".to_owned());
    progress.asked(RunQuestion { executor, id, prompt: "<b>Print\u{202e}?</b>".to_owned() });
    progress.executor_completed("approve");
    progress.superstep_completed(None);
    std::thread::sleep(std::time::Duration::from_millis(600));
    assert_eq!(browser.value(&states(["ran", "idle", "running", "idle"])), json!(true));
    browser.value(&show(false));
    browser.wait_for(&states(["ran", "idle", "asking", "idle"]));
    let question = "document.querySelector('#run-questions pre').textContent";
    assert_eq!(browser.value(question), json!("<b>Print\\u{202e}?</b>"));
    let news = "Superstep 2: waits for the user at approve";
    browser.wait_for(&format!("{} === '{news}'", text_of("live-news")));
    assert_accessible(browser, "a run that waits");

    // Pause holds the page as it is.
    browser.value("document.getElementById('live-pause').focus()");
    browser.press(" ");
    browser.wait_for(&format!("{} === 'Paused.'", text_of("live-state")));
    progress.answered("approve-1");
    progress.superstep_started(3);
    progress.executor_started("printer");
    progress.executor_failed("printer");
    progress.ended("failed: no paper");
    std::thread::sleep(std::time::Duration::from_millis(600));
    assert_eq!(browser.value(&states(["ran", "idle", "asking", "idle"])), json!(true));
    browser.press(" ");
    browser.wait_for(&states(["ran", "idle", "ran", "failed"]));
    assert_eq!(browser.value(&text_of("run-state")), json!("failed: no paper"));
    assert_eq!(browser.value(&text_of("run-questions")), json!(""));
    assert_eq!(browser.value(&text_of("live-state")), json!("This run is over."));
    browser.assert_no_problems("run");
    browser.leave();
}
