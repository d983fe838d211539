//! Approvals that are answered with the keyboard.

use std::time::{Duration, Instant};

use cofferdam_tool::prompt::{PendingPrompts, PromptAnswer, PromptKind};
use serde_json::json;

use crate::axe::assert_accessible;
use crate::chromium::Browser;
use crate::served::{Served, open_prompt, record_calls};
use crate::views::log_in;

fn button(action: &str) -> String {
    format!("document.querySelector('[data-answer={action}]')")
}

pub(crate) async fn an_approval_appears_at_once_and_is_answered_with_the_keyboard(
    browser: &mut Browser,
) {
    let prompts = PendingPrompts::new(true);
    let served = Served::with_prompts(&prompts).await;
    record_calls(&served.recorder()).await;
    log_in(browser, &served);
    assert_eq!(browser.value("document.title"), json!("Calls · cofferdam"));
    let mut open = open_prompt(&prompts, PromptKind::Approval, r#"{"file":"a.md"}"#);
    browser.wait_for("document.title === '(1) Calls · cofferdam'");
    assert!(browser.text().contains("Approvals (1)"), "{}", browser.text());
    browser.value("document.querySelector('nav a[href=\"/approvals\"]').focus()");
    browser.press("Enter");
    browser.wait_for("document.querySelector('#waiting tbody a')");
    assert_accessible(browser, "the list of approvals");
    browser.value("document.querySelector('#waiting tbody a').focus()");
    browser.press("Enter");
    browser.wait_for(&button("approve"));
    // The button works after a second, and not before.
    let opened = Instant::now();
    if browser.value(&format!("{}.disabled", button("approve"))) == json!(false) {
        assert!(opened.elapsed() > Duration::from_millis(500), "the button worked at once");
    }
    assert_eq!(prompts.waiting().len(), 1);
    browser.wait_for(&format!("!{}.disabled", button("approve")));
    assert_accessible(browser, "an approval");
    // Enter in the field presses no button.
    browser.value("document.getElementById('reason').focus()");
    browser.press("Enter");
    assert_eq!(prompts.waiting().len(), 1);
    browser.value(&format!("{}.focus()", button("approve")));
    browser.press("Enter");
    assert_eq!(open.answer().await, PromptAnswer::Approved);
    browser.wait_for("document.getElementById('answer-state').textContent.includes('approved')");
    browser.wait_for("document.title === 'Approval · cofferdam'");
    browser.assert_no_problems("approval");
    browser.leave();
}

pub(crate) async fn a_question_is_answered_and_an_answer_elsewhere_ends_it(browser: &mut Browser) {
    let prompts = PendingPrompts::new(true);
    let served = Served::with_prompts(&prompts).await;
    log_in(browser, &served);
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    });
    let mut open = open_prompt(&prompts, PromptKind::Form(schema.clone()), "{}");
    browser.open(&format!("http://{}/approval?id={}", served.address, open.id()));
    browser.value("document.querySelector('[data-name=city] [data-role=value]').select()");
    browser.type_text("Ulm");
    browser.wait_for(&format!("!{}.disabled", button("send")));
    assert_accessible(browser, "a question");
    browser.value(&format!("{}.focus()", button("send")));
    browser.press("Enter");
    assert_eq!(open.answer().await, PromptAnswer::Filled(json!({"city": "Ulm"})));

    let open = open_prompt(&prompts, PromptKind::Form(schema), "{}");
    browser.open(&format!("http://{}/approval?id={}", served.address, open.id()));
    browser.wait_for(&format!("!{}.disabled", button("decline")));
    open.withdraw("answered by the client");
    let state = "document.getElementById('answer-state').textContent";
    browser.wait_for(&format!("{state} === 'This was answered by the client.'"));
    assert_eq!(browser.value(&format!("{}.disabled", button("decline"))), json!(true));
    browser.assert_no_problems("question");
    browser.leave();
}
