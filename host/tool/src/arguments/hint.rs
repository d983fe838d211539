//! Hints for a value that none of several alternatives accepts.
//!
//! Alternatives often have a discriminator, a member with a fixed value such as `kind`. If the
//! value has one of these, the hint lists the problems with that alternative; otherwise it lists
//! the possible discriminator values, or the kinds of values that the alternatives accept.

use serde_json::Value;

use super::decoder::Decoder;
use super::draft::{FinishedDraft, ValueDraft};
use super::path::Path;
use crate::json;
use crate::schema::{AllowedValues, Choice, SchemaId};

/// Maximum number of alternatives and problems that a hint lists.
const NAMED_MAX: usize = 24;
/// Longest value that a hint quotes, in bytes.
const SHOWN_BYTES_MAX: usize = 100;
/// Longest hint in bytes. Hints of nested alternatives contain each other.
const HINT_BYTES_MAX: usize = 2000;
/// Longest chain of references that is followed.
const REFERENCES_MAX: usize = 8;

impl<'a> Decoder<'a> {
    /// Describes the values that the alternatives accept, if a few words suffice.
    pub(super) fn hint(
        &mut self,
        choice: &'a Choice,
        draft: &ValueDraft<'a>,
        at: &Path<'_>,
    ) -> Option<String> {
        if self.meter.is_exhausted() {
            return None;
        }
        let hint = match self.discriminator(choice) {
            Some((name, members)) => self.of_tagged(choice, (name, &members), draft, at),
            None => self.of_kinds(choice),
        };
        hint.filter(|hint| hint.len() <= HINT_BYTES_MAX)
    }

    /// Returns the member that discriminates between the alternatives, and its values in the order
    /// of the alternatives.
    fn discriminator(&self, choice: &'a Choice) -> Option<(&'a str, Vec<&'a AllowedValues>)> {
        let (first, _) = choice.branches.split_first()?;
        let object = self.plan.node(self.target(*first)).object.as_deref()?;
        object.properties.iter().find_map(|property| {
            let name = property.name.as_str();
            let members: Option<Vec<_>> =
                choice.branches.iter().map(|branch| self.tag(*branch, name)).collect();
            Some((name, members.filter(|members| members.len() > 1)?))
        })
    }

    /// Returns the fixed values of a required member of an alternative.
    fn tag(&self, branch: SchemaId, name: &str) -> Option<&'a AllowedValues> {
        let object = self.plan.node(self.target(branch)).object.as_deref()?;
        let property = object.index.get(name).and_then(|index| object.properties.get(*index))?;
        let members = self.plan.node(self.target(property.node)).members.as_ref()?;
        property.required.then_some(members)
    }

    /// Returns the schema at the end of a chain of references.
    fn target(&self, id: SchemaId) -> SchemaId {
        let mut target = id;
        for _ in 0..REFERENCES_MAX {
            let Some(next) = self.plan.node(target).reference else { break };
            target = next;
        }
        target
    }

    fn of_tagged(
        &mut self,
        choice: &'a Choice,
        (name, tags): (&str, &[&AllowedValues]),
        draft: &ValueDraft<'a>,
        at: &Path<'_>,
    ) -> Option<String> {
        let value = draft.copy(&mut self.meter).finish(&super::TOP, &mut FinishedDraft::default());
        let listed = || list(tags.iter().flat_map(|members| &members.values).map(shown));
        let Some(object) = value.as_object() else {
            return Some(format!(
                "Expected an object with '{name}', which is one of {}.",
                listed()?
            ));
        };
        let path = at.name(name);
        let Some(given) = object.get(name) else {
            return Some(format!("'{path}' is missing; it must be one of {}.", listed()?));
        };
        let Some(index) = tags.iter().position(|members| names(members, given)) else {
            return Some(format!("'{path}' must be one of {}.", listed()?));
        };
        let branch = *choice.branches.get(index)?;
        let mut copy = draft.copy(&mut self.meter);
        let problems = self.explain(|decoder| decoder.apply(branch, &mut copy, at));
        let texts: Vec<String> = problems
            .iter()
            .take(NAMED_MAX)
            .map(|problem| match &problem.hint {
                Some(hint) => format!("{} {hint}", problem.message),
                None => problem.message.clone(),
            })
            .collect();
        let given = shown(given)?;
        (!texts.is_empty()).then(|| format!("With '{name}' {given}: {}", texts.join(" ")))
    }

    fn of_kinds(&self, choice: &Choice) -> Option<String> {
        let kinds = list(choice.branches.iter().map(|branch| self.kind_of(*branch)))?;
        Some(format!("Expected one of: {kinds}."))
    }

    /// Describes in a few words the values that an alternative accepts.
    fn kind_of(&self, branch: SchemaId) -> Option<String> {
        let node = self.plan.node(self.target(branch));
        if let Some(members) = &node.members {
            return list(members.values.iter().map(shown));
        }
        let required = node.object.as_deref().map(|object| {
            let names = object.properties.iter().filter(|property| property.required);
            names.map(|property| format!("'{}'", property.name)).collect::<Vec<_>>()
        });
        match required {
            Some(names) if !names.is_empty() && names.len() <= NAMED_MAX => {
                Some(format!("an object with {}", names.join(" and ")))
            }
            _ => {
                let expected = self.plan.expected(branch);
                (!expected.is_empty()).then(|| expected.join(" or "))
            }
        }
    }
}

/// Returns true if a value is one of the members. Strings may differ in case (`ARG-18`).
fn names(members: &AllowedValues, given: &Value) -> bool {
    let folded = given.as_str().map(str::to_lowercase);
    members.values.iter().any(|member| {
        json::equal(member, given)
            || (folded.is_some()
                && member.as_str().map(str::to_lowercase).as_deref() == folded.as_deref())
    })
}

fn shown(value: &Value) -> Option<String> {
    let text = value.to_string();
    (text.len() <= SHOWN_BYTES_MAX).then_some(text)
}

/// Joins the distinct strings. Returns `None` if there are too many, or if one of them is missing.
fn list(texts: impl Iterator<Item = Option<String>>) -> Option<String> {
    let mut distinct: Vec<String> = Vec::new();
    for text in texts {
        let text = text?;
        if !distinct.contains(&text) {
            if distinct.len() == NAMED_MAX {
                return None;
            }
            distinct.push(text);
        }
    }
    (!distinct.is_empty()).then(|| distinct.join(", "))
}
