//! YAML parser for front matter, which keeps scalars as strings (`SKILL-5`).
//!
//! A typed reader would turn `1.0` into a number and lose its spelling, so this module builds the
//! tree from the parser's events. Aliases share the node that they refer to: their size is counted,
//! but the node is not copied. The parser limits the nesting of values, which also bounds the
//! recursion here.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use serde_saphyr::granit_parser::{self, Event, Parser, ScalarStyle, ScanError, StrInput, Tag};

use super::rules::{InvalidSkill, quoted};

/// Maximum bytes of a front matter with everything that its aliases repeat. A front matter without
/// aliases may be larger (`SKILL-5`).
const ALIASED_BYTES_MAX: usize = 64 * 1024;
/// Maximum nesting of values. A valid front matter has three levels.
const LEVELS_MAX: usize = 32;

/// Node of the tree.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum YamlNode {
    /// Null or an empty value.
    Null,
    /// Text of a scalar, regardless of its type.
    Text(String),
    /// List. Its items are dropped, because no field of a front matter is a list.
    List,
    /// Entries in the order of the file.
    Map(Vec<(Rc<YamlNode>, Rc<YamlNode>)>),
}

/// Node with its total size and its canonical form.
#[derive(Clone)]
struct SizedNode {
    node: Rc<YamlNode>,
    bytes: usize,
    /// Canonical form, which identifies the node as the key of a map.
    key: Rc<str>,
}

struct YamlReader<'t> {
    parser: Parser<'t, StrInput<'t>>,
    anchors: HashMap<usize, SizedNode>,
    /// Bytes of the text and of everything that aliases repeat.
    bytes: usize,
    line: usize,
}

/// Parses one document; an empty document is null. Line numbers in errors include the line `---`
/// before the text.
pub(super) fn read(text: &str) -> Result<Rc<YamlNode>, InvalidSkill> {
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: LEVELS_MAX,
        block_nesting_limit: LEVELS_MAX,
    };
    let parser = Parser::new_from_str_with_options(text, options);
    let mut reader = YamlReader { parser, anchors: HashMap::new(), bytes: text.len(), line: 1 };
    let mut document = None;
    loop {
        match reader.event()? {
            Event::StreamEnd => return Ok(document.unwrap_or(Rc::new(YamlNode::Null))),
            Event::StreamStart | Event::DocumentEnd => {}
            Event::DocumentStart(..) if document.is_some() => {
                return Err(reader.broken("a second document"));
            }
            Event::DocumentStart(..) => {
                let event = reader.event()?;
                document = Some(reader.node(event, 0)?.node);
            }
            _ => return Err(reader.broken("more than one value")),
        }
    }
}

