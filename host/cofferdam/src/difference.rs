//! Describes how a plugin or server differs from its accepted state, for an operator who has to
//! consent.
//!
//! The short form lists permissions first, then added and removed tools, then changed descriptions
//! and parameters. Long lists are cut, with the number of omitted lines; [`DefinitionDiff::full`]
//! has everything.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use similar::{ChangeTag, TextDiff};

/// Maximum number of lines of each part in the short form.
const CAPABILITIES_MAX: usize = 12;
const TOOLS_MAX: usize = 10;
const CHANGES_MAX: usize = 14;
/// Maximum number of characters of a line.
const LINE_CHARS_MAX: usize = 140;
/// Number of characters shown before the first difference.
const CONTEXT_CHARS: usize = 40;
/// Maximum time for finding the smallest differences of texts. Later ones are shown as replaced.
const TEXT_TIME_MAX: Duration = Duration::from_millis(300);

/// Definitions to compare: requested permissions and everything that a model reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Definitions<'a> {
    /// Identity of the source of the tools, such as a digest. Empty if it has none.
    pub(crate) identity: &'a str,
    pub(crate) asks: &'a [String],
    pub(crate) tools: &'a BTreeMap<String, Value>,
    pub(crate) prompts: &'a BTreeMap<String, Value>,
    pub(crate) resources: &'a BTreeMap<String, Value>,
    pub(crate) instructions: &'a str,
}

static NO_ITEMS: BTreeMap<String, Value> = BTreeMap::new();

impl Definitions<'_> {
    /// No definitions.
    pub(crate) const NONE: Self = Self {
        identity: "",
        asks: &[],
        tools: &NO_ITEMS,
        prompts: &NO_ITEMS,
        resources: &NO_ITEMS,
        instructions: "",
    };
}

/// Difference of two definitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DefinitionDiff {
    identity: Option<String>,
    /// Permissions that are requested now and were not before.
    gained: Vec<String>,
    capabilities: Vec<String>,
    tools: Vec<String>,
    changes: Vec<String>,
    full: String,
}

impl DefinitionDiff {
    /// Compares `after` with `before`.
    pub(crate) fn of(before: Definitions<'_>, after: Definitions<'_>) -> Self {
        let is_other = before.identity != after.identity;
        let identity =
            is_other.then(|| format!("component {} is now {}", before.identity, after.identity));
        let gained: Vec<_> =
            after.asks.iter().filter(|ask| !before.asks.contains(ask)).cloned().collect();
        let lost = before.asks.iter().filter(|ask| !after.asks.contains(ask));
        let lost = lost.map(|ask| format!("- asks {ask}"));
        let capabilities = gained.iter().map(|ask| format!("+ asks {ask}")).chain(lost).collect();
        let (mut tools, mut changes) = (Vec::new(), Vec::new());
        let ends_at = Instant::now() + TEXT_TIME_MAX;
        for (kind, before, after) in kinds(before, after) {
            let renamed = renamed(before, after);
            let added = after.iter().filter(|(name, _)| !before.contains_key(*name));
            let added = added.filter(|(name, _)| !renamed.iter().any(|(_, new)| new == name));
            let removed = before.keys().filter(|name| !after.contains_key(*name));
            let removed = removed.filter(|name| !renamed.iter().any(|(old, _)| old == name));
            tools.extend(
                added.map(|(name, item)| format!("+ {kind} {name}: {}", description(item))),
            );
            tools.extend(removed.map(|name| format!("- {kind} {name}")));
            tools.extend(
                renamed.iter().map(|(old, new)| format!("~ {kind} {old} is now called {new}")),
            );
            for (name, item) in after {
                let renamed = renamed.iter().find(|(_, new)| *new == name);
                let old = before.get(renamed.map_or(name, |(old, _)| *old));
                if let Some(old) = old.filter(|old| without_name(old) != without_name(item)) {
                    changes.push(format!("{kind} {name} has changed:"));
                    let (old, item) = (without_name(old), without_name(item));
                    changed("", &old, &item, ends_at, &mut changes);
                }
            }
        }
        if before.instructions != after.instructions {
            changes.push("the instructions have changed:".to_owned());
            sentences_changed(
                "instructions",
                before.instructions,
                after.instructions,
                ends_at,
                &mut changes,
            );
        }
        Self { identity, gained, capabilities, tools, changes, full: full(before, after, ends_at) }
    }

