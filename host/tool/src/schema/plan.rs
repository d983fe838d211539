//! The decoding plan: a declaration after everything that can be decided at load has been decided.
//!
//! A plan is a graph and not a tree, because a `$ref` may lead back to a schema that contains it.
//! Nodes refer to each other by number. Two passes use a plan: decoding, which converts a value
//! (`ARG-9` to `ARG-26`), and checking, which validates what came out (`ARG-34`). The `checks` of a
//! node keep the order of the declaration, so that of several violated keywords the first one
//! declared is named.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use regex::Regex;
use serde_json::{Number, Value};

/// A compiled declaration.
#[derive(Debug)]
pub(crate) struct Plan {
    nodes: Vec<Node>,
    /// Stands in for a node that does not exist. Nothing passes it: a mistake here must refuse and
    /// not let through.
    refusal: Node,
}

/// The number of a node. The root is number 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(super) usize);

/// One schema.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// The schema `false`; the keyword that it is the value of.
    pub(crate) never: Option<&'static str>,
    /// The target of `$ref`.
    pub(crate) reference: Option<NodeId>,
    /// `enum` and `const`: the value is one of these, whatever `type` says.
    pub(crate) members: Option<Members>,
    /// What the value is converted to (`ARG-19` to `ARG-22`), in the order of `type`. Empty: it
    /// stays as it is.
    pub(crate) kinds: Vec<Kind>,
    /// A `format` of strings in a schema that does not convert: such a value is looked at and kept.
    pub(crate) format: Option<Format>,
    pub(crate) object: Option<Box<ObjectPlan>>,
    pub(crate) array: Option<Box<ArrayPlan>>,
    pub(crate) all_of: Vec<NodeId>,
    /// `anyOf` and `oneOf`.
    pub(crate) choices: Vec<Choice>,
    pub(crate) condition: Option<Condition>,
    /// `dependentSchemas`.
    pub(crate) dependents: Vec<(String, NodeId)>,
    /// What the decoded value is validated by, in declaration order.
    pub(crate) checks: Vec<Check>,
    /// Whether the schema accepts null (`ARG-4`).
    pub(crate) nullable: bool,
    /// The default of the schema or of its `$ref` target, completed (`ARG-7`).
    pub(crate) default: Option<DefaultValue>,
}

/// A default, with what it costs to hand it out.
#[derive(Debug, Clone)]
pub(crate) struct DefaultValue {
    pub(crate) value: Value,
    pub(crate) weight: u64,
}

/// What a value can be converted to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Null,
    Boolean,
    Integer(RangeInclusive<i128>),
    Number { single: bool },
    Text(Option<Format>),
    Array,
    Object,
}

/// The formats that are enforced (`ARG-34`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Uuid,
    DateTime,
    Date,
    Time,
    Duration,
}

/// The values of an `enum`, or the one of a `const`.
#[derive(Debug, Clone)]
pub(crate) struct Members {
    pub(crate) values: Vec<Value>,
    /// The lower-case form of each member if all are strings (`ARG-18`).
    pub(crate) folded: Option<Vec<String>>,
}

/// Properties and everything else that says what the members of an object are.
#[derive(Debug, Default)]
pub(crate) struct ObjectPlan {
    pub(crate) properties: Vec<Property>,
    pub(crate) index: HashMap<String, usize>,
    pub(crate) patterns: Vec<(Regex, NodeId)>,
    pub(crate) additional: Additional,
    /// Names in `required` that this schema does not declare but another one at the same place
    /// does.
    pub(crate) required_elsewhere: Vec<String>,
    /// Undeclared keys are dropped (`ARG-24`).
    pub(crate) drops: bool,
    /// `unevaluatedProperties` decides about undeclared keys, so nobody drops them.
    pub(crate) keeps: bool,
}