impl<'t> YamlReader<'t> {
    /// Returns the next event. Comments are not events.
    fn event(&mut self) -> Result<Event<'t>, InvalidSkill> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => {
                self.line = span.start.line().saturating_add(1);
                Ok(event)
            }
            Some(Err(error)) => Err(not_yaml(&error)),
            None => Ok(Event::StreamEnd),
        }
    }

    fn node(&mut self, event: Event<'t>, level: usize) -> Result<SizedNode, InvalidSkill> {
        if level > LEVELS_MAX {
            return Err(self.broken("values are nested too deep"));
        }
        let (anchor, tag) = (event.anchor_id(), event.tag().cloned());
        let built = match event {
            Event::Alias(id) => return self.alias(id),
            Event::Scalar(text, style, ..) => self.scalar(&text, style, tag.as_ref())?,
            Event::SequenceStart(..) => {
                self.check_tag(tag.as_ref(), "seq")?;
                self.list(level)?
            }
            Event::MappingStart(..) => {
                self.check_tag(tag.as_ref(), "map")?;
                self.map(level)?
            }
            _ => return Err(self.broken("a value is missing")),
        };
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, built.clone());
        }
        Ok(built)
    }

    fn alias(&mut self, id: usize) -> Result<SizedNode, InvalidSkill> {
        let built =
            self.anchors.get(&id).cloned().ok_or(InvalidSkill::Alias { line: self.line })?;
        self.bytes = self.bytes.saturating_add(built.bytes);
        if self.bytes > ALIASED_BYTES_MAX {
            return Err(InvalidSkill::AliasedTooMuch { bytes_max: ALIASED_BYTES_MAX });
        }
        Ok(built)
    }

    fn scalar(
        &self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
    ) -> Result<SizedNode, InvalidSkill> {
        const TEXTS: [&str; 4] = ["str", "int", "float", "bool"];
        let is_empty_word = matches!(text, "" | "~" | "null" | "Null" | "NULL");
        let is_null = match tag {
            None => style == ScalarStyle::Plain && is_empty_word,
            // A scalar with the non-specific tag `!` is a string (YAML 1.2.2, 6.9.1).
            Some(tag) if is_non_specific(tag) => false,
            Some(tag) => match tag.core_suffix() {
                Some("null") if is_empty_word => true,
                Some(kind) if TEXTS.contains(&kind) => false,
                _ => return Err(self.tagged(tag)),
            },
        };
        let node = if is_null { YamlNode::Null } else { YamlNode::Text(text.to_owned()) };
        let key = if is_null { "null".into() } else { format!("text {text}").into() };
        Ok(SizedNode { node: Rc::new(node), bytes: text.len().saturating_add(1), key })
    }

    fn list(&mut self, level: usize) -> Result<SizedNode, InvalidSkill> {
        let (mut bytes, mut key) = (1_usize, String::from("list"));
        loop {
            let event = self.event()?;
            if matches!(event, Event::SequenceEnd) {
                return Ok(SizedNode { node: Rc::new(YamlNode::List), bytes, key: key.into() });
            }
            let item = self.node(event, level + 1)?;
            bytes = bytes.saturating_add(item.bytes);
            self.join(&mut key, &item)?;
        }
    }

    fn map(&mut self, level: usize) -> Result<SizedNode, InvalidSkill> {
        let (mut entries, mut known) = (Vec::new(), HashSet::new());
        let (mut bytes, mut joined) = (1_usize, String::from("map"));
        loop {
            let event = self.event()?;
            if matches!(event, Event::MappingEnd) {
                let node = Rc::new(YamlNode::Map(entries));
                return Ok(SizedNode { node, bytes, key: joined.into() });
            }
            let key = self.node(event, level + 1)?;
            if !known.insert(Rc::clone(&key.key)) {
                let name = match &*key.node {
                    YamlNode::Text(text) => quoted(text),
                    _ => "null".to_owned(),
                };
                return Err(InvalidSkill::DuplicateKey { line: self.line, key: name });
            }
            let event = self.event()?;
            let value = self.node(event, level + 1)?;
            bytes = bytes.saturating_add(key.bytes).saturating_add(value.bytes);
            self.join(&mut joined, &key)?;
            self.join(&mut joined, &value)?;
            entries.push((key.node, value.node));
        }
    }

    /// Appends the canonical form of `part` to that of the node that contains it. The length prefix
    /// makes the result unambiguous.
    fn join(&self, whole: &mut String, part: &SizedNode) -> Result<(), InvalidSkill> {
        use std::fmt::Write as _;
        write!(whole, " {}:{}", part.key.len(), part.key)
            .map_err(|_| self.broken("a key is too long"))
    }

    fn check_tag(&self, tag: Option<&Tag>, kind: &str) -> Result<(), InvalidSkill> {
        match tag {
            Some(tag) if !is_non_specific(tag) && tag.core_suffix() != Some(kind) => {
                Err(self.tagged(tag))
            }
            _ => Ok(()),
        }
    }

    fn tagged(&self, tag: &Tag) -> InvalidSkill {
        InvalidSkill::Tag { line: self.line, tag: quoted(&tag.original()) }
    }

    fn broken(&self, reason: &str) -> InvalidSkill {
        InvalidSkill::Yaml { line: self.line, reason: reason.to_owned() }
    }
}

fn is_non_specific(tag: &Tag) -> bool {
    tag.handle().is_empty() && tag.suffix() == "!"
}

fn not_yaml(error: &ScanError) -> InvalidSkill {
    InvalidSkill::Yaml {
        line: error.marker().line().saturating_add(1),
        reason: quoted(&error.info()),
    }
}
