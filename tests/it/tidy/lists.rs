//! Compares lists that are maintained by hand with what they list.

use std::collections::BTreeSet;

use cofferdam_tests::root;

use super::{files, members, sources};

fn page(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn every_test_module_is_in_the_table() {
    let main = page("tests/it/main.rs");
    let modules: BTreeSet<_> =
        main.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')).collect();
    let listed: BTreeSet<_> = main
        .lines()
        .filter_map(|line| line.strip_prefix("//! | `")?.split_once('`'))
        .map(|(name, _)| name)
        .collect();
    assert!(modules.len() > 20, "only {} modules found", modules.len());
    assert_eq!(listed, modules, "the table of tests/it/main.rs lists its modules");
}

#[test]
fn every_wit_file_is_listed() {
    let list = page("wit/README.md");
    let reference = page("docs/wit.md");
    let wit = files().into_iter().filter(|path| path.starts_with("wit"));
    let wit: Vec<_> = wit.filter(|path| path.extension().is_some_and(|end| end == "wit")).collect();
    assert!(wit.len() > 5, "only {} WIT files found", wit.len());
    for file in wit {
        let name = format!("`{}`", file.file_name().unwrap().to_str().unwrap());
        assert!(list.contains(&name), "wit/README.md does not list {name}");
        assert!(reference.contains(&name), "docs/wit.md does not list {name}");
    }
}

#[test]
fn every_member_is_in_the_map() {
    let map = page("docs/ARCHITECTURE.md");
    for (folder, _) in members() {
        let row = format!("| `{folder}` |");
        assert!(map.contains(&row), "the map of docs/ARCHITECTURE.md does not list {folder}");
    }
}

#[test]
fn invariants_are_numbered_in_order() {
    let text = page("docs/ARCHITECTURE.md");
    let (_, invariants) = text.split_once("## Invariants").expect("the page lists invariants");
    let invariants = invariants.split("\n## ").next().unwrap_or_default();
    let numbers: Vec<usize> = invariants
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" |"))
        .filter_map(|(number, _)| number.parse().ok())
        .collect();
    assert!(numbers.len() > 30, "only {} invariants found", numbers.len());
    assert_eq!(
        numbers,
        (1..=numbers.len()).collect::<Vec<_>>(),
        "invariants are numbered 1, 2, 3…"
    );
}

#[test]
fn every_page_is_in_the_book() {
    let summary = page("docs/SUMMARY.md");
    let pages = files().into_iter().filter(|path| path.starts_with("docs"));
    let pages: Vec<_> =
        pages.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    assert!(pages.len() > 20, "only {} pages found", pages.len());
    for path in pages {
        let name = path.strip_prefix("docs").unwrap().display().to_string();
        let is_listed = name == "SUMMARY.md" || summary.contains(&format!("({name})"));
        assert!(is_listed, "docs/SUMMARY.md does not list {name}");
    }
}

#[test]
fn glossary_paths_exist() {
    let glossary = page("docs/glossary.md");
    let is_path = |text: &&str| text.starts_with("host/") || text.starts_with("wit/");
    let paths: Vec<_> = glossary.split('`').skip(1).step_by(2).filter(is_path).collect();
    assert!(paths.len() > 40, "only {} paths found", paths.len());
    for path in paths {
        assert!(root().join(path).is_file(), "docs/glossary.md names {path}, which does not exist");
    }
}

/// Cited rule ids such as `ARG-7` need a heading in `docs/rules`.
#[test]
fn every_cited_rule_has_a_heading() {
    let pages = files().into_iter().filter(|path| path.starts_with("docs/rules"));
    let mut headings = BTreeSet::new();
    for path in pages {
        for line in page(path.to_str().unwrap()).lines().filter(|line| line.starts_with("##")) {
            headings.extend(rule_ids(line));
        }
    }
    let areas: BTreeSet<_> = headings
        .iter()
        .filter_map(|id| id.split_once('-'))
        .map(|(area, _)| area.to_owned())
        .collect();
    assert!(headings.len() > 250, "only {} rules have a heading", headings.len());
    let mut missing = BTreeSet::new();
    for (path, text) in sources() {
        for id in rule_ids(&text) {
            let is_rule = id.split_once('-').is_some_and(|(area, _)| areas.contains(area));
            if is_rule && !headings.contains(&id) {
                missing.insert(format!("{id} ({})", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "rules without a heading: {missing:?}");
}

/// Returns the words of the form `LETTERS-NUMBER`.
fn rule_ids(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    let is_id = |word: &&str| {
        word.split_once('-').is_some_and(|(area, number)| {
            (2..=6).contains(&area.len())
                && area.bytes().all(|byte| byte.is_ascii_uppercase())
                && !number.is_empty()
                && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    words.filter(is_id).map(ToOwned::to_owned).collect()
}

/// Figures of the README are in the table of the benchmarks: `<!-- bench: ROW -->FIGURE`.
#[test]
fn figures_are_those_of_the_last_benchmark() {
    let (readme, table) = (page("README.md"), page("docs/performance.md"));
    let mut count = 0;
    for cited in readme.split("<!-- bench: ").skip(1) {
        let (row, rest) = cited.split_once(" -->").expect("a figure follows its row");
        let figure = rest.split(|c: char| c.is_whitespace()).next().unwrap_or_default();
        // The table of the current build comes first.
        let line = table.lines().find(|line| line.starts_with(&format!("| {row} |")));
        let line = line.unwrap_or_else(|| panic!("docs/performance.md has no row `{row}`"));
        assert!(line.contains(figure), "README.md says {figure} for `{row}`, the table: {line}");
        count += 1;
    }
    assert!(count >= 5, "only {count} figures found in README.md");
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut count = 0;
    let mut broken = Vec::new();
    for path in files().into_iter().filter(|path| path.extension().is_some_and(|end| end == "md")) {
        let text = page(path.to_str().unwrap());
        let folder = path.parent().unwrap();
        for link in links(&text) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            if file.contains("://") || file.starts_with("mailto:") {
                continue;
            }
            count += 1;
            let target = if file.is_empty() { path.clone() } else { folder.join(file) };
            let full = root().join(&target);
            if !full.exists() {
                broken.push(format!("{}: {link}", path.display()));
            } else if !anchor.is_empty() && full.is_file() {
                let target = std::fs::read_to_string(&full).unwrap();
                if !anchors(&target).contains(anchor) {
                    broken.push(format!("{}: {link}", path.display()));
                }
            }
        }
    }
    assert!(count > 100, "only {count} links found");
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

/// Returns the targets of `[text](target)` outside of code.
fn links(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let mut links = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        for part in line.split("](").skip(1) {
            let target = part.split([')', ' ']).next().unwrap_or_default();
            if !target.is_empty() && !target.starts_with('<') {
                links.push(target);
            }
        }
    }
    links
}

/// Returns the anchors of a page's headings, as GitHub and mdbook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let letters = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        letters.map(|c| if c == ' ' { '-' } else { c }).collect::<String>()
    };
    headings.map(anchor).collect()
}
