//! Servers in a YAML file: `extensions: NAME:`, as goose has them. Every other line stays.
//!
//! Only the lines that name the entry are looked at. Whatever is written in a way that lines alone do not tell is refused.

use std::ops::Range;

use serde_json::Value;

use super::host::Entry;
use crate::exit::UsageError;

/// The key that servers are under.
const SERVERS: &str = "extensions";
/// The keys that are set in an entry that is there. The others are the person's.
const OURS: [&str; 2] = ["cmd", "args"];
/// How far a level is indented where nothing shows it.
const INDENT: usize = 2;

/// The file with the server in it.
pub(super) fn with_entry(text: &str, entry: &Entry, keys: &[(&str, Value)]) -> anyhow::Result<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    check(&lines)?;
    let whole = 0..lines.len();
    let servers = match block(&lines, whole, 0, SERVERS)? {
        Some(servers) => servers,
        None => {
            lines.push(format!("{SERVERS}:"));
            lines.len() - 1..lines.len()
        }
    };
    open_mapping(&mut lines, servers.start)?;
    let inside = servers.start + 1..servers.end;
    let indent = indent_inside(&lines, inside.clone(), 0);
    match block(&lines, inside, indent, &entry.name)? {
        None => {
            let spaces = " ".repeat(indent);
            let mut new = vec![format!("{spaces}{}:", entry.name)];
            new.extend(
                keys.iter().map(|(key, value)| format!("{spaces}{}{key}: {value}", " ".repeat(INDENT))),
            );
            lines.splice(servers.start + 1..servers.start + 1, new);
        }
        Some(known) => change(&mut lines, known, indent, entry, keys)?,
    }
    let mut after = lines.join("\n");
    after.push('\n');
    // A file that says the same keeps its end too.
    Ok(if after.trim_end() == text.trim_end() { text.to_owned() } else { after })
}

