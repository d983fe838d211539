//! Descriptions of functions from the component: the `package-docs` section that the WIT tools
//! write.
//!
//! The section is JSON behind a version byte, in the outermost component. It is read here and not
//! by the WIT library, which resolves whole packages for it and recurses over bytes from strangers.
//! A section that is missing, too long or not understood is no docs: like every custom section it
//! cannot make a component invalid.
//!
//! The Rust toolchain does not keep the section when it builds a component; tools that inject it
//! afterwards do, and so does everything that writes components with `wit-component`'s package
//! encoding.
//!
//! Lines of a function's docs that start like this are about one parameter, named as in WIT or as
//! in JSON:
//!
//! ```text
//! @param city Where to look. One line.
//! @default days = 3
//! @example city = "Ulm"
//! ```
//!
//! What stands behind `=` is JSON. `@example` may be repeated. A line that is about no parameter,
//! or is not JSON, refuses the plugin: it was meant to be part of the schema.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::names;
use crate::manifest::sections;

const SECTION: &str = "package-docs";
/// Longest section that is read: a plugin may not say more than 262144 bytes (`ARG-43`), and JSON
/// escapes some of them.
const SECTION_BYTES_MAX: usize = 512 * 1024;
/// The versions that look like this: the second one added stability, which says nothing about a
/// tool.
const VERSIONS: [u8; 2] = [0, 1];

/// The docs of a package. Everything else in the section is passed over.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Docs {
    #[serde(default)]
    worlds: BTreeMap<String, World>,
    #[serde(default)]
    interfaces: BTreeMap<String, Interface>,
}

#[derive(Debug, Default, Deserialize)]
struct World {
    #[serde(default)]
    interfaces: BTreeMap<String, Interface>,
    #[serde(default)]
    funcs: BTreeMap<String, FunctionText>,
    #[serde(default)]
    interface_exports: BTreeMap<String, Interface>,
    #[serde(default)]
    func_exports: BTreeMap<String, FunctionText>,
}

#[derive(Debug, Default, Deserialize)]
struct Interface {
    #[serde(default)]
    funcs: BTreeMap<String, FunctionText>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum FunctionText {
    Text(Option<String>),
    WithStability { docs: Option<String> },
}

/// Words about a function, from any source.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Words {
    pub(super) description: Option<String>,
    /// By JSON name.
    pub(super) parameters: BTreeMap<String, ParameterWords>,
}

/// Words about a parameter.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ParameterWords {
    pub(super) description: Option<String>,
    pub(super) default: Option<Value>,
    pub(super) examples: Vec<Value>,
}

impl Docs {
    /// The docs in a component, which has passed the screen.
    pub(super) fn read(component: &[u8]) -> Self {
        let json = section(component).and_then(|section| match section.split_first() {
            Some((version, json)) if VERSIONS.contains(version) => Some(json),
            _ => None,
        });
        json.and_then(|json| serde_json::from_slice(json).ok()).unwrap_or_default()
    }

    /// Returns the words about a function, found by the export that holds it (`None` at the root)
    /// and its name.
    ///
    /// The section does not say which world the component was built for: the first one that has the
    /// export is taken.
    pub(super) fn function(&self, interface: Option<&str>, name: &str) -> Option<&str> {
        let text = match interface {
            None => self
                .worlds
                .values()
                .find_map(|w| w.func_exports.get(name).or_else(|| w.funcs.get(name))),
            Some(export) if export.contains(':') => {
                self.interfaces.get(names::interface(export))?.funcs.get(name)
            }
            Some(export) => self.worlds.values().find_map(|world| {
                let inline =
                    world.interface_exports.get(export).or_else(|| world.interfaces.get(export));
                inline?.funcs.get(name)
            }),
        };
        match text? {
            FunctionText::Text(docs) | FunctionText::WithStability { docs } => docs.as_deref(),
        }
    }
}

impl Words {
    fn parameter(&mut self, name: &str) -> &mut ParameterWords {
        self.parameters.entry(names::snake(name.trim())).or_default()
    }
}

/// The contents of the section, without going into what is nested.
fn section(component: &[u8]) -> Option<&[u8]> {
    sections::custom(component, SECTION)
        .next()
        .filter(|contents| contents.len() <= SECTION_BYTES_MAX)
}

/// Takes the lines about parameters out of a function's docs. The error is the end of a sentence.
pub(super) fn words(docs: &str) -> Result<Words, String> {
    let mut words = Words::default();
    let mut description = Vec::new();
    for line in docs.lines() {
        if !parameter_line(line.trim(), &mut words)? {
            description.push(line.trim_end());
        }
    }
    let description = description.join("\n").trim().to_owned();
    words.description = (!description.is_empty()).then_some(description);
    Ok(words)
}

/// Reads a line about a parameter; false if it is about something else.
fn parameter_line(line: &str, words: &mut Words) -> Result<bool, String> {
    let (tag, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if !matches!(tag, "@param" | "@default" | "@example") {
        return Ok(false);
    }
    if tag == "@param" {
        let (name, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        words.parameter(name).description = Some(text.trim().to_owned());
        return Ok(true);
    }
    let form = || format!("its docs say `{line}`; write `{tag} name = JSON`");
    let (name, json) = rest.split_once('=').ok_or_else(form)?;
    let value = cofferdam_tool::output::parse_json(json.trim())
        .map_err(|error| format!("{}: {error}", form()))?;
    if tag == "@default" {
        words.parameter(name).default = Some(value);
    } else {
        words.parameter(name).examples.push(value);
    }
    Ok(true)
}
