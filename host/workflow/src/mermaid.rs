//! Mermaid flowcharts of graphs.

use std::fmt::Write as _;

use super::builder::Graph;
use super::edges::EdgeGroup;

/// Returns the flowchart of a graph. Nodes are named `n0`, `n1`, …, because an id may be a keyword
/// of Mermaid or contain any character.
pub(super) fn flowchart(graph: &Graph) -> String {
    let mut chart = Chart { graph, text: "flowchart TD\n".to_owned(), joins: 0 };
    for (index, executor) in graph.executors.iter().enumerate() {
        let id = label(executor.id());
        let drawn = match executor.id() == graph.start {
            true => format!("n{index}([\"{id}\"])"),
            false => format!("n{index}[\"{id}\"]"),
        };
        chart.line(&drawn);
    }
    graph.edges.iter().for_each(|group| chart.group(group));
    chart.text
}

struct Chart<'g> {
    graph: &'g Graph,
    text: String,
    joins: usize,
}

impl Chart<'_> {
    fn line(&mut self, line: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "    {line}");
    }

    fn group(&mut self, group: &EdgeGroup) {
        match group {
            EdgeGroup::Single { from, to, condition } => match condition {
                None => self.arrow(from, "-->", to),
                Some(condition) => self.labeled_edge(from, condition.name(), to),
            },
            EdgeGroup::FanOut { from, to } => to.iter().for_each(|to| self.arrow(from, "-->", to)),
            EdgeGroup::Select { from, to, selection } => {
                to.iter().for_each(|to| self.labeled_edge(from, selection.name(), to));
            }
            EdgeGroup::Switch { from, cases, default } => {
                cases
                    .iter()
                    .for_each(|(condition, to)| self.labeled_edge(from, condition.name(), to));
                self.labeled_edge(from, "otherwise", default);
            }
            EdgeGroup::FanIn { from, to } => self.fan_in(from, to),
        }
    }

    /// Draws a fan-in as a node that joins its sources.
    fn fan_in(&mut self, from: &[String], to: &str) {
        let join = format!("j{}", self.joins);
        self.joins += 1;
        self.line(&format!("{join}((all))"));
        for source in from {
            let source = self.node(source);
            self.line(&format!("{source} --> {join}"));
        }
        let to = self.node(to);
        self.line(&format!("{join} --> {to}"));
    }

    fn arrow(&mut self, from: &str, arrow: &str, to: &str) {
        let (from, to) = (self.node(from), self.node(to));
        self.line(&format!("{from} {arrow} {to}"));
    }

    fn labeled_edge(&mut self, from: &str, text: &str, to: &str) {
        self.arrow(from, &format!("-. \"{}\" .->", label(text)), to);
    }

    fn node(&self, id: &str) -> String {
        self.graph.indices.get(id).map_or_else(String::new, |index| format!("n{index}"))
    }
}

/// Escapes a quoted string: characters that could end it or begin a tag become numeric entities.
fn label(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '<' | '>' | '&' | '#' | '`' | '\\' => format!("#{};", u32::from(c)),
        c if c.is_control() => " ".to_owned(),
        c => c.to_string(),
    });
    escaped.collect()
}
