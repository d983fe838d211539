//! Decoding plan: a declaration with everything resolved that can be resolved at load.
//!
//! A plan is a graph, not a tree, because a `$ref` may lead back to a schema that contains it.
//! Nodes refer to each other by number. Two passes use a plan: decoding, which converts a value
//! (`ARG-9` to `ARG-26`), and checking, which validates the result (`ARG-34`). The `checks` of a
//! node keep the order of the declaration, so that of several violated keywords the first one
//! declared is reported.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use regex::Regex;
use serde_json::{Number, Value};

/// A compiled declaration.
#[derive(Debug)]
pub(crate) struct SchemaPlan {
    nodes: Vec<SchemaNode>,
    /// Replacement for a node that does not exist. It rejects every value, so that a bug here
    /// cannot accept invalid ones.
    refusal: SchemaNode,
}

/// Number of a node. The root is number 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(super) usize);

/// A schema.
#[derive(Debug, Default)]
pub(crate) struct SchemaNode {
    /// Keyword whose value this schema is, if the schema is `false`.
    pub(crate) never: Option<&'static str>,
    /// Target of `$ref`.
    pub(crate) reference: Option<NodeId>,
    /// Allowed values from `enum` or `const`, regardless of `type`.
    pub(crate) members: Option<AllowedValues>,
    /// Kinds that the value is converted to (`ARG-19` to `ARG-22`), in the order of `type`. If
    /// empty, the value is not converted.
    pub(crate) kinds: Vec<Kind>,
    /// String `format` of a schema that does not convert: the value is only checked.
    pub(crate) format: Option<Format>,
    pub(crate) object: Option<Box<ObjectPlan>>,
    pub(crate) array: Option<Box<ArrayPlan>>,
    pub(crate) all_of: Vec<NodeId>,
    /// Alternatives of `anyOf` and `oneOf`.
    pub(crate) choices: Vec<Choice>,
    pub(crate) condition: Option<SchemaCondition>,
    /// Schemas of `dependentSchemas`.
    pub(crate) dependents: Vec<(String, NodeId)>,
    /// Checks of the decoded value, in declaration order.
    pub(crate) checks: Vec<Check>,
    /// True if the schema accepts null (`ARG-4`).
    pub(crate) nullable: bool,
    /// Default of the schema or of its `$ref` target, completed (`ARG-7`).
    pub(crate) default: Option<DefaultValue>,
}

/// A default with the cost of copying it.
#[derive(Debug, Clone)]
pub(crate) struct DefaultValue {
    pub(crate) value: Value,
    pub(crate) weight: u64,
}

/// Kind that a value can be converted to.
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

/// Formats that are enforced (`ARG-34`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Uuid,
    DateTime,
    Date,
    Time,
    Duration,
}

/// Values of an `enum`, or the single one of a `const`.
#[derive(Debug, Clone)]
pub(crate) struct AllowedValues {
    pub(crate) values: Vec<Value>,
    /// Lower-case form of each member, if all are strings (`ARG-18`).
    pub(crate) folded: Option<Vec<String>>,
}

/// Properties and all other rules for the members of an object.
#[derive(Debug, Default)]
pub(crate) struct ObjectPlan {
    pub(crate) properties: Vec<Property>,
    pub(crate) index: HashMap<String, usize>,
    pub(crate) patterns: Vec<(Regex, NodeId)>,
    pub(crate) additional: Additional,
    /// Names in `required` that another schema of the same value declares instead of this one.
    pub(crate) required_elsewhere: Vec<String>,
    /// True if undeclared keys are dropped (`ARG-24`).
    pub(crate) drops: bool,
    /// True if `unevaluatedProperties` decides about undeclared keys, which are then not dropped.
    pub(crate) keeps: bool,
}

#[derive(Debug)]
pub(crate) struct Property {
    pub(crate) name: String,
    pub(crate) node: NodeId,
    /// True if listed in `required`, not nullable and without a default (`ARG-2`).
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
pub(crate) struct SchemaCondition {
    pub(crate) test: NodeId,
    pub(crate) then: Option<NodeId>,
    pub(crate) otherwise: Option<NodeId>,
}

/// Check of one validation keyword.
#[derive(Debug)]
pub(crate) enum Check {
    Reference(NodeId),
    Types(Vec<&'static str>),
    Members(AllowedValues),
    /// Bound of a number; true if the bound itself is allowed.
    Lower(&'static str, Number, bool),
    Upper(&'static str, Number, bool),
    MultipleOf(Number),
    AtLeast(CountKind, u64),
    AtMost(CountKind, u64),
    Pattern(Regex),
    Unique,
    Contains(Contains),
    /// Checks `properties`, `patternProperties` and `additionalProperties` of the node's object
    /// plan.
    Properties,
    /// Checks `prefixItems` and `items` of the node's array plan.
    Items,
    Required(Vec<String>),
    PropertyNames(NodeId),
    DependentRequired(Vec<(String, Vec<String>)>),
    DependentSchemas,
    AllOf(Vec<NodeId>),
    AnyOf(Vec<NodeId>),
    OneOf(Vec<NodeId>),
    Not(NodeId),
    Condition(SchemaCondition),
    UnevaluatedProperties(NodeId),
    UnevaluatedItems(NodeId),
}

/// Subject of a count, which determines the keywords for its minimum and maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountKind {
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

impl SchemaPlan {
    pub(super) fn new(nodes: Vec<SchemaNode>) -> Self {
        Self { nodes, refusal: SchemaNode { never: Some("$ref"), ..SchemaNode::default() } }
    }

    /// Returns a plan that no value passes.
    pub(super) fn refusing() -> Self {
        Self::new(vec![SchemaNode { never: Some("$ref"), ..SchemaNode::default() }])
    }

    pub(crate) const ROOT: NodeId = NodeId(0);

    pub(crate) fn node(&self, id: NodeId) -> &SchemaNode {
        debug_assert!(id.0 < self.nodes.len(), "ids are made by the builder alone");
        self.nodes.get(id.0).unwrap_or(&self.refusal)
    }

    pub(super) fn node_mut(&mut self, id: NodeId) -> Option<&mut SchemaNode> {
        self.nodes.get_mut(id.0)
    }

    /// Returns the kinds that a value may have, in the words of `ARG-33` and in the order of the
    /// declaration. Consults references and alternatives if the schema itself states none; empty if
    /// nothing does.
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

impl SchemaNode {
    /// Returns the schemas that apply to the same value and determine its kind.
    pub(super) fn in_place(&self) -> impl Iterator<Item = NodeId> {
        let choices = self.choices.iter().flat_map(|choice| choice.branches.iter().copied());
        self.reference.into_iter().chain(self.all_of.iter().copied()).chain(choices)
    }
}

impl Kind {
    /// Returns the kind in the words of `ARG-33`.
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
    /// Returns the format of that name, if it is an enforced one.
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

impl AllowedValues {
    pub(super) fn new(values: Vec<Value>) -> Self {
        let folded = values.iter().map(|value| value.as_str().map(str::to_lowercase)).collect();
        Self { values, folded }
    }
}

impl CountKind {
    pub(crate) fn keywords(self) -> (&'static str, &'static str) {
        match self {
            Self::Characters => ("minLength", "maxLength"),
            Self::Items => ("minItems", "maxItems"),
            Self::Members => ("minProperties", "maxProperties"),
        }
    }
}
