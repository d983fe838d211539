//! Checks of accessibility by axe-core, which is not part of the pages.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::chromium::Browser;

/// Script of the version that `cargo xtask test` installs.
const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../target/languages/npm/node_modules/axe-core/axe.min.js"
);
/// Success criteria of WCAG 2.2 up to level AA, and practices beyond them.
const TAGS: [&str; 6] = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
/// Rules whose outcome depends on colors.
const RULES_OF_COLORS: [&str; 2] = ["color-contrast", "link-in-text-block"];

/// Content of the script, or `None` with a note if it is missing, except in CI.
static AXE: LazyLock<Option<String>> = LazyLock::new(|| {
    let script = std::fs::read_to_string(SCRIPT).ok();
    if script.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{SCRIPT} is missing, and CI tests with it");
        println!("skipped: checks of accessibility, because {SCRIPT} is missing");
    }
    script
});

/// Structures that axe-core does not ask for: heads of tables, titles of pictures, ids that are
/// unique.
const UNSTRUCTURED: &str = r"(() => {
  const problems = [];
  for (const table of document.querySelectorAll('table')) {
    if (!table.querySelector('thead th[scope=col]')) problems.push('a table without heads');
  }
  for (const svg of document.querySelectorAll('svg:not([aria-hidden])')) {
    if (!svg.querySelector('title')) problems.push('a picture without a title');
  }
  const ids = [...document.querySelectorAll('[id]')].map((element) => element.id);
  if (new Set(ids).size < ids.length) problems.push('an id that occurs twice');
  return problems;
})()";

/// Fails if the page violates a rule in one of the color schemes. The page is light afterwards.
pub(crate) fn assert_accessible(browser: &mut Browser, page: &str) {
    assert_eq!(browser.value(UNSTRUCTURED), json!([]), "{page}");
    let Some(script) = AXE.as_deref() else { return };
    // The scripts of the page do not see those of another world, and its policy does not bind them.
    let world = browser.isolated_world();
    browser.value_in(Some(world), script);
    browser.set_color_scheme("dark");
    assert_no_violations(browser, world, &json!(RULES_OF_COLORS), &format!("{page} in the dark"));
    browser.set_color_scheme("light");
    assert_no_violations(browser, world, &json!({"type": "tag", "values": TAGS}), page);
}

fn assert_no_violations(browser: &mut Browser, world: u64, rules: &Value, page: &str) {
    let options = json!({"runOnly": rules, "resultTypes": ["violations"], "preload": false});
    let run = format!(
        "axe.run(document, {options}).then(({{ violations, passes }}) => [passes.length, \
         violations.flatMap(({{ id, help, nodes }}) => nodes.map(({{ html, failureSummary }}) => \
         ({{ id, help, html, failureSummary }})))])"
    );
    let found = browser.value_in(Some(world), &run);
    assert!(found[0].as_u64().unwrap() > 0, "no rule of axe-core applies to {page}: {found}");
    assert_eq!(found[1], json!([]), "{page}: {found:#}");
}
