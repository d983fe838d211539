//! Edits tables, lists and comments of a TOML document.

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use crate::error::Context as _;

/// Returns the table at `path`. Creates missing tables.
pub fn table<'t>(
    root: &'t mut dyn TableLike,
    path: &[&str],
) -> crate::Result<&'t mut dyn TableLike> {
    let mut here = root;
    for key in path {
        let entry = here.entry(key).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        here = entry.as_table_like_mut().with_context(|| format!("`{key}` is not a table"))?;
    }
    Ok(here)
}

/// Sets a value and keeps the comment behind the old one.
pub fn set(table: &mut dyn TableLike, key: &str, mut value: Value) {
    if let Some(old) = table.get(key).and_then(Item::as_value) {
        *value.decor_mut() = old.decor().clone();
    }
    table.insert(key, Item::Value(value));
}

/// Adds an entry to a list of strings, or of tables with `to`, unless the list has an entry that
/// `is_meant`.
pub(super) fn push(
    table: &mut dyn TableLike,
    key: &str,
    text: &str,
    is_meant: impl Fn(&str) -> bool,
) -> crate::Result<()> {
    let item = table.entry(key).or_insert_with(|| Item::Value(Array::new().into()));
    if let Some(tables) = item.as_array_of_tables_mut() {
        if !tables.iter().filter_map(target_of_table).any(is_meant) {
            let mut entry = Table::new();
            entry.insert("to", text.into());
            tables.push(entry);
        }
        return Ok(());
    }
    let array = item.as_array_mut().with_context(|| format!("`{key}` is not a list"))?;
    if !array.iter().filter_map(target).any(is_meant) {
        array.push(text);
    }
    Ok(())
}

/// Returns an entry of a list: the string, or `to` of the table.
fn target(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.as_inline_table()?.get("to")?.as_str())
}

fn target_of_table(table: &Table) -> Option<&str> {
    table.get("to")?.as_str()
}

/// Removes an entry from a table in the table.
pub(super) fn remove(table: &mut dyn TableLike, key: &str, name: &str) {
    if let Some(inner) = table.get_mut(key).and_then(Item::as_table_like_mut) {
        inner.remove(name);
    }
}

/// Removes entries from a list of strings, or of tables with `to`.
pub(super) fn take_out(table: &mut dyn TableLike, key: &str, is_meant: impl Fn(&str) -> bool) {
    match table.get_mut(key) {
        Some(Item::ArrayOfTables(tables)) => {
            tables.retain(|entry| !target_of_table(entry).is_some_and(&is_meant));
            if tables.is_empty() {
                table.remove(key);
            }
        }
        Some(Item::Value(Value::Array(array))) => take_out_of_array(array, is_meant),
        _ => {}
    }
}

/// Removes entries from an array. The parser stores a comment behind an entry as the prefix of the
/// next one, so the comments before a removed entry are moved.
fn take_out_of_array(array: &mut Array, is_meant: impl Fn(&str) -> bool) {
    let mut comment = String::new();
    let mut index = 0;
    while let Some(value) = array.get_mut(index) {
        let is_gone = target(value).is_some_and(&is_meant);
        let before =
            value.decor().prefix().and_then(|raw| raw.as_str()).unwrap_or_default().to_owned();
        if is_gone {
            if before.contains('#') {
                comment.push_str(before.trim_end());
            }
            array.remove(index);
        } else {
            if !comment.is_empty() {
                value.decor_mut().set_prefix(format!("{comment}{before}"));
                comment.clear();
            }
            index += 1;
        }
    }
    if !comment.is_empty() {
        let trailing = array.trailing().as_str().unwrap_or_default();
        let trailing = if trailing.starts_with(['\n', '\r']) {
            trailing.to_owned()
        } else {
            format!("\n{trailing}")
        };
        array.set_trailing(format!("{comment}{trailing}"));
    }
}

/// Returns the value that passes an environment variable on from the host.
pub(super) fn from_env(name: &str) -> Value {
    let mut table = InlineTable::new();
    table.insert("env", name.into());
    Value::InlineTable(table)
}

/// Keeps the comments above a removed table that a blank line separates from its own: moves them to
/// the next table, or to the end of the document.
pub(super) fn keep_comments(document: &mut DocumentMut, removed: &Table) {
    let Some(comments) = separate_comments(prefix(removed)) else { return };
    let next = removed.position().and_then(|position| {
        let mut next = None;
        each_table(document.as_table_mut(), &mut |table| {
            let is_closer = |other: isize| next.is_none_or(|next| other < next);
            next = table.position().filter(|it| *it > position && is_closer(*it)).or(next);
        });
        next
    });
    let with_comments = |below: &str| {
        let blank_line = if below.is_empty() || below.starts_with('\n') { "" } else { "\n" };
        format!("{comments}\n{blank_line}{below}")
    };
    let Some(next) = next else {
        let below = with_comments(document.trailing().as_str().unwrap_or_default());
        document.set_trailing(below);
        return;
    };
    each_table(document.as_table_mut(), &mut |table| {
        if table.position() == Some(next) {
            let below = prefix(table);
            let below = if below.is_empty() { "\n" } else { below };
            let prefix = with_comments(below);
            table.decor_mut().set_prefix(prefix);
        }
    });
}

/// Returns the text before the header of a table.
fn prefix(table: &Table) -> &str {
    table.decor().prefix().and_then(|raw| raw.as_str()).unwrap_or_default()
}

/// Returns the comments before the last blank line of a prefix, without the line end.
fn separate_comments(prefix: &str) -> Option<&str> {
    let mut end = 0;
    let mut before_blank_line = 0;
    for line in prefix.split_inclusive('\n') {
        if line.ends_with('\n') && line.trim().is_empty() {
            before_blank_line = end;
        }
        end += line.len();
    }
    let comments = prefix.get(..before_blank_line)?.trim_end();
    comments.contains('#').then_some(comments)
}

/// Calls `visit` for each table with a header of its own.
fn each_table(table: &mut Table, visit: &mut dyn FnMut(&mut Table)) {
    for (_, item) in table.iter_mut() {
        match item {
            Item::Table(inner) => {
                if !inner.is_implicit() && !inner.is_dotted() {
                    visit(inner);
                }
                each_table(inner, visit);
            }
            Item::ArrayOfTables(tables) => tables.iter_mut().for_each(|inner| {
                visit(inner);
                each_table(inner, visit);
            }),
            _ => {}
        }
    }
}
