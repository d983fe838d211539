//! Forms of tools.

use std::sync::Arc;

use cofferdam_inspector::Workbench;
use cofferdam_tool::Toolset;
use serde_json::{Value, json};

use crate::chromium::Browser;
use crate::served::{Served, toolset};
use crate::views::{LOW_CONTRAST, UNNAMED, log_in};

/// The sample tools.
struct Bench(Toolset);

impl Workbench for Bench {
    fn tools(&self) -> Toolset {
        self.0.clone()
    }
}

/// Opens the form of a tool.
async fn open(browser: &mut Browser) -> Served {
    let served = Served::with(Some(Arc::new(Bench(toolset(None))))).await;
    log_in(browser, &served);
    browser.open(&format!("http://{}/tool?name=echo", served.address));
    browser.wait_for("document.getElementById('editor').value !== ''");
    served
}

/// Returns an expression for the part of a field with a role.
fn part(name: &str, role: &str) -> String {
    format!("document.querySelector('[data-name={name}] [data-role={role}]')")
}

fn editor(browser: &mut Browser) -> Value {
    let text = browser.value("document.getElementById('editor').value");
    serde_json::from_str(text.as_str().unwrap()).unwrap()
}

fn type_into(browser: &mut Browser, name: &str, text: &str) {
    browser.value(&format!("{}.select()", part(name, "value")));
    browser.type_text(text);
}

pub(crate) async fn a_form_and_its_json_stay_in_step(browser: &mut Browser) {
    let _served = open(browser).await;
    assert_eq!(editor(browser), json!({"days": 3}));
    for scheme in ["light", "dark"] {
        browser.set_color_scheme(scheme);
        assert_eq!(browser.value(LOW_CONTRAST), json!([]), "{scheme}");
    }
    assert_eq!(browser.value(UNNAMED), json!([]));

    type_into(browser, "city", "Ulm");
    type_into(browser, "days", "12");
    browser.value(&format!("{}.click()", part("places", "add")));
    type_into(browser, "name", "home");
    assert_eq!(editor(browser), json!({"city": "Ulm", "days": 12, "places": [{"name": "home"}]}));
    browser.value(&format!("{}.click()", part("days", "null")));
    browser.value(&format!("{}.click()", part("places", "remove")));
    assert_eq!(editor(browser), json!({"city": "Ulm", "days": null, "places": []}));

    let typed = json!({
        "city": "Rom", "units": "imperial", "when": 4, "more": {"a": 1},
        "places": [{"name": "a", "is_home": true}, {"name": "b"}],
    });
    browser.value("document.getElementById('editor').select()");
    browser.type_text(&typed.to_string());
    assert_eq!(browser.value(&format!("{}.value", part("city", "value"))), json!("Rom"));
    assert_eq!(browser.value(&format!("{}.checked", part("days", "set"))), json!(false));
    assert_eq!(browser.value(&format!("{}.selectedIndex", part("when", "branch"))), json!(1));
    // A change of the form writes all of it.
    type_into(browser, "city", "Bonn");
    let mut changed = typed;
    changed["city"] = json!("Bonn");
    assert_eq!(editor(browser), changed);

    browser.value("document.getElementById('editor').select()");
    browser.type_text("{\"city\":");
    browser.wait_for("!document.getElementById('editor-problem').hidden");
    browser.assert_no_problems("form");
    browser.leave();
}

pub(crate) async fn a_form_calls_its_tool(browser: &mut Browser) {
    let _served = open(browser).await;
    type_into(browser, "city", "Ulm \u{202e}");
    browser.value("document.querySelector('#try button[type=submit]').focus()");
    browser.press("Enter");
    browser.wait_for("document.getElementById('result-outcome').textContent === 'ok'");
    let text = browser.value("document.getElementById('result-text').textContent");
    assert_eq!(text, json!("{\"city\":\"Ulm \\u{202e}\",\"days\":3}"));
    // A problem is shown at its field.
    type_into(browser, "days", "many");
    browser.value("document.querySelector('#try button[type=submit]').click()");
    browser.wait_for("document.getElementById('result-outcome').textContent === 'refused'");
    let problem = browser.value(&format!("{}.textContent", part("days", "problem")));
    assert!(problem.as_str().unwrap().contains("days"), "{problem}");
    assert_eq!(browser.value(&format!("{}.hidden", part("city", "problem"))), json!(true));
    browser.assert_no_problems("call");
    browser.leave();
}
