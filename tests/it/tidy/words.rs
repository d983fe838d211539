//! House style of names and comments; `CONTRIBUTING.md` has the reasons.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::sources;

/// First words of doc comments that do not state what the item is or does.
const INTERROGATIVES: [&str; 8] =
    ["What", "Who", "Whom", "Whose", "Where", "Whether", "How", "Which"];

/// Maximum percentage of doc comments that start with an interrogative.
const INTERROGATIVE_PERCENT_MAX: usize = 5;

/// Doc comments without content.
const FILLERS: [&str; 10] = [
    "What.",
    "Why.",
    "Who.",
    "How.",
    "Where.",
    "Which.",
    "Which one.",
    "Why not.",
    "The same.",
    "It.",
];

/// Words that hide the actor or are not terms of the field, each with better ones.
const BANNED: [(&str, &str); 17] = [
    ("nobody", "name the actor: no caller, no thread"),
    ("somebody", "name the actor"),
    ("anybody", "name the actor"),
    ("everybody", "name the actors"),
    ("someone", "name the actor"),
    ("anyone", "name the actor"),
    ("everyone", "name the actors"),
    ("told", "receives, is notified, gets a note"),
    ("whoever", "the caller, the client, the user"),
    ("whomever", "the caller, the client, the user"),
    ("stranger", "untrusted, third party"),
    ("strangers", "untrusted, third parties"),
    ("as far as", "if, as long as, or a number"),
    ("by now", "already, currently"),
    ("in the place of", "instead of"),
    ("in place of", "instead of"),
    ("is none", "is invalid, is missing"),
];

/// Names of values that do not say what the value is, each with better ones.
const VAGUE: [(&str, &str); 3] = [
    ("place", "index, position, permit, slot, path"),
    ("places", "indices, positions, permits, slots, paths"),
    ("told", "answer, message, report, note"),
];

/// Maximum columns of a line. String literals may be longer: breaking them makes them hard to read.
const COLUMNS_MAX: usize = 100;

/// Maximum number of modules that may define types of one name.
const MODULES_PER_TYPE_MAX: usize = 2;

/// Names with the same meaning in every module.
const COMMON_TYPES: [&str; 6] = ["Error", "Options", "Config", "Kind", "Builder", "Result"];

/// Nouns that end like participles.
const NOUNS: [&str; 7] =
    ["Listing", "Metering", "Pairing", "Reasoning", "String", "Heading", "Setting"];

/// Prepositions, adverbs and irregular participles: not names of types.
const NOT_NOUNS: [&str; 41] = [
    "Around", "Away", "Back", "Before", "Begun", "Behind", "Beside", "Between", "Beyond", "Bound",
    "Built", "Done", "Else", "Found", "From", "Gone", "Heard", "Held", "Here", "Inside", "Kept",
    "Later", "Left", "Looks", "Lost", "Made", "Makings", "Now", "Once", "Own", "Put", "Ran",
    "Real", "Said", "Sent", "Spent", "Then", "There", "Together", "Told", "When",
];

fn is_test(path: &Path) -> bool {
    let is_below = |folder: &str| {
        path.components().any(|part| part.as_os_str() == std::ffi::OsStr::new(folder))
    };
    ["tests", "testing", "examples", "benches"].iter().any(|folder| is_below(folder))
        || path.ends_with("tests.rs")
        || path.ends_with("testing.rs")
}

/// Returns the product code: the crates of the host and the SDK, without their tests.
fn product() -> Vec<(PathBuf, String)> {
    let is_product = |path: &Path| {
        (path.starts_with("host") || path.starts_with("guest-sdk/rust")) && !is_test(path)
    };
    let product: Vec<_> = sources().into_iter().filter(|(path, _)| is_product(path)).collect();
    assert!(product.len() > 400, "only {} files of the product found", product.len());
    product.into_iter().map(|(path, text)| (path, without_unit_tests(&text))).collect()
}

fn without_unit_tests(text: &str) -> String {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned()
}

/// Returns the first line of each doc comment, with its line number.
fn doc_comments(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let comment = |line: &'_ str| {
        let line = line.trim_start();
        line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).is_some()
    };
    let mut was_comment = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_comment = comment(line);
        let is_first = is_comment && !std::mem::replace(&mut was_comment, is_comment);
        was_comment = is_comment;
        is_first.then(|| (index + 1, line.trim_start()[3..].trim()))
    })
}

#[test]
fn doc_comments_say_what_an_item_is_or_does() {
    let (mut count, mut riddles, mut fillers) = (0, Vec::new(), Vec::new());
    for (path, text) in product() {
        for (line, comment) in doc_comments(&text) {
            count += 1;
            let first = comment.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            if INTERROGATIVES.contains(&first) || first == "Why" {
                riddles.push(format!("{}:{line}: {comment}", path.display()));
            }
            if FILLERS.contains(&comment) {
                fillers.push(format!("{}:{line}: {comment}", path.display()));
            }
        }
    }
    assert!(count > 4000, "only {count} doc comments found");
    assert!(
        riddles.len() * 100 <= count * INTERROGATIVE_PERCENT_MAX,
        "{} of {count} doc comments start with an interrogative; start with a verb or a noun:\n{}",
        riddles.len(),
        riddles.join("\n")
    );
    assert!(fillers.is_empty(), "comments that say nothing:\n{}", fillers.join("\n"));
}

