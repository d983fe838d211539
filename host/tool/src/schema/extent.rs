//! Checks the size of a declaration before it is used (`ARG-42`).
//!
//! Length and nesting are visible in the JSON text. The number of nodes is not: thirty definitions
//! that each refer twice to the next are 2 KiB and a billion nodes. So the nodes are counted as a
//! validator would visit them, and counting stops at the limit.
//!
//! Two more properties are checked here, because code that follows schemas from one to the next
//! relies on them: schemas that apply to the same value never form a cycle, and chains of them are
//! short. Every recursion over a value is then bounded by the nesting of the value.

use super::keywords::ApplicationSite;
use super::plan::NodeId;
use super::pointer;
use super::refuse::{SchemaRefusal, refuse};
use super::sites::{Site, Sites};
use crate::declaration::Reason;
use crate::json::{self, Json, JsonShape};

/// Longest JSON text of a schema in bytes.
const BYTES_MAX: usize = 65_536;
/// Deepest nesting of a schema.
const LEVELS_MAX: usize = 64;
/// Maximum number of nodes when every `$ref` is followed.
const NODES_MAX: usize = 10_000;
/// Longest chain of schemas that apply to one value, through `$ref`, `allOf` and similar keywords.
/// Each costs stack, on each level of a value; real declarations have a handful.
const IN_PLACE_MAX: usize = 32;

/// Reads the JSON of a schema within the limits of length and nesting, without repeated keys
/// (`ARG-38`).
pub(super) fn read(text: &str) -> Result<Json<'_>, SchemaRefusal> {
    if text.len() > BYTES_MAX {
        return refuse("", Reason::TooLong { bytes_max: BYTES_MAX });
    }
    if json::levels(text.as_bytes()) > LEVELS_MAX {
        return refuse("", Reason::TooDeep { levels_max: LEVELS_MAX });
    }
    let json = json::read(text.as_bytes(), LEVELS_MAX)
        .or_else(|malformed| refuse("", Reason::NotJson { offset: malformed.offset }))?;
    check_plain(&json, "")?;
    Ok(json)
}

/// Rejects repeated keys, and numbers that cannot be published.
fn check_plain(json: &Json<'_>, at: &str) -> Result<(), SchemaRefusal> {
    match json.shape() {
        JsonShape::Number if json::number(json.raw()).is_none() => refuse(at, Reason::NumberRange),
        JsonShape::Array(items) => items.iter().enumerate().try_for_each(|(index, item)| {
            check_plain(item, &pointer::join(at, &index.to_string()))
        }),
        JsonShape::Object(object) => {
            if let Some(key) = object.repeated() {
                return refuse(
                    &pointer::join(at, key),
                    Reason::RepeatedKey { key: key.to_owned() },
                );
            }
            object
                .members()
                .try_for_each(|(name, member)| check_plain(member, &pointer::join(at, name)))
        }
        _ => Ok(()),
    }
}

/// Counts the nodes that apply to a value or to a part of it, following every `$ref` each time it
/// is reached. A reference back to a schema that is being expanded counts once, and a definition
/// without references does not count.
pub(super) fn check_nodes(sites: &Sites<'_>) -> Result<(), SchemaRefusal> {
    enum ExtentStep {
        Enter(NodeId),
        Leave(NodeId),
    }
    let mut expanding = vec![false; sites.len()];
    let mut pending = vec![ExtentStep::Enter(NodeId(0))];
    let mut nodes = 0;
    // A list instead of recursion: 64 KiB can chain a thousand references.
    while let Some(step) = pending.pop() {
        let (id, entered) = match step {
            ExtentStep::Enter(id) => (id, true),
            ExtentStep::Leave(id) => (id, false),
        };
        let Some(open) = expanding.get_mut(id.0) else { continue };
        let was_open = std::mem::replace(open, entered);
        if !entered {
            continue;
        }
        nodes += 1;
        if nodes > NODES_MAX {
            return refuse("", Reason::TooManyNodes { nodes_max: NODES_MAX });
        }
        let Some(site) = sites.get(id).filter(|_| !was_open) else { continue };
        pending.push(ExtentStep::Leave(id));
        let applied = site.children.iter().filter(|child| child.site != ApplicationSite::Nowhere);
        pending.extend(applied.map(|child| ExtentStep::Enter(child.node)));
        pending.extend(site.reference.map(ExtentStep::Enter));
    }
    Ok(())
}

/// Rejects cycles of schemas that apply to the same value, and chains of them that are too long.
pub(super) fn check_in_place(sites: &Sites<'_>) -> Result<(), SchemaRefusal> {
    let mut walk = InPlace { sites, known: vec![ExtentState::New; sites.len()] };
    for (id, _) in sites.iter() {
        walk.longest_from(id, 0, None)?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum ExtentState {
    New,
    Open,
    /// Done, with the length of the longest chain that follows.
    Done(usize),
}

struct InPlace<'s, 'j> {
    sites: &'s Sites<'j>,
    known: Vec<ExtentState>,
}

impl InPlace<'_, '_> {
    /// Returns the length of the longest chain from `id`. Recursion ends at the limit.
    /// `first_reference` is the schema to report if the chain is a cycle.
    fn longest_from(
        &mut self,
        id: NodeId,
        before: usize,
        first_reference: Option<NodeId>,
    ) -> Result<usize, SchemaRefusal> {
        let Some(site) = self.sites.get(id) else { return Ok(0) };
        if before > IN_PLACE_MAX {
            return refuse(&site.pointer, Reason::TooManyInPlace { steps_max: IN_PLACE_MAX });
        }
        match self.known.get(id.0) {
            Some(ExtentState::Open) => return self.circle(first_reference.unwrap_or(id)),
            Some(ExtentState::Done(after)) if before + after > IN_PLACE_MAX => {
                return refuse(&site.pointer, Reason::TooManyInPlace { steps_max: IN_PLACE_MAX });
            }
            Some(ExtentState::Done(after)) => return Ok(*after),
            _ => {}
        }
        self.set(id, ExtentState::Open);
        let mut after = 0;
        for next in in_place(site) {
            let reference = first_reference.or((site.reference == Some(next)).then_some(id));
            after = after.max(1 + self.longest_from(next, before + 1, reference)?);
        }
        self.set(id, ExtentState::Done(after));
        Ok(after)
    }

    fn set(&mut self, id: NodeId, state: ExtentState) {
        if let Some(known) = self.known.get_mut(id.0) {
            *known = state;
        }
    }

    fn circle(&self, reference: NodeId) -> Result<usize, SchemaRefusal> {
        let at = self
            .sites
            .get(reference)
            .map(|site| pointer::join(&site.pointer, "$ref"))
            .unwrap_or_default();
        refuse(&at, Reason::ReferenceCycle)
    }
}

/// Returns the schemas that apply to the same value as this one.
pub(super) fn in_place(site: &Site<'_>) -> Vec<NodeId> {
    let children = site
        .children
        .iter()
        .filter(|child| child.site == ApplicationSite::Same)
        .map(|child| child.node);
    site.reference.into_iter().chain(children).collect()
}