    /// Adds the imports of the components before and after. Versions of imports do not count.
    #[must_use]
    pub fn with_imports(mut self, before: &[String], after: &[String]) -> Self {
        let names = |imports: &[String]| -> BTreeSet<String> {
            let name = |import: &String| import.split('@').next().unwrap_or_default().to_owned();
            imports.iter().map(name).collect()
        };
        let (before, after) = (names(before), names(after));
        self.capabilities.extend(after.difference(&before).map(|it| format!("+ imports {it}")));
        self.capabilities.extend(before.difference(&after).map(|it| format!("- imports {it}")));
        self
    }

    /// Returns the permissions that are requested now and were not before.
    #[must_use]
    pub fn gained(&self) -> &[String] {
        &self.gained
    }

    /// Creates a difference that cannot be computed, with the reason.
    pub fn unknown(reason: String) -> Self {
        Self { identity: Some(reason), ..Self::default() }
    }

    /// Returns at most 40 lines, which fit a screen.
    pub fn short(&self) -> String {
        let mut lines = Vec::new();
        for (part, most, what) in [
            (&self.capabilities, CAPABILITIES_MAX, "capabilities"),
            (&self.tools, TOOLS_MAX, "tools"),
            (&self.changes, CHANGES_MAX, "lines about changed tools"),
        ] {
            lines.extend(part.iter().take(most).map(|line| cut(line)));
            if let Some(left @ 1..) = part.len().checked_sub(most) {
                lines.push(format!("… and {left} more {what}"));
            }
        }
        lines.extend(self.identity.iter().map(|line| cut(line)));
        lines.join("\n")
    }

    /// Returns everything, with the complete definitions of new and changed tools.
    pub fn full(&self) -> String {
        let lines = self.capabilities.iter().chain(&self.identity);
        let mut lines: Vec<_> = lines.map(String::as_str).collect();
        lines.push(&self.full);
        lines.join("\n").trim_end().to_owned()
    }

    /// Returns whether [`DefinitionDiff::short`] leaves something out.
    pub fn is_cut(&self) -> bool {
        let lines = || self.capabilities.iter().chain(&self.tools).chain(&self.changes);
        self.capabilities.len() > CAPABILITIES_MAX
            || self.tools.len() > TOOLS_MAX
            || self.changes.len() > CHANGES_MAX
            || self.tools.iter().any(|line| line.starts_with('+'))
            || lines().any(|line| line.contains('…') || line.chars().count() > LINE_CHARS_MAX)
    }
}

type Items = BTreeMap<String, Value>;

/// Returns each kind of definition: its name, the old items and the new items.
fn kinds<'a>(
    before: Definitions<'a>,
    after: Definitions<'a>,
) -> [(&'static str, &'a Items, &'a Items); 3] {
    [
        ("tool", before.tools, after.tools),
        ("prompt", before.prompts, after.prompts),
        ("resource", before.resources, after.resources),
    ]
}

/// Returns the pairs of old and new items under other names: first those that are equal otherwise,
/// then those that are alike. A description of its own under a new name is not a new tool.
fn renamed<'a>(before: &'a Items, after: &'a Items) -> Vec<(&'a String, &'a String)> {
    let mut removed: Vec<_> =
        before.iter().filter(|(name, _)| !after.contains_key(*name)).collect();
    let mut added: Vec<_> = after.iter().filter(|(name, _)| !before.contains_key(*name)).collect();
    let mut renamed = Vec::new();
    for feature in [all_but_the_name, own_description, own_parameters] {
        let mut free: HashMap<String, Vec<&String>> = HashMap::new();
        for (name, item) in added.iter().rev() {
            if let Some(feature) = feature(item) {
                free.entry(feature).or_default().push(name);
            }
        }
        removed.retain(|(old, item)| {
            let names = feature(item).and_then(|feature| free.get_mut(&feature));
            let Some(new) = names.and_then(Vec::pop) else { return true };
            renamed.push((*old, new));
            false
        });
        let taken: HashSet<_> = renamed.iter().map(|(_, new)| *new).collect();
        added.retain(|(name, _)| !taken.contains(name));
    }
    renamed
}

fn all_but_the_name(item: &Value) -> Option<String> {
    Some(without_name(item).to_string())
}

fn own_description(item: &Value) -> Option<String> {
    item.get("description").filter(|description| !is_empty(description)).map(Value::to_string)
}

