//! Forms of tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use cofferdam_inspector::Workbench;
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::{DecodeOptions, Functions, InputSchema, Toolset};
use serde_json::{Value, json};

/// Rows about arguments, whose schemas have every keyword that the decoder knows.
const ROWS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/conformance/arguments.jsonl");

use crate::axe::assert_accessible;
use crate::chromium::Browser;
use crate::served::{Served, toolset};
use crate::views::log_in;

/// The sample tools.
pub(crate) struct Bench(pub(crate) Toolset);

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
    assert_accessible(browser, "a form with a problem");
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
    assert_accessible(browser, "a form with a result");
    browser.assert_no_problems("call");
    browser.leave();
}

pub(crate) async fn inputs_are_saved_in_the_browser(browser: &mut Browser) {
    let served = open(browser).await;
    let state = "document.getElementById('saved-state').textContent";
    type_into(browser, "city", "Ulm");
    // With the keyboard only.
    browser.value("document.getElementById('save-name').focus()");
    browser.type_text("<b>home\u{202e}</b>");
    browser.press("Enter");
    browser.wait_for(&format!("{state} === 'Saved <b>home\\u202e</b>.'"));
    type_into(browser, "city", "Rom");
    browser.value("document.getElementById('save-name').focus()");
    browser.press("Enter");
    browser.wait_for(&format!("{state} === 'Enter a name.'"));
    // They are there when the page is opened again, and for no other tool.
    browser.open(&format!("http://{}/tool?name=fail", served.address));
    browser.wait_for("!document.getElementById('saved').hidden");
    assert_eq!(browser.value("document.querySelectorAll('#saved-list li').length"), json!(0));
    browser.open(&format!("http://{}/tool?name=echo", served.address));
    browser.wait_for("document.querySelectorAll('#saved-list li').length === 1");
    assert_accessible(browser, "saved inputs");
    assert_eq!(browser.value("document.querySelectorAll('#saved-list b').length"), json!(0));
    browser.value("document.querySelector('#saved-list button').focus()");
    browser.press("Enter");
    assert_eq!(editor(browser), json!({"city": "Ulm", "days": 3}));
    assert_eq!(browser.value(&format!("{}.value", part("city", "value"))), json!("Ulm"));
    browser.value("document.querySelectorAll('#saved-list button')[1].focus()");
    browser.press(" ");
    browser.wait_for("document.querySelectorAll('#saved-list li').length === 0");
    assert_eq!(browser.value("document.activeElement.id"), json!("save-name"));
    assert_eq!(browser.value("localStorage.length"), json!(0));
    // Whatever another program left under the address is no input.
    browser
        .value("localStorage.setItem('cofferdam.inputs/samples/echo', '[1, {\"name\": 2}, null]')");
    browser.open(&format!("http://{}/tool?name=echo", served.address));
    browser.wait_for("!document.getElementById('saved').hidden");
    assert_eq!(browser.value("document.querySelectorAll('#saved-list li').length"), json!(0));
    browser.assert_no_problems("saved inputs");
    browser.leave();
}

/// Returns the schemas of the conformance rows, each with the longest value that it accepts.
fn accepted_values() -> BTreeMap<String, Value> {
    let mut values: BTreeMap<String, Value> = BTreeMap::new();
    let rows = std::fs::read_to_string(ROWS).unwrap();
    // Some rows are nested deeper than a test can read.
    for row in rows.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let value = &row["expect"]["value"];
        let schema = row["schema"].to_string();
        let is_decoded = row["op"] == "decode" && row["strict"].is_null() && value.is_object();
        if !is_decoded || InputSchema::compile("row", &schema).is_err() {
            continue;
        }
        let known = values.entry(schema).or_insert_with(|| value.clone());
        if value.to_string().len() > known.to_string().len() {
            *known = value.clone();
        }
    }
    assert!(values.len() > 60, "only {} schemas found", values.len());
    values
}

pub(crate) async fn every_schema_has_a_form_whose_value_decodes(browser: &mut Browser) {
    let values = accepted_values();
    let mut functions = Functions::new("rows");
    for (index, schema) in values.keys().enumerate() {
        let tool = Declaration::new(format!("row{index}"), "A tool.", schema.as_str());
        functions = functions.with(tool, async |_, _| Ok(Value::Null)).unwrap();
    }
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(functions)).unwrap();
    let served = Served::with(Some(Arc::new(Bench(toolset)))).await;
    log_in(browser, &served);
    let mut wrong = Vec::new();
    for (index, (schema, value)) in values.iter().enumerate() {
        browser.open(&format!("http://{}/tool?name=row{index}", served.address));
        // The value goes into the editor, from there into the form, and back.
        let text = serde_json::to_string(&value.to_string()).unwrap();
        let written = browser.value(&format!(
            "(() => {{ const editor = document.getElementById('editor'); editor.value = {text}; \
             const typed = () => new Event('input', {{ bubbles: true }}); \
             editor.dispatchEvent(typed()); \
             document.querySelector('#try .field').dispatchEvent(typed()); \
             return editor.value }})()"
        ));
        let written = written.as_str().unwrap();
        let decoded = InputSchema::compile("row", schema).unwrap();
        let decoded = decoded.decode("row", Some(written.as_bytes()), &DecodeOptions::default());
        let decoded = decoded.map(|decoded| decoded.into_value());
        if decoded.as_ref() != Ok(value) {
            wrong.push(format!("{schema}\nwritten {written}\ndecoded {decoded:?}\nnot {value}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), values.len(), wrong.join("\n\n"));
    browser.assert_no_problems("forms");
    browser.leave();
}