/// Brings an entry that is there up to date.
fn change(
    lines: &mut Vec<String>,
    mut known: Range<usize>,
    outer: usize,
    entry: &Entry,
    keys: &[(&str, Value)],
) -> anyhow::Result<()> {
    open_mapping(lines, known.start)?;
    let indent = indent_inside(lines, known.start + 1..known.end, outer);
    let command = block(lines, known.start + 1..known.end, indent, "cmd")?;
    let command = command.and_then(|place| lines.get(place.start)).map(|line| scalar(value_of(line)));
    entry.check_is_ours(command.as_deref())?;
    for (key, value) in keys {
        let line = format!("{}{key}: {value}", " ".repeat(indent));
        match block(lines, known.start + 1..known.end, indent, key)? {
            None => {
                lines.insert(known.end, line);
                known.end += 1;
            }
            Some(place) if OURS.contains(key) && read(lines, place.clone()) != *value => {
                known.end = known.end - place.len() + 1;
                lines.splice(place, [line]);
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Refuses files whose lines do not tell what belongs to what.
fn check(lines: &[String]) -> anyhow::Result<()> {
    for (number, line) in lines.iter().enumerate() {
        let is_tabbed = line.trim_start_matches(' ').starts_with('\t');
        let is_second_document = number > 0 && (line.starts_with("---") || line.starts_with("..."));
        if is_tabbed || is_second_document || line.starts_with(['{', '[', '%']) {
            return Err(refusal(number));
        }
    }
    Ok(())
}

fn refusal(line: usize) -> anyhow::Error {
    UsageError(format!(
        "line {} is written in a way that is not edited here; put the entry there yourself: run the same command without \
         --write",
        line + 1
    ))
    .into()
}

/// The lines of `key` and its value among the lines of `range`, with `indent` spaces before it.
fn block(
    lines: &[String],
    range: Range<usize>,
    indent: usize,
    key: &str,
) -> anyhow::Result<Option<Range<usize>>> {
    let mut starts = range.clone().filter(|at| lines.get(*at).is_some_and(|line| has_key(line, indent, key)));
    let Some(start) = starts.next() else { return Ok(None) };
    if let Some(twice) = starts.next() {
        return Err(refusal(twice));
    }
    // Comments and empty lines before the next key belong to that one.
    let mut end = start + 1;
    for at in start + 1..range.end {
        let line = lines.get(at).map_or("", String::as_str);
        if is_silent(line) {
            continue;
        }
        let is_item = spaces(line) == indent && line.trim_start().starts_with("- ");
        if spaces(line) <= indent && !is_item {
            break;
        }
        end = at + 1;
    }
    Ok(Some(start..end))
}

fn has_key(line: &str, indent: usize, key: &str) -> bool {
    if spaces(line) != indent {
        return false;
    }
    let line = line.trim_start();
    let after = [key.to_owned(), format!("\"{key}\""), format!("'{key}'")]
        .iter()
        .find_map(|key| line.strip_prefix(key.as_str())?.trim_start().strip_prefix(':'));
    after.is_some_and(|after| after.is_empty() || after.starts_with([' ', '\t']))
}

/// Makes sure that the value of the key at a line is a mapping in the lines below it.
fn open_mapping(lines: &mut [String], at: usize) -> anyhow::Result<()> {
    let Some(line) = lines.get_mut(at) else { return Ok(()) };
    match value_of(line) {
        "" => Ok(()),
        "{}" | "null" | "~" => {
            let key = line.split(':').next().unwrap_or_default();
            *line = format!("{key}:");
            Ok(())
        }
        _ => Err(refusal(at)),
    }
}

/// What stands behind the key of a line, without a comment.
fn value_of(line: &str) -> &str {
    let value = line.split_once(':').map_or("", |(_, value)| value).trim();
    if value.starts_with('#') {
        return "";
    }
    if value.starts_with(['"', '\'']) {
        return value;
    }
    value.split_once(" #").map_or(value, |(value, _)| value.trim_end())
}

/// A text of one line, without its quotes.
fn scalar(value: &str) -> String {
    if let Ok(text) = serde_json::from_str(value) {
        return text;
    }
    let quoted = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    quoted.map_or_else(|| value.to_owned(), |text| text.replace("''", "'"))
}

/// What a key says, as far as it is a text or a list of texts.
fn read(lines: &[String], place: Range<usize>) -> Value {
    let Some(line) = lines.get(place.start) else { return Value::Null };
    let value = value_of(line);
    if let Ok(json) = serde_json::from_str(value) {
        return json;
    }
    if !value.is_empty() {
        return Value::String(scalar(value));
    }
    let items = lines.get(place.start + 1..place.end).unwrap_or_default().iter().map(|line| line.trim());
    items
        .filter(|line| !is_silent(line))
        .map(|line| Value::from(scalar(line.trim_start_matches("- ").trim())))
        .collect()
}

/// The indentation of what is inside a block that is itself indented by `outer`.
fn indent_inside(lines: &[String], inside: Range<usize>, outer: usize) -> usize {
    let said = lines.get(inside).unwrap_or_default().iter().find(|line| !is_silent(line));
    said.map(|line| spaces(line)).filter(|indent| *indent > outer).unwrap_or(outer + INDENT)
}

fn spaces(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Whether a line says nothing: it is empty or a comment.
fn is_silent(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(text: &str) -> anyhow::Result<String> {
        let entry =
            Entry { name: "tools".into(), command: "/bin/cofferdam".into(), arguments: vec!["serve".into()] };
        let keys =
            [("enabled", json!(true)), ("cmd", json!("/bin/cofferdam")), ("args", json!(["serve", "a\"b"]))];
        with_entry(text, &entry, &keys)
    }

    const NEW: &str =
        "  tools:\n    enabled: true\n    cmd: \"/bin/cofferdam\"\n    args: [\"serve\",\"a\\\"b\"]\n";

    #[test]
    fn a_server_is_added_and_every_other_line_stays() {
        for (before, after) in [
            ("", format!("extensions:\n{NEW}")),
            ("extensions: {}\n", format!("extensions:\n{NEW}")),
            ("# mine\nA: 1 # one\n", format!("# mine\nA: 1 # one\nextensions:\n{NEW}")),
            (
                "extensions:\n  # built in\n  dev:\n    enabled: true\n\nGOOSE_MODEL: x\n",
                format!("extensions:\n{NEW}  # built in\n  dev:\n    enabled: true\n\nGOOSE_MODEL: x\n"),
            ),
            (
                "extensions: # all\n    dev: {}",
                format!(
                    "extensions: # all\n{}    dev: {{}}\n",
                    NEW.replace("\n    ", "\n      ").replacen("  tools", "    tools", 1)
                ),
            ),
        ] {
            assert_eq!(with(before).unwrap(), after);
            assert_eq!(with(&after).unwrap(), after, "twice is once");
        }
    }

    #[test]
    fn a_server_that_is_there_keeps_what_a_person_added() {
        let before = "extensions:\n  tools:\n    enabled: false # for now\n    cmd: /old/cofferdam\n    args:\n    - serve\n    - x\n    # secret ones\n    env_keys:\n      - A\n  dev:\n    cmd: npx\n";
        let after = with(before).unwrap();
        let wanted = before
            .replace("cmd: /old/cofferdam", "cmd: \"/bin/cofferdam\"")
            .replace("args:\n    - serve\n    - x\n", "args: [\"serve\",\"a\\\"b\"]\n");
        assert_eq!(after, wanted);
        let rewritten = after.replace("args: [\"serve\",\"a\\\"b\"]", "args:\n      - serve\n      - 'a\"b'");
        assert_eq!(with(&rewritten).unwrap(), rewritten, "the same in other words");
    }

    #[test]
    fn what_lines_alone_do_not_tell_is_refused() {
        for bad in [
            "extensions: {dev: {}}\n",
            "extensions: &all\n  dev: {}\n",
            "{\"extensions\": {}}",
            "extensions:\n\tdev: x\n",
            "a: 1\n---\nb: 2\n",
            "extensions:\n  tools: {cmd: /bin/cofferdam}\n",
            "extensions:\n  tools:\n    cmd: npx\n",
            "extensions:\n  a: {}\nextensions:\n  b: {}\n",
        ] {
            assert!(with(bad).unwrap_err().is::<UsageError>(), "{bad}");
        }
    }
}