fn own_parameters(item: &Value) -> Option<String> {
    let properties = item.pointer("/input_schema/properties")?;
    (!is_empty(properties)).then(|| item.get("input_schema").map(Value::to_string))?
}

fn is_empty(value: &Value) -> bool {
    value.as_str().is_some_and(str::is_empty) || value.as_object().is_some_and(Map::is_empty)
}

fn without_name(tool: &Value) -> Value {
    let mut tool = tool.clone();
    if let Some(tool) = tool.as_object_mut() {
        tool.shift_remove("name");
    }
    tool
}

fn description(tool: &Value) -> String {
    let text = tool.get("description").and_then(Value::as_str).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Adds a line for each difference at `path`.
fn changed(path: &str, before: &Value, after: &Value, ends_at: Instant, lines: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let at =
                |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
            for (key, was) in old {
                match new.get(key) {
                    Some(is) if is != was => changed(&at(key), was, is, ends_at, lines),
                    Some(_) => {}
                    None => lines.push(format!("  - {}: {}", at(key), compact(was))),
                }
            }
            for (key, is) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                lines.push(format!("  + {}: {}", at(key), compact(is)));
            }
        }
        (Value::Array(old), Value::Array(new)) if old.iter().chain(new).all(Value::is_string) => {
            let strings = |list: &[Value]| -> HashSet<String> {
                list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            };
            let (known, current) = (strings(old), strings(new));
            let is_in = |set: &HashSet<String>, item: &Value| {
                item.as_str().is_some_and(|item| set.contains(item))
            };
            let removed = old.iter().filter(|item| !is_in(&current, item));
            lines.extend(removed.map(|item| format!("  - {path}: {item}")));
            let added = new.iter().filter(|item| !is_in(&known, item));
            lines.extend(added.map(|item| format!("  + {path}: {item}")));
            if old.len() == new.len() && known.is_subset(&current) {
                lines.push(format!("  ~ {path}: in another order"));
            }
        }
        (Value::String(old), Value::String(new)) => {
            sentences_changed(path, old, new, ends_at, lines);
        }
        _ => lines.push(format!("  ~ {path}: {} is now {}", cut(&compact(before)), compact(after))),
    }
}

/// Adds the sentences that differ, each from shortly before its first difference.
fn sentences_changed(
    path: &str,
    before: &str,
    after: &str,
    ends_at: Instant,
    lines: &mut Vec<String>,
) {
    let (old, new) = (sentences(before), sentences(after));
    let diff = TextDiff::configure().deadline(ends_at).diff_slices(&old, &new);
    let changes: Vec<_> =
        diff.iter_all_changes().filter(|change| change.tag() != ChangeTag::Equal).collect();
    let removed: Vec<_> =
        changes.iter().filter(|change| change.tag() == ChangeTag::Delete).collect();
    let added: Vec<_> = changes.iter().filter(|change| change.tag() == ChangeTag::Insert).collect();
    for index in 0..removed.len().max(added.len()) {
        let (old, new) =
            (removed.get(index).map(|c| c.value()), added.get(index).map(|c| c.value()));
        let from = match (old, new) {
            (Some(old), Some(new)) => {
                old.chars().zip(new.chars()).take_while(|(a, b)| a == b).count()
            }
            _ => 0,
        };
        lines.extend(old.map(|old| format!("  - {path}: {}", tail_from(old, from))));
        lines.extend(new.map(|new| format!("  + {path}: {}", tail_from(new, from))));
    }
    if changes.is_empty() {
        lines.push(format!("  ~ {path}: other spaces or line breaks"));
    }
}

fn sentences(text: &str) -> Vec<&str> {
    let lines = text.lines().flat_map(|line| line.split_inclusive(". "));
    lines.map(str::trim).filter(|sentence| !sentence.is_empty()).collect()
}

/// Returns a string from shortly before the character `from`.
fn tail_from(text: &str, from: usize) -> String {
    let skipped = from.saturating_sub(CONTEXT_CHARS);
    let rest: String = text.chars().skip(skipped).collect();
    if skipped > 0 { format!("…{rest}") } else { rest }
}

