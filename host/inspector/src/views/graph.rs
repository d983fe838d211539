//! Drawing of a graph in layers, made on the server. An executor stands in the layer of the first
//! superstep in which it can run.

use std::collections::{HashMap, VecDeque};

use maud::{Markup, html};

use crate::text::plain_line;
use crate::workflows::WorkflowOutline;

/// Maximum number of executors and edges that are drawn. Larger graphs are tables only.
const DRAWN_MAX: usize = 150;
/// Maximum number of characters of a name or a condition in the drawing.
const LABEL_CHARS_MAX: usize = 22;
const BOX_WIDTH: u64 = 170;
const BOX_HEIGHT: u64 = 44;
const COLUMN: u64 = 200;
const ROW: u64 = 100;
/// Distance of the control points of an arrow to an earlier layer.
const BEND: u64 = 34;
/// Room for the label of such an arrow.
const LABEL_WIDTH: u64 = 150;

/// Position of an executor: its layer, and its index in the layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    row: u64,
    column: u64,
}

/// Returns the drawing, or `None` for a graph that is too large. `states` has the class and the
/// state in words of each executor.
pub(super) fn drawing(
    outline: &WorkflowOutline,
    states: &[(&'static str, String)],
) -> Option<Markup> {
    if outline.executors.is_empty()
        || outline.executors.len() > DRAWN_MAX
        || outline.edges.len() > DRAWN_MAX
    {
        return None;
    }
    let cells = cells(outline);
    let columns = cells.values().map(|cell| cell.column).max().unwrap_or(0) + 1;
    let rows = cells.values().map(|cell| cell.row).max().unwrap_or(0) + 1;
    let has_label_aside = outline.edges.iter().any(|edge| {
        let ends = (cells.get(edge.from.as_str()), cells.get(edge.to.as_str()));
        edge.label.is_some() && matches!(ends, (Some(from), Some(to)) if to.row <= from.row)
    });
    let aside = if has_label_aside { LABEL_WIDTH } else { 0 };
    let (width, height) = (columns * COLUMN + BEND + aside, rows * ROW);
    let title = format!(
        "Graph of {}: {} executors, {} edges",
        plain_line(&outline.name),
        outline.executors.len(),
        outline.edges.len()
    );
    Some(html! {
        div.scroll tabindex="0" role="region" aria-label="Graph" {
            svg.graph role="img" aria-labelledby="graph-title" width=(width) height=(height)
                viewBox={ "0 0 " (width) " " (height) } {
                title id="graph-title" { (title) }
                @for edge in &outline.edges {
                    @if let (Some(from), Some(to)) = (cells.get(edge.from.as_str()), cells.get(edge.to.as_str())) {
                        (arrow(*from, *to, edge.label.as_deref()))
                    }
                }
                @for (index, executor) in outline.executors.iter().enumerate() {
                    @if let Some(cell) = cells.get(executor.as_str()) {
                        (node(index, executor, *cell, states.get(index)))
                    }
                }
            }
        }
    })
}

/// Returns the position of each executor.
fn cells(outline: &WorkflowOutline) -> HashMap<&str, Cell> {
    let mut rows: HashMap<&str, u64> = HashMap::from([(outline.start.as_str(), 0)]);
    let mut waiting = VecDeque::from([outline.start.as_str()]);
    while let Some(executor) = waiting.pop_front() {
        let row = rows.get(executor).copied().unwrap_or(0) + 1;
        for edge in outline.edges.iter().filter(|edge| edge.from == executor) {
            if !rows.contains_key(edge.to.as_str()) {
                rows.insert(&edge.to, row);
                waiting.push_back(&edge.to);
            }
        }
    }
    // What no edge leads to comes last.
    let last = rows.values().max().copied().unwrap_or(0) + 1;
    let mut columns: HashMap<u64, u64> = HashMap::new();
    let position = |executor: &String| -> (u64, u64) {
        let row = rows.get(executor.as_str()).copied().unwrap_or(last);
        let column = columns.entry(row).or_default();
        *column += 1;
        (row, *column - 1)
    };
    let positions: Vec<_> = outline.executors.iter().map(position).collect();
    let executors = outline.executors.iter().map(String::as_str);
    executors.zip(positions).map(|(id, (row, column))| (id, Cell { row, column })).collect()
}

impl Cell {
    fn x(self) -> u64 {
        self.column * COLUMN + 10
    }

    fn y(self) -> u64 {
        self.row * ROW + 10
    }
}

/// Draws an executor. A script keeps its state current.
fn node(index: usize, id: &str, cell: Cell, state: Option<&(&'static str, String)>) -> Markup {
    let (x, y) = (cell.x(), cell.y());
    let (class, words) = state.map_or(("idle", ""), |(class, words)| (*class, words.as_str()));
    html! {
        g class=(class) data-executor=(index) {
            title { (plain_line(id)) ": " (words) }
            rect x=(x) y=(y) width=(BOX_WIDTH) height=(BOX_HEIGHT) rx="5" {}
            text x=(x + 8) y=(y + 18) { (short(id)) }
            text.state x=(x + 8) y=(y + 36) { (short(words)) }
        }
    }
}

/// Draws an arrow: straight down to a later layer, and around the right side to an earlier one.
fn arrow(from: Cell, to: Cell, label: Option<&str>) -> Markup {
    let (path, head, at) = if to.row > from.row {
        let (x, y) = (from.x() + BOX_WIDTH / 2, from.y() + BOX_HEIGHT);
        let (end_x, end_y) = (to.x() + BOX_WIDTH / 2, to.y() - 2);
        let path = format!("M{x} {y} L{end_x} {end_y}");
        let head =
            format!("{},{} {},{} {end_x},{end_y}", end_x - 4, end_y - 8, end_x + 4, end_y - 8);
        // Closer to the end, where edges of one executor are apart.
        (path, head, ((x + 2 * end_x) / 3, (y + 2 * end_y) / 3))
    } else {
        let (x, y) = (from.x() + BOX_WIDTH, from.y() + BOX_HEIGHT / 2);
        let (end_x, end_y) = (to.x() + BOX_WIDTH + 2, to.y() + BOX_HEIGHT / 2 + 8);
        let bend = x.max(end_x) + BEND;
        let path = format!("M{x} {y} C{bend} {y} {bend} {end_y} {end_x} {end_y}");
        let head =
            format!("{},{} {},{} {end_x},{end_y}", end_x + 8, end_y - 4, end_x + 8, end_y + 4);
        // The curve is as far to the right as three quarters of the bend.
        (path, head, (bend.saturating_sub(BEND / 4), y.midpoint(end_y)))
    };
    html! {
        g.edge {
            @if let Some(label) = label { title { (plain_line(label)) } }
            path d=(path) {}
            polygon points=(head) {}
            @if let Some(label) = label { text x=(at.0 + 4) y=(at.1) { (short(label)) } }
        }
    }
}

/// Returns the start of a text that has no room.
fn short(text: &str) -> String {
    let text = plain_line(text);
    match text.chars().count() {
        0..=LABEL_CHARS_MAX => text,
        _ => text.chars().take(LABEL_CHARS_MAX - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflows::OutlineEdge;

    fn outline(executors: &[&str], edges: &[(&str, &str)]) -> WorkflowOutline {
        let edge = |(from, to): &(&str, &str)| OutlineEdge {
            from: (*from).to_owned(),
            to: (*to).to_owned(),
            label: None,
        };
        WorkflowOutline {
            name: "review".to_owned(),
            start: executors.first().copied().unwrap_or_default().to_owned(),
            executors: executors.iter().map(|id| (*id).to_owned()).collect(),
            edges: edges.iter().map(edge).collect(),
            ..WorkflowOutline::default()
        }
    }

    #[test]
    fn executors_stand_in_the_layer_of_their_first_superstep() {
        let edges = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "a")];
        let outline = outline(&["a", "b", "c", "d", "lonely"], &edges);
        let cells = cells(&outline);
        let at = |id: &str| (cells[id].row, cells[id].column);
        assert_eq!((at("a"), at("b"), at("c")), ((0, 0), (1, 0), (1, 1)));
        assert_eq!((at("d"), at("lonely")), ((2, 0), (3, 0)));
    }

    #[test]
    fn names_are_text_and_large_graphs_are_tables() {
        let long = "<script>\u{202e}".repeat(9);
        let small = outline(&[&long], &[(&long, &long)]);
        let states = [("waiting", "waits".to_owned())];
        let drawn = drawing(&small, &states).unwrap().into_string();
        assert!(!drawn.contains("<script>") && !drawn.contains('\u{202e}'), "{drawn}");
        assert!(
            drawn.contains("<g class=\"waiting\" data-executor=\"0\">")
                && drawn.contains("…</text>"),
            "{drawn}"
        );
        let many: Vec<_> = (0..200).map(|n| n.to_string()).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert!(drawing(&outline(&many, &[]), &[]).is_none());
        assert!(drawing(&outline(&[], &[]), &[]).is_none());
    }
}
