//! How large a declaration is, before anything is done with it (`ARG-42`).
//!
//! Length and nesting are seen in the text. The number of nodes is not: thirty definitions that
//! each refer twice to the next are 2 KiB and a billion nodes. So the nodes are counted as a
//! validator would visit them, and counting stops at the limit.
//!
//! Two more things are found here, because code that follows schemas from one to the next relies on
//! them: schemas that apply to the same value never lead in a circle, and there are not many of
//! them in a row. Every recursion over a value is then bounded by the nesting of the value.

use super::keywords::Place;
use super::plan::NodeId;
use super::pointer;
use super::refuse::{Refusal, refuse};
use super::sites::{Site, Sites};
use crate::declaration::Reason;
use crate::json::{self, Json, Shape};

/// Longest text of a schema.
const BYTES_MAX: usize = 65_536;
/// Deepest nesting of a schema.
const LEVELS_MAX: usize = 64;
/// Most nodes when every `$ref` is followed.
const NODES_MAX: usize = 10_000;
/// Most schemas in a row that apply to one value, through `$ref`, `allOf` and their like. Each
/// costs stack, on each level of a value; declarations that people write have a handful.
const IN_PLACE_MAX: usize = 32;

/// Reads the text of a schema within the limits of length and nesting, without repeated keys
/// (`ARG-38`).
pub(super) fn read(text: &str) -> Result<Json<'_>, Refusal> {
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

/// Refuses repeated keys, and numbers that cannot be published.
fn check_plain(json: &Json<'_>, at: &str) -> Result<(), Refusal> {
    match json.shape() {
        Shape::Number if json::number(json.raw()).is_none() => refuse(at, Reason::NumberRange),
        Shape::Array(items) => items.iter().enumerate().try_for_each(|(index, item)| {
            check_plain(item, &pointer::join(at, &index.to_string()))
        }),
        Shape::Object(object) => {
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

/// Counts the nodes that apply to a value or to a part of it, with every `$ref` as often as it is
/// reached. A reference back to a schema that is being expanded counts once, and a definition that
/// nothing refers to does not count.
pub(super) fn check_nodes(sites: &Sites<'_>) -> Result<(), Refusal> {
    enum Step {
        Enter(NodeId),
        Leave(NodeId),
    }
    let mut expanding = vec![false; sites.len()];
    let mut pending = vec![Step::Enter(NodeId(0))];
    let mut nodes = 0;
    // A list instead of recursion: references can be chained a thousand times in 64 KiB.
    while let Some(step) = pending.pop() {
        let (id, entered) = match step {
            Step::Enter(id) => (id, true),
            Step::Leave(id) => (id, false),
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
        pending.push(Step::Leave(id));
        let applied = site.children.iter().filter(|child| child.place != Place::Nowhere);
        pending.extend(applied.map(|child| Step::Enter(child.node)));
        pending.extend(site.reference.map(Step::Enter));
    }
    Ok(())
}

/// Refuses schemas that apply to the same value in a circle, and too many of them in a row.
pub(super) fn check_in_place(sites: &Sites<'_>) -> Result<(), Refusal> {
    let mut walk = InPlace { sites, known: vec![State::New; sites.len()] };
    for (id, _) in sites.iter() {
        walk.longest_from(id, 0, None)?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum State {
    New,
    Open,
    /// How many schemas follow in a row at most.
    Done(usize),
}

struct InPlace<'s, 'j> {
    sites: &'s Sites<'j>,
    known: Vec<State>,
}

impl InPlace<'_, '_> {
    /// Recursion ends at the limit. `first_reference` is where a person should look when it is a
    /// circle.
    fn longest_from(
        &mut self,
        id: NodeId,
        before: usize,
        first_reference: Option<NodeId>,
    ) -> Result<usize, Refusal> {
        let Some(site) = self.sites.get(id) else { return Ok(0) };
        if before > IN_PLACE_MAX {
            return refuse(&site.pointer, Reason::TooManyInPlace { steps_max: IN_PLACE_MAX });
        }
        match self.known.get(id.0) {
            Some(State::Open) => return self.circle(first_reference.unwrap_or(id)),
            Some(State::Done(after)) if before + after > IN_PLACE_MAX => {
                return refuse(&site.pointer, Reason::TooManyInPlace { steps_max: IN_PLACE_MAX });
            }
            Some(State::Done(after)) => return Ok(*after),
            _ => {}
        }
        self.set(id, State::Open);
        let mut after = 0;
        for next in in_place(site) {
            let reference = first_reference.or((site.reference == Some(next)).then_some(id));
            after = after.max(1 + self.longest_from(next, before + 1, reference)?);
        }
        self.set(id, State::Done(after));
        Ok(after)
    }

    fn set(&mut self, id: NodeId, state: State) {
        if let Some(known) = self.known.get_mut(id.0) {
            *known = state;
        }
    }

    fn circle(&self, reference: NodeId) -> Result<usize, Refusal> {
        let at = self
            .sites
            .get(reference)
            .map(|site| pointer::join(&site.pointer, "$ref"))
            .unwrap_or_default();
        refuse(&at, Reason::ReferenceCycle)
    }
}

/// The schemas that apply to the same value as this one.
pub(super) fn in_place(site: &Site<'_>) -> Vec<NodeId> {
    let children =
        site.children.iter().filter(|child| child.place == Place::Same).map(|child| child.node);
    site.reference.into_iter().chain(children).collect()
}