fn compact(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns one line of limited length.
fn cut(text: &str) -> String {
    let line = text.replace(['\n', '\r', '\t'], " ");
    match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

fn full(before: Definitions<'_>, after: Definitions<'_>, ends_at: Instant) -> String {
    let mut lines = Vec::new();
    for (kind, before, after) in kinds(before, after) {
        let renamed = renamed(before, after);
        let is_renamed = |name: &String| renamed.iter().any(|(old, _)| *old == name);
        for name in before.keys().filter(|it| !after.contains_key(*it) && !is_renamed(it)) {
            lines.push(format!("- {kind} {name}"));
        }
        for (name, item) in after {
            let renamed = renamed.iter().find(|(_, new)| *new == name);
            match before.get(renamed.map_or(name, |(old, _)| *old)) {
                None => lines.push(format!("+ {kind} {name}\n{}", pretty(item).trim_end())),
                Some(old) if old != item => {
                    let unified = unified(&pretty(old), &pretty(item), ends_at);
                    lines.push(format!("{kind} {name} has changed:\n{unified}"));
                }
                Some(_) => {}
            }
        }
    }
    if before.instructions != after.instructions {
        let (old, new) =
            (format!("{}\n", before.instructions), format!("{}\n", after.instructions));
        lines.push(format!("the instructions have changed:\n{}", unified(&old, &new, ends_at)));
    }
    lines.join("\n")
}

fn unified(old: &str, new: &str, ends_at: Instant) -> String {
    let diff = TextDiff::configure().deadline(ends_at).diff_lines(old, new);
    let unified = diff.unified_diff().context_radius(1).to_string();
    unified.trim_end().to_owned()
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_server_that_changes_everything_is_compared() {
        let text = |number: u32, word: &str| {
            let sentences = (0..1500).map(|index| format!("{word} {number} {index}. "));
            sentences.collect::<String>()
        };
        let items = |word: &str, count: u32| -> Items {
            (0..count)
                .map(|number| {
                    let name = format!("{word}{number}");
                    let item = json!({"name": name, "description": text(number, word),
                        "input_schema": {"properties": {(name.clone()): {}}}});
                    (name, item)
                })
                .collect()
        };
        let none = Items::new();
        let definitions =
            |tools| Definitions { tools, prompts: &none, resources: &none, ..Definitions::NONE };
        let (old, new) = (items("old", 300), items("new", 300));
        let found = DefinitionDiff::of(definitions(&old), definitions(&new));
        assert!(found.short().contains("+ tool new0"), "{}", found.short());
        let same_names: Items =
            new.values().zip(old.keys()).map(|(item, name)| (name.clone(), item.clone())).collect();
        let found = DefinitionDiff::of(definitions(&old), definitions(&same_names));
        assert!(found.full().contains("tool old0 has changed"));
    }

    fn difference(before: (&[&str], Value), after: (&[&str], Value)) -> DefinitionDiff {
        let owned = |(asks, tools): (&[&str], Value)| {
            let asks: Vec<_> = asks.iter().map(ToString::to_string).collect();
            let tools: BTreeMap<_, _> = tools.as_object().unwrap().clone().into_iter().collect();
            (asks, tools)
        };
        let (before, after) = (owned(before), owned(after));
        let of =
            |identity, (asks, tools)| Definitions { identity, asks, tools, ..Definitions::NONE };
        DefinitionDiff::of(
            of("sha256:a", (&before.0, &before.1)),
            of("sha256:b", (&after.0, &after.1)),
        )
    }

    #[test]
    fn what_it_may_do_comes_first_then_tools_then_words() {
        let before = json!({
            "gone": {"name": "gone", "description": "Goes."},
            "old": {"name": "old", "description": "Is renamed."},
            "send": {
                "name": "send",
                "description": "Sends a mail. Asks you first. Says when it was read.",
                "input_schema": {"properties": {"to": {"type": "string"}, "cc": {}}, "required": ["to"]},
            },
        });
        let after = json!({
            "fresh": {"name": "fresh", "description": "Does\nsomething."},
            "new": {"name": "new", "description": "Is renamed."},
            "send": {
                "name": "send",
                "description": "Sends a mail. Never asks you. Says when it was read.",
                "input_schema": {"properties": {"to": {"type": "integer"}, "bcc": {}}, "required": ["to", "bcc"]},
            },
        });
        let difference = difference(
            (&["random", "env:A"], before),
            (&["env:A", "http:https://evil.example/"], after),
        );
        assert_eq!(
            difference.short(),
            "+ asks http:https://evil.example/\n\
             - asks random\n\
             + tool fresh: Does something.\n\
             - tool gone\n\
             ~ tool old is now called new\n\
             tool send has changed:\n  \
               - description: Asks you first.\n  \
               + description: Never asks you.\n  \
               - input_schema.properties.to.type: string\n  \
               + input_schema.properties.to.type: integer\n  \
               - input_schema.properties.cc: {}\n  \
               + input_schema.properties.bcc: {}\n  \
               + input_schema.required: \"bcc\"\n\
             component sha256:a is now sha256:b"
        );
        assert!(
            difference.full().contains("\"description\": \"Does\\nsomething.\""),
            "{}",
            difference.full()
        );
    }

    #[test]
    fn however_much_changes_it_fits_a_screen_and_says_what_is_left_out() {
        let tool = |text: &str| json!({"description": text.repeat(300), "input_schema": {"a": text, "b": text}});
        let tools = |text: &str, from: usize| -> Value {
            let tools = (from..from + 100).map(|number| (format!("tool_{number}"), tool(text)));
            Value::Object(tools.collect())
        };
        let asks: Vec<_> = (0..100).map(|number| format!("env:V{number}")).collect();
        let asks: Vec<_> = asks.iter().map(String::as_str).collect();
        let difference = difference((&[], tools("One. ", 0)), (&asks, tools("Two. ", 50)));
        let short = difference.short();
        assert!(short.lines().count() <= 40, "{short}");
        assert!(short.lines().all(|line| line.chars().count() <= LINE_CHARS_MAX + 1), "{short}");
        assert!(difference.is_cut());
        for part in
            ["… and 88 more capabilities", "… and 90 more tools", "more lines about changed tools"]
        {
            assert!(short.contains(part), "{part}: {short}");
        }
        assert!(difference.full().contains("tool_149"));
    }

    #[test]
    fn a_renamed_tool_with_other_words_is_a_change() {
        let schema = json!({"properties": {"to": {"type": "string"}}});
        let tool = |name: &str, description: &str, schema: &Value| json!({"name": name, "description": description, "input_schema": schema});
        let before = json!({
            "send": tool("send", "Sends a mail.", &schema),
            "stop": tool("stop", "Stops.", &json!({"properties": {}})),
        });
        let after = json!({
            "send_all": tool("send_all", "Sends a mail to all.", &schema),
            "start": tool("start", "Starts.", &json!({"properties": {}})),
        });
        let short = difference((&[], before), (&[], after)).short();
        for line in [
            "~ tool send is now called send_all",
            "tool send_all has changed:",
            "  + description: Sends a mail to all.",
            "+ tool start: Starts.",
            "- tool stop",
        ] {
            assert!(short.contains(line), "{line}: {short}");
        }
    }

    #[test]
    fn imports_are_compared_without_their_versions() {
        let imports = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let before = imports(&["wasi:io/poll@0.2.3", "wasi:random/random@0.2.3"]);
        let after = imports(&["wasi:io/poll@0.2.6", "wasi:http/outgoing-handler@0.2.6"]);
        let difference = difference((&["a"], json!({})), (&["a", "b"], json!({})));
        assert_eq!(difference.gained(), ["b"]);
        let short = difference.with_imports(&before, &after).short();
        assert!(
            short.starts_with(
                "+ asks b\n+ imports wasi:http/outgoing-handler\n- imports wasi:random/random"
            ),
            "{short}"
        );
    }

    #[test]
    fn prompts_and_instructions_are_compared_as_well() {
        let prompts =
            |text: &str| BTreeMap::from([("greet".to_owned(), json!({"description": text}))]);
        let (old, new) = (prompts("Greets."), prompts("Greets all."));
        let of = |prompts, instructions| Definitions { prompts, instructions, ..Definitions::NONE };
        let difference =
            DefinitionDiff::of(of(&old, "Ask first. Be kind."), of(&new, "Never ask. Be kind."));
        assert_eq!(
            difference.short(),
            "prompt greet has changed:\n  \
               - description: Greets.\n  \
               + description: Greets all.\n\
             the instructions have changed:\n  \
               - instructions: Ask first.\n  \
               + instructions: Never ask."
        );
        assert!(difference.full().contains("+Never ask. Be kind."), "{}", difference.full());
    }

    #[test]
    fn a_change_far_back_in_a_sentence_is_shown() {
        let long = "very ".repeat(100);
        let (before, after) = (format!("It is {long} good."), format!("It is {long} evil."));
        let difference = difference(
            (&[], json!({"a": {"description": before}})),
            (&[], json!({"a": {"description": after}})),
        );
        assert!(difference.short().contains("very  evil."), "{}", difference.short());
    }
}
