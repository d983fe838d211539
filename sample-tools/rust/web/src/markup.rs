//! Converts elements that `htmd` converts with losses.

use std::rc::Rc;

use htmd::Element;
use htmd::element_handler::{HandlerResult, Handlers};
use markup5ever_rcdom::{Node, NodeData};

use crate::html::{attribute, tag};

/// Maximum number of columns that a cell takes.
const SPAN_MAX: usize = 20;

/// Escapes text between brackets or quotes of Markdown.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for next in text.chars() {
        if matches!(next, '\\' | '[' | ']' | '`' | '<') {
            escaped.push('\\');
        }
        escaped.push(next);
    }
    escaped
}

/// Row of a table.
struct Row {
    cells: Vec<String>,
    /// True if all its cells are headers.
    is_header: bool,
}

/// Converts a table with all its rows and cells. One with a single column, or with another table in
/// it, arranges a page: only its content is returned.
pub(crate) fn table(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let content = || {
        let content = handlers.walk_children(element.node).content;
        Some(format!("\n\n{}\n\n", content.trim_matches('\n')).into())
    };
    // First: the time to convert each table twice would double with each level.
    if has_table(element.node) {
        return content();
    }
    let mut captions = String::new();
    let mut rows = Vec::new();
    for child in element.node.children.borrow().iter() {
        match tag(child) {
            Some("caption") => {
                let caption = handlers.handle(child).map(|it| it.content).unwrap_or_default();
                captions = captions + caption.trim() + "\n\n";
            }
            Some("tr") => rows.push(row(handlers, child)),
            Some("thead" | "tbody" | "tfoot") => {
                let children = child.children.borrow();
                let found = children.iter().filter(|it| tag(it) == Some("tr"));
                rows.extend(found.map(|it| row(handlers, it)));
            }
            _ => {}
        }
    }
    rows.retain(|row| !row.cells.is_empty());
    let columns = rows.iter().map(|row| row.cells.len()).max().unwrap_or(0);
    if columns < 2 {
        return content();
    }
    // Markdown has no table without a header.
    if rows.first().is_some_and(|row| !row.is_header) {
        rows.insert(0, Row { cells: Vec::new(), is_header: true });
    }
    let mut text = format!("\n\n{captions}");
    for (index, mut row) in rows.into_iter().enumerate() {
        row.cells.resize(columns, String::new());
        text = text + "| " + &row.cells.join(" | ") + " |\n";
        if index == 0 {
            text = text + "|" + &" - |".repeat(columns) + "\n";
        }
    }
    text.push('\n');
    Some(text.into())
}

fn row(handlers: &dyn Handlers, node: &Rc<Node>) -> Row {
    let mut row = Row { cells: Vec::new(), is_header: true };
    for cell in node.children.borrow().iter().filter(|it| matches!(tag(it), Some("td" | "th"))) {
        row.is_header &= tag(cell) == Some("th");
        let content = handlers.handle(cell).map(|result| result.content).unwrap_or_default();
        let content = content.replace("\\\n", " ");
        let content = content.split_whitespace().collect::<Vec<_>>().join(" ");
        row.cells.push(content.replace('|', "\\|"));
        let span = attribute(cell, "colspan").and_then(|it| it.trim().parse().ok()).unwrap_or(1);
        let more = span.clamp(1, SPAN_MAX) - 1;
        row.cells.extend(std::iter::repeat_n(String::new(), more));
    }
    row
}

fn has_table(node: &Rc<Node>) -> bool {
    let mut open: Vec<_> = node.children.borrow().iter().map(Rc::clone).collect();
    while let Some(next) = open.pop() {
        if tag(&next) == Some("table") {
            return true;
        }
        open.extend(next.children.borrow().iter().map(Rc::clone));
    }
    false
}

/// Converts preformatted text to a block of code, in which nothing is markup.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a handler")]
pub(crate) fn code_block(_: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let mut text = String::new();
    let mut language = language(element.node);
    let mut open = vec![Rc::clone(element.node)];
    while let Some(next) = open.pop() {
        match &next.data {
            NodeData::Text { contents } => text.push_str(&contents.borrow()),
            _ if tag(&next) == Some("br") => text.push('\n'),
            _ if tag(&next) == Some("code") => {
                language = language.or_else(|| self::language(&next))
            }
            _ => {}
        }
        open.extend(next.children.borrow().iter().rev().map(Rc::clone));
    }
    let text = text.trim_end_matches('\n');
    let longest = text.split(|it| it != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    let language = language.unwrap_or_default();
    Some(format!("\n\n{fence}{language}\n{text}\n{fence}\n\n").into())
}

/// Returns the language that a class such as `language-rust` names.
fn language(node: &Node) -> Option<String> {
    let classes = attribute(node, "class")?;
    let name = classes.split_whitespace().find_map(|class| class.strip_prefix("language-"))?;
    let is_name = name.chars().all(|it| it.is_ascii_alphanumeric() || "+-#._".contains(it));
    is_name.then(|| name.to_owned())
}
