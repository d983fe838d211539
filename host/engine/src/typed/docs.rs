//! Descriptions of functions from the component: the `package-docs` section that the WIT tools
//! write.
//!
//! The section is JSON after a version byte, in the outermost component. It is parsed here and not
//! by the WIT library, which resolves whole packages for it and recurses over untrusted bytes. A
//! section that is missing, too long or invalid counts as no docs: like every custom section it
//! cannot make a component invalid.
//!
//! The Rust toolchain does not keep the section when it builds a component; tools that inject it
//! afterwards do, and so does everything that writes components with `wit-component`'s package
//! encoding.
//!
//! Lines of a function's docs that start like this document one parameter, named as in WIT or as in
//! JSON:
//!
//! ```text
//! @param city Where to look. One line.
//! @default days = 3
//! @example city = "Ulm"
//! ```
//!
//! The text after `=` is JSON. `@example` may be repeated. A line about an unknown parameter, or
//! with invalid JSON, rejects the plugin, because it was meant to be part of the schema.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::names;
use crate::manifest::sections;

const SECTION: &str = "package-docs";
/// Maximum length of a section that is read: descriptions of a plugin may not exceed 262144 bytes
/// (`ARG-43`), and JSON escapes some of them.
const SECTION_BYTES_MAX: usize = 512 * 1024;
/// Versions with this format. The second one added stability, which is irrelevant for tools.
const VERSIONS: [u8; 2] = [0, 1];

/// Docs of a package. Everything else in the section is ignored.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Docs {
    #[serde(default)]
    worlds: BTreeMap<String, World>,
    #[serde(default)]
    interfaces: BTreeMap<String, InterfaceDocs>,
}

#[derive(Debug, Default, Deserialize)]
struct World {
    #[serde(default)]
    interfaces: BTreeMap<String, InterfaceDocs>,
    #[serde(default)]
    funcs: BTreeMap<String, FunctionText>,
    #[serde(default)]
    interface_exports: BTreeMap<String, InterfaceDocs>,
    #[serde(default)]
    func_exports: BTreeMap<String, FunctionText>,
}

#[derive(Debug, Default, Deserialize)]
struct InterfaceDocs {
    #[serde(default)]
    funcs: BTreeMap<String, FunctionText>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum FunctionText {
    Text(Option<String>),
    WithStability { docs: Option<String> },
}

/// Descriptions of a function, from any source.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Words {
    pub(super) description: Option<String>,
    /// Descriptions of parameters, by JSON name.
    pub(super) parameters: BTreeMap<String, ParameterWords>,
}

/// Descriptions of a parameter.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ParameterWords {
    pub(super) description: Option<String>,
    pub(super) default: Option<Value>,
    pub(super) examples: Vec<Value>,
}

impl Docs {
    /// Reads the docs of a component that has passed the screen.
    pub(super) fn read(component: &[u8]) -> Self {
        let json = section(component).and_then(|section| match section.split_first() {
            Some((version, json)) if VERSIONS.contains(version) => Some(json),
            _ => None,
        });
        json.and_then(|json| serde_json::from_slice(json).ok()).unwrap_or_default()
    }

    /// Returns the docs of a function, by the export that contains it (`None` at the root) and its
    /// name.
    ///
    /// The section does not tell which world the component was built for, so the first one with the
    /// export is used.
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

/// Returns the contents of the section, without descending into nested components.
fn section(component: &[u8]) -> Option<&[u8]> {
    sections::custom(component, SECTION)
        .next()
        .filter(|contents| contents.len() <= SECTION_BYTES_MAX)
}

/// Splits the lines about parameters from a function's docs. The error is the end of a sentence.
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

/// Parses a line about a parameter. Returns false for any other line.
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
