//! Front matter of a `SKILL.md` (`SKILL-1` to `SKILL-5`).

use std::collections::BTreeMap;
use std::rc::Rc;

use cofferdam_tool::text::without_byte_order_mark;

use super::rules::{
    InvalidSkill, MetadataProblem, check_compatibility, check_description, check_name, quoted,
};
use super::yaml::{self, YamlNode};

/// Front matter of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FrontMatter {
    /// Name, which equals that of the directory.
    pub name: String,
    /// Purpose of the skill and when to use it, for the model.
    pub description: String,
    /// License of the skill.
    pub license: Option<String>,
    /// Requirements, in the author's words.
    pub compatibility: Option<String>,
    /// Tools that the author expects to be allowed, as one string. It grants nothing (`SKILL-22`).
    pub allowed_tools: Option<String>,
    /// Additional properties. Entries that are not strings are left out.
    pub metadata: Option<BTreeMap<String, String>>,
    /// Problem of the properties that are left out.
    pub metadata_problem: Option<MetadataProblem>,
}

impl FrontMatter {
    /// Parses the front matter of `text`, the content of a `SKILL.md` in a directory called
    /// `directory`.
    ///
    /// # Errors
    /// The first rule that the front matter breaks. Users never see this error, because discovery
    /// skips invalid skills (`SKILL-6`).
    pub fn parse(text: &str, directory: &str) -> Result<Self, InvalidSkill> {
        let head = yaml::read(head(text)?)?;
        let entries = match &*head {
            YamlNode::Map(entries) => entries.as_slice(),
            YamlNode::Null => &[],
            YamlNode::Text(_) | YamlNode::List => return Err(InvalidSkill::NotAMap),
        };
        let field = |name: &str| {
            entries.iter().find_map(|(key, value)| (text_of(key) == Some(name)).then_some(&**value))
        };
        let name = required(field("name"), "name")?;
        let description = required(field("description"), "description")?;
        check_name(&name)?;
        if name != directory {
            return Err(InvalidSkill::OtherDirectory { name, directory: quoted(directory) });
        }
        check_description(&name, &description)?;
        let compatibility = optional(field("compatibility"), "compatibility")?;
        compatibility.as_deref().map_or(Ok(()), check_compatibility)?;
        Ok(Self {
            name,
            description,
            license: optional(field("license"), "license")?,
            compatibility,
            allowed_tools: optional(field("allowed-tools"), "allowed-tools")?,
            metadata: field("metadata").and_then(metadata),
            metadata_problem: field("metadata").and_then(metadata_problem),
        })
    }
}

/// Returns the lines between the first two lines `---`.
fn head(text: &str) -> Result<&str, InvalidSkill> {
    let text = without_byte_order_mark(text);
    let (first, rest) = text.split_once('\n').ok_or(InvalidSkill::NoFrontMatter)?;
    if !is_fence(first) {
        return Err(InvalidSkill::NoFrontMatter);
    }
    let mut end = 0_usize;
    for line in rest.split_inclusive('\n') {
        if is_fence(line) {
            return Ok(rest.get(..end).unwrap_or_default());
        }
        end = end.saturating_add(line.len());
    }
    Err(InvalidSkill::Unclosed)
}

/// Returns whether a line is `---`, ignoring white space at its end.
fn is_fence(line: &str) -> bool {
    let line = line.strip_suffix('\n').unwrap_or(line);
    let line = line.strip_suffix('\r').unwrap_or(line);
    line.trim_end_matches([' ', '\t']) == "---"
}

/// Returns the value of a field, or an empty string, which a later check rejects.
fn required(value: Option<&YamlNode>, field: &'static str) -> Result<String, InvalidSkill> {
    optional(value, field).map(Option::unwrap_or_default)
}

fn optional(value: Option<&YamlNode>, field: &'static str) -> Result<Option<String>, InvalidSkill> {
    match value {
        None | Some(YamlNode::Null) => Ok(None),
        Some(YamlNode::Text(text)) => Ok(Some(text.clone())),
        Some(YamlNode::List | YamlNode::Map(_)) => Err(InvalidSkill::NotAText { field }),
    }
}

/// Returns the strings of a map, without other values; `None` if the value is not a map
/// (`SKILL-4`).
fn metadata(value: &YamlNode) -> Option<BTreeMap<String, String>> {
    let YamlNode::Map(entries) = value else { return None };
    let text = |(key, value): &(Rc<YamlNode>, Rc<YamlNode>)| {
        Some((text_of(key)?.to_owned(), text_of(value)?.to_owned()))
    };
    Some(entries.iter().filter_map(text).collect())
}

/// Returns what [`metadata`] leaves out. A value that is null is absent, which is no problem.
fn metadata_problem(value: &YamlNode) -> Option<MetadataProblem> {
    let entries = match value {
        YamlNode::Null => return None,
        YamlNode::Text(_) | YamlNode::List => return Some(MetadataProblem::NotAMap),
        YamlNode::Map(entries) => entries,
    };
    let left_out = |(key, value): &(Rc<YamlNode>, Rc<YamlNode>)| match (&**key, &**value) {
        (_, YamlNode::Null) | (YamlNode::Text(_), YamlNode::Text(_)) => None,
        (YamlNode::Text(key), _) => Some(key.clone()),
        _ => Some("a key that is not a string".to_owned()),
    };
    let keys: Vec<_> = entries.iter().filter_map(left_out).collect();
    (!keys.is_empty()).then(|| MetadataProblem::NotTexts { keys: quoted(&keys.join(", ")) })
}

fn text_of(node: &YamlNode) -> Option<&str> {
    match node {
        YamlNode::Text(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
