//! The outline (bookmarks) of a document.

use std::collections::{HashMap, HashSet};

use lopdf::{Dictionary, Object, ObjectId};
use schemars::JsonSchema;
use serde::Serialize;

use crate::document::Pdf;

/// Maximum number of entries in a result.
const ENTRIES_MAX: usize = 500;

/// Maximum depth of entries.
const LEVELS_MAX: usize = 16;

/// Maximum number of nodes of the tree of named destinations to visit for one name.
const NODES_MAX: usize = 2000;

/// Entry of the outline.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct Entry {
    title: String,
    /// Level from 1.
    level: usize,
    /// Number of the page, from 1, if the entry points to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<usize>,
}

/// Reads the outline. The second value is true if there are more entries.
pub(crate) fn read(pdf: &Pdf) -> (Vec<Entry>, bool) {
    let numbers: HashMap<ObjectId, usize> =
        pdf.pages.iter().enumerate().map(|(index, id)| (*id, index + 1)).collect();
    let mut entries = Vec::new();
    let mut visited = HashSet::new();
    let root = pdf.document.catalog().ok().and_then(|it| pdf.dictionary(it, b"Outlines"));
    // Entries with their levels; the next one is the last.
    let mut open = Vec::new();
    open.extend(reference(root, b"First").map(|id| (id, 1)));
    while let Some((id, level)) = open.pop() {
        if entries.len() == ENTRIES_MAX {
            return (entries, true);
        }
        if !visited.insert(id) {
            continue;
        }
        let Ok(entry) = pdf.document.get_dictionary(id) else { continue };
        open.extend(reference(Some(entry), b"Next").map(|id| (id, level)));
        if level < LEVELS_MAX {
            open.extend(reference(Some(entry), b"First").map(|id| (id, level + 1)));
        }
        let title = pdf.text(entry, b"Title").unwrap_or_default();
        let page = target(pdf, entry).and_then(|id| numbers.get(&id)).copied();
        entries.push(Entry { title, level, page });
    }
    (entries, false)
}

fn reference(dictionary: Option<&Dictionary>, key: &[u8]) -> Option<ObjectId> {
    dictionary?.get(key).ok()?.as_reference().ok()
}

/// Returns the page that an entry points to.
fn target(pdf: &Pdf, entry: &Dictionary) -> Option<ObjectId> {
    let destination = match pdf.get(entry, b"Dest") {
        Some(destination) => destination,
        None => pdf.get(pdf.dictionary(entry, b"A")?, b"D")?,
    };
    let destination = match destination {
        Object::Name(name) | Object::String(name, _) => named(pdf, name)?,
        other => other,
    };
    let destination = match destination {
        Object::Dictionary(dictionary) => pdf.get(dictionary, b"D")?,
        other => other,
    };
    destination.as_array().ok()?.first()?.as_reference().ok()
}

/// Looks up a named destination.
fn named<'a>(pdf: &'a Pdf, name: &[u8]) -> Option<&'a Object> {
    let catalog = pdf.document.catalog().ok()?;
    if let Some(found) = pdf.dictionary(catalog, b"Dests").and_then(|it| pdf.get(it, name)) {
        return Some(found);
    }
    let root = pdf.dictionary(pdf.dictionary(catalog, b"Names")?, b"Dests")?;
    let mut open = vec![root];
    for _ in 0..NODES_MAX {
        let node = open.pop()?;
        if let Some(Object::Array(pairs)) = pdf.get(node, b"Names") {
            let (pairs, _) = pairs.as_chunks::<2>();
            let found = pairs.iter().find(|[key, _]| key.as_str().is_ok_and(|key| key == name));
            if let Some([_, value]) = found {
                return pdf.object(value);
            }
        }
        if let Some(Object::Array(kids)) = pdf.get(node, b"Kids") {
            let kids = kids.iter().rev().filter_map(|kid| pdf.object(kid)?.as_dict().ok());
            open.extend(kids.filter(|kid| may_contain(pdf, kid, name)));
        }
        if open.len() > NODES_MAX {
            return None;
        }
    }
    None
}

/// Returns false if the limits of a node exclude a name.
fn may_contain(pdf: &Pdf, node: &Dictionary, name: &[u8]) -> bool {
    let Some(Object::Array(limits)) = pdf.get(node, b"Limits") else { return true };
    match limits.as_slice() {
        [first, last] => match (first.as_str(), last.as_str()) {
            (Ok(first), Ok(last)) => first <= name && name <= last,
            _ => true,
        },
        _ => true,
    }
}