#[test]
fn comments_have_no_banned_words() {
    let mut found = Vec::new();
    for (path, text) in product() {
        for (index, line) in text.lines().enumerate() {
            let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
            let words = comment.to_lowercase();
            let words: Vec<_> = words.split(|c: char| !c.is_alphanumeric()).collect();
            let words = format!(" {} ", words.join(" ")).replace(" there is none ", " ");
            for (banned, better) in BANNED {
                if words.contains(&format!(" {banned} ")) {
                    let path = path.display();
                    found.push(format!("{path}:{}: `{banned}`; {better}", index + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "{} banned words:\n{}", found.len(), found.join("\n"));
}

/// Returns whether a line of code names a value or a function `name`, by the form of a definition:
/// `let name`, `fn name`, `|name|`, `(name,`, `name: Type`.
fn defines(line: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(name).any(|(start, _)| {
        let (before, after) = (&line[..start], &line[start + name.len()..]);
        let is_word = !before.ends_with(is_part) && !after.starts_with(is_part);
        let is_bound =
            ["let ", "mut ", "fn ", "for ", "|", "("].iter().any(|form| before.ends_with(form))
                || [":", "|", ")", "("].iter().any(|form| after.starts_with(form));
        is_word && is_bound
    })
}

#[test]
fn names_say_what_a_value_is() {
    assert!(defines("let place = 1;", "place") && defines("|(index, place)| index", "place"));
    assert!(!defines("check_in_place(sites)", "place") && !defines("replace(1)", "place"));
    let mut found = Vec::new();
    for (path, text) in product() {
        let name = path.display().to_string();
        let code =
            text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
        for (index, line) in code {
            for (vague, better) in VAGUE {
                if defines(line, vague) {
                    found.push(format!("{name}:{}: `{vague}`; {better}", index + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "{} vague names:\n{}", found.len(), found.join("\n"));
}

/// rustfmt does not break comments. Tables, links and examples stay on one line.
#[test]
fn comments_are_not_wider_than_code() {
    let (mut count, mut found) = (0, Vec::new());
    for (path, text) in product() {
        let mut is_example = false;
        for (index, line) in text.lines().enumerate() {
            let comment = line.trim_start();
            let prose = ["/// ", "//! ", "// "].iter().find_map(|mark| comment.strip_prefix(mark));
            let Some(prose) = prose else { continue };
            count += 1;
            if prose.starts_with("```") {
                is_example = !is_example;
            }
            let is_exempt = is_example
                || prose.starts_with(['|', '`'])
                || !prose.contains(' ')
                || prose.contains("](");
            if line.chars().count() > COLUMNS_MAX && !is_exempt {
                found.push(format!("{}:{}", path.display(), index + 1));
            }
        }
    }
    assert!(count > 10_000, "only {count} lines of comments found");
    assert!(found.is_empty(), "comments over {COLUMNS_MAX} columns:\n{}", found.join("\n"));
}

/// Returns the names of types that product code defines, with the files that define them.
fn types() -> BTreeMap<String, BTreeSet<PathBuf>> {
    let mut types: BTreeMap<String, BTreeSet<PathBuf>> = BTreeMap::new();
    for (path, text) in product() {
        for line in text.lines() {
            let line = line.trim_start();
            let line = line.strip_prefix("pub ").unwrap_or(line);
            let line = match line.strip_prefix("pub(") {
                Some(rest) => rest.split_once(") ").map_or(line, |(_, rest)| rest),
                None => line,
            };
            let keyword = ["struct ", "enum ", "trait ", "union "];
            let Some(rest) = keyword.iter().find_map(|word| line.strip_prefix(word)) else {
                continue;
            };
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric()).collect();
            if name.starts_with(char::is_uppercase) {
                types.entry(name).or_default().insert(path.clone());
            }
        }
    }
    assert!(types.len() > 500, "only {} types found", types.len());
    types
}

#[test]
fn a_type_name_can_be_searched_for() {
    let mut found = Vec::new();
    for (name, files) in types() {
        if files.len() > MODULES_PER_TYPE_MAX && !COMMON_TYPES.contains(&&*name) {
            let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
            found.push(format!("{name}: {}", files.join(", ")));
        }
    }
    let max = MODULES_PER_TYPE_MAX;
    assert!(found.is_empty(), "names of types in more than {max} modules:\n{}", found.join("\n"));
}

#[test]
fn types_are_named_by_nouns() {
    let is_participle = |name: &str| {
        let is_one_word = !name[1..].contains(char::is_uppercase);
        let ends = ["ed", "ing"].iter().any(|ending| name.ends_with(ending)) && name.len() > 4;
        is_one_word && (ends || NOT_NOUNS.contains(&name)) && !NOUNS.contains(&name)
    };
    let found: Vec<_> = types()
        .into_iter()
        .filter(|(name, _)| is_participle(name))
        .map(|(name, files)| format!("{name}: {}", files.iter().next().unwrap().display()))
        .collect();
    assert!(found.is_empty(), "{} names of types are no nouns:\n{}", found.len(), found.join("\n"));
}