#[derive(Debug)]
pub(crate) struct Property {
    pub(crate) name: String,
    pub(crate) node: NodeId,
    /// Listed in `required`, not nullable and without a default (`ARG-2`).
    pub(crate) required: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Additional {
    #[default]
    Unmentioned,
    /// `additionalProperties: false`.
    Forbidden,
    Schema(NodeId),
}

#[derive(Debug, Default)]
pub(crate) struct ArrayPlan {
    pub(crate) prefix: Vec<NodeId>,
    pub(crate) items: Option<NodeId>,
}

#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) keyword: &'static str,
    pub(crate) branches: Vec<NodeId>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Condition {
    pub(crate) test: NodeId,
    pub(crate) then: Option<NodeId>,
    pub(crate) otherwise: Option<NodeId>,
}

/// One keyword of validation.
#[derive(Debug)]
pub(crate) enum Check {
    Reference(NodeId),
    Types(Vec<&'static str>),
    Members(Members),
    /// A bound of a number, and whether the bound itself passes.
    Lower(&'static str, Number, bool),
    Upper(&'static str, Number, bool),
    MultipleOf(Number),
    AtLeast(Counted, u64),
    AtMost(Counted, u64),
    Pattern(Regex),
    Unique,
    Contains(Contains),
    /// `properties`, `patternProperties` and `additionalProperties` of the node's object plan.
    Properties,
    /// `prefixItems` and `items` of the node's array plan.
    Items,
    Required(Vec<String>),
    PropertyNames(NodeId),
    DependentRequired(Vec<(String, Vec<String>)>),
    DependentSchemas,
    AllOf(Vec<NodeId>),
    AnyOf(Vec<NodeId>),
    OneOf(Vec<NodeId>),
    Not(NodeId),
    Condition(Condition),
    UnevaluatedProperties(NodeId),
    UnevaluatedItems(NodeId),
}

/// What a count is of; the keywords for its smallest and its largest value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    Characters,
    Items,
    Members,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Contains {
    pub(crate) node: NodeId,
    pub(crate) least: Option<u64>,
    pub(crate) most: Option<u64>,
}

impl Plan {
    pub(super) fn new(nodes: Vec<Node>) -> Self {
        Self { nodes, refusal: Node { never: Some("$ref"), ..Node::default() } }
    }

    /// A plan that no value passes.
    pub(super) fn refusing() -> Self {
        Self::new(vec![Node { never: Some("$ref"), ..Node::default() }])
    }

    pub(crate) const ROOT: NodeId = NodeId(0);

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        debug_assert!(id.0 < self.nodes.len(), "ids are made by the builder alone");
        self.nodes.get(id.0).unwrap_or(&self.refusal)
    }

    pub(super) fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(id.0)
    }

    /// What a value must be, in the words of `ARG-33` and in the order of the declaration. Through
    /// references and alternatives when the schema itself does not say; empty if nothing says.
    pub(crate) fn expected(&self, id: NodeId) -> Vec<&'static str> {
        let node = self.node(id);
        if !node.kinds.is_empty() {
            return node.kinds.iter().map(Kind::expected).collect();
        }
        let mut words = Vec::new();
        for part in node.in_place().filter(|_| node.members.is_none()) {
            for word in self.expected(part) {
                if !words.contains(&word) {
                    words.push(word);
                }
            }
        }
        words
    }
}

impl Node {
    /// The schemas that are applied to the same value and that say what it is.
    pub(super) fn in_place(&self) -> impl Iterator<Item = NodeId> {
        let choices = self.choices.iter().flat_map(|choice| choice.branches.iter().copied());
        self.reference.into_iter().chain(self.all_of.iter().copied()).chain(choices)
    }
}

impl Kind {
    /// The words of `ARG-33`.
    pub(crate) fn expected(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Number { .. } => "a number",
            Self::Text(None) => "a string",
            Self::Text(Some(format)) => format.expected(),
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }
}

impl Format {
    /// The format of that name, if it is one that is enforced.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "uuid" => Self::Uuid,
            "date-time" => Self::DateTime,
            "date" => Self::Date,
            "time" => Self::Time,
            "duration" => Self::Duration,
            _ => return None,
        })
    }

    pub(crate) fn expected(self) -> &'static str {
        match self {
            Self::Uuid => "a UUID",
            Self::DateTime => "a date-time",
            Self::Date => "a date",
            Self::Time => "a time",
            Self::Duration => "a duration",
        }
    }
}

impl Members {
    pub(super) fn new(values: Vec<Value>) -> Self {
        let folded = values.iter().map(|value| value.as_str().map(str::to_lowercase)).collect();
        Self { values, folded }
    }
}

impl Counted {
    pub(crate) fn keywords(self) -> (&'static str, &'static str) {
        match self {
            Self::Characters => ("minLength", "maxLength"),
            Self::Items => ("minItems", "maxItems"),
            Self::Members => ("minProperties", "maxProperties"),
        }
    }
}
