//! Builds the nodes of a plan from the keywords of schemas.

use super::declared;
use super::keywords::{self, as_number, count, names};
use super::pattern::Patterns;
use super::plan::{
    Additional, AllowedValues, ArrayPlan, Check, Choice, Contains, CountKind, Format, Kind, NodeId,
    ObjectPlan, Property, SchemaCondition, SchemaNode,
};
use super::pointer::{self, Pointer};
use super::refuse::{SchemaRefusal, refuse};
use super::sites::{Site, Sites};
use crate::declaration::Reason;
use crate::json::{Json, JsonObject, JsonShape};

/// Builds the nodes of all sites. Properties that depend on other nodes (null, defaults,
/// `required`) are filled in later.
///
/// # Errors
/// One refusal for each invalid schema.
pub(super) fn nodes(sites: &Sites<'_>) -> Result<Vec<SchemaNode>, Vec<SchemaRefusal>> {
    let mut patterns = Patterns::new();
    let (mut nodes, mut refusals) = (Vec::with_capacity(sites.len()), Vec::new());
    for (_, site) in sites.iter() {
        match node(sites, site, &mut patterns) {
            Ok(node) => nodes.push(node),
            Err(refusal) => refusals.push(refusal),
        }
    }
    if refusals.is_empty() { Ok(nodes) } else { Err(refusals) }
}

fn node(
    sites: &Sites<'_>,
    site: &Site<'_>,
    patterns: &mut Patterns,
) -> Result<SchemaNode, SchemaRefusal> {
    match site.json.shape() {
        JsonShape::Bool(false) => {
            Ok(SchemaNode { never: Some(site.keyword), ..SchemaNode::default() })
        }
        JsonShape::Object(schema) => {
            NodeBuilder { sites, site, schema, patterns, node: SchemaNode::default() }.build()
        }
        _ => Ok(SchemaNode::default()),
    }
}

struct NodeBuilder<'b, 'j> {
    sites: &'b Sites<'j>,
    site: &'b Site<'j>,
    schema: &'j JsonObject<'j>,
    patterns: &'b mut Patterns,
    node: SchemaNode,
}

impl<'j> NodeBuilder<'_, 'j> {
    fn build(mut self) -> Result<SchemaNode, SchemaRefusal> {
        self.node.reference = self.site.reference;
        self.kinds()?;
        self.node.members = self.members()?;
        self.node.object = self.object()?.map(Box::new);
        self.node.array = self.array().map(Box::new);
        self.applicators();
        for (name, value) in self.schema.members() {
            self.check(name, value)?;
        }
        Ok(self.node)
    }

    /// Sets the types in the order of the declaration, or the implied type if none is declared
    /// (`ARG-22`).
    fn kinds(&mut self) -> Result<(), SchemaRefusal> {
        let format = self.schema.get("format").and_then(Json::as_str).unwrap_or_default();
        let types =
            declared::types(self.schema).or_else(|reason| refuse(&self.at("type"), reason))?;
        let has = |name| self.schema.get(name).is_some();
        self.node.kinds = match types {
            Some(types) => types.into_iter().map(|name| kind(name, format)).collect(),
            None if self.schema.get("enum").or(self.schema.get("const")).is_some() => vec![],
            None if has("properties") || has("additionalProperties") => vec![Kind::Object],
            None if has("items") || has("prefixItems") => vec![Kind::Array],
            // Arguments are always an object, even if the declaration does not say so.
            None if self.site.pointer.is_empty() => vec![Kind::Object],
            None => vec![],
        };
        if self.node.kinds.is_empty() {
            self.node.format = Format::named(format);
        }
        Ok(())
    }

    /// Returns the allowed values. If both keywords are present, `const` determines them and `enum`
    /// is checked afterwards.
    fn members(&self) -> Result<Option<AllowedValues>, SchemaRefusal> {
        let members = match declared::members(self.schema) {
            Ok(members) => members,
            Err((None, reason)) => return refuse(&self.at("enum"), reason),
            Err((Some(index), reason)) => {
                return refuse(&pointer::join(&self.at("enum"), &index.to_string()), reason);
            }
        };
        let constant = self
            .schema
            .get("const")
            .and_then(Json::to_value)
            .map(|value| AllowedValues::new(vec![value]));
        Ok(constant.or(members))
    }

    fn object(&mut self) -> Result<Option<ObjectPlan>, SchemaRefusal> {
        let has = |name| self.schema.get(name).is_some();
        let is_root = self.site.pointer.is_empty();
        let any = [
            "properties",
            "patternProperties",
            "additionalProperties",
            "required",
            "unevaluatedProperties",
        ];
        if !is_root && !any.into_iter().any(has) {
            return Ok(None);
        }
        let properties = self.properties();
        let index =
            properties.iter().enumerate().map(|(index, p)| (p.name.clone(), index)).collect();
        Ok(Some(ObjectPlan {
            drops: (is_root || has("properties")) && !has("additionalProperties"),
            keeps: has("unevaluatedProperties"),
            patterns: self.property_patterns()?,
            additional: self.additional(),
            required_elsewhere: vec![],
            properties,
            index,
        }))
    }

    fn properties(&self) -> Vec<Property> {
        let declared = self.schema.get("properties").and_then(Json::as_object);
        let names =
            declared.into_iter().flat_map(|properties| properties.members().map(|(name, _)| name));
        let property = |name: &str| {
            let node = self.child(&["properties", name])?;
            Some(Property { name: name.to_owned(), node, required: false })
        };
        names.filter_map(|name| property(name)).collect()
    }

    fn property_patterns(&mut self) -> Result<Vec<(regex::Regex, NodeId)>, SchemaRefusal> {
        let mut compiled = Vec::new();
        let declared = self.schema.get("patternProperties").and_then(Json::as_object);
        for (pattern, _) in declared.into_iter().flat_map(|patterns| patterns.members()) {
            let at = pointer::join(&self.at("patternProperties"), pattern);
            let regex = self
                .patterns
                .compile(pattern)
                .or_else(|problem| refuse(&at, Reason::Pattern { problem }))?;
            compiled.extend(self.child(&["patternProperties", pattern]).map(|node| (regex, node)));
        }
        Ok(compiled)
    }

    fn additional(&self) -> Additional {
        match self.schema.get("additionalProperties").map(Json::shape) {
            None => Additional::Unmentioned,
            Some(JsonShape::Bool(false)) => Additional::Forbidden,
            Some(_) => self
                .child(&["additionalProperties"])
                .map_or(Additional::Forbidden, Additional::Schema),
        }
    }

    fn array(&self) -> Option<ArrayPlan> {
        let plan =
            ArrayPlan { prefix: self.children("prefixItems"), items: self.child(&["items"]) };
        (plan.items.is_some() || !plan.prefix.is_empty()).then_some(plan)
    }

    /// Sets the schemas that also decode the same value.
    fn applicators(&mut self) {
        self.node.all_of = self.children("allOf");
        for keyword in ["anyOf", "oneOf"] {
            let branches = self.children(keyword);
            if !branches.is_empty() {
                self.node.choices.push(Choice { keyword, branches });
            }
        }
        self.node.condition = self.child(&["if"]).map(|test| SchemaCondition {
            test,
            then: self.child(&["then"]),
            otherwise: self.child(&["else"]),
        });
        let dependents = self.schema.get("dependentSchemas").and_then(Json::as_object);
        let dependents = dependents.into_iter().flat_map(|map| map.members().map(|(name, _)| name));
        let dependents: Vec<_> = dependents
            .filter_map(|name| Some((name.to_string(), self.child(&["dependentSchemas", name])?)))
            .collect();
        self.node.dependents = dependents;
    }

    fn check(&mut self, name: &str, value: &'j Json<'j>) -> Result<(), SchemaRefusal> {
        declared::bounds(self.schema, name).or_else(|reason| refuse(&self.at(name), reason))?;
        if name == "pattern" {
            let pattern = value.as_str().unwrap_or_default();
            let regex = self.patterns.compile(pattern);
            let regex =
                regex.or_else(|problem| refuse(&self.at(name), Reason::Pattern { problem }))?;
            self.node.checks.push(Check::Pattern(regex));
            return Ok(());
        }
        let check = self.applied_check(name).or_else(|| self.plain_check(name, value));
        // `properties`, `patternProperties` and `additionalProperties` are one check, and so are
        // `items` and `prefixItems`.
        let is_known = |known: &Check| match check {
            Some(Check::Properties) => matches!(known, Check::Properties),
            Some(Check::Items) => matches!(known, Check::Items),
            _ => false,
        };
        if !self.node.checks.iter().any(is_known) {
            self.node.checks.extend(check);
        }
        Ok(())
    }

    /// Returns the check of a keyword that contains schemas.
    fn applied_check(&self, name: &str) -> Option<Check> {
        Some(match name {
            "$ref" => Check::Reference(self.site.reference?),
            "properties" | "patternProperties" | "additionalProperties" => Check::Properties,
            "items" | "prefixItems" => Check::Items,
            "contains" => Check::Contains(Contains {
                node: self.child(&["contains"])?,
                least: self.schema.get("minContains").and_then(count),
                most: self.schema.get("maxContains").and_then(count),
            }),
            "propertyNames" => Check::PropertyNames(self.child(&["propertyNames"])?),
            "dependentSchemas" => Check::DependentSchemas,
            "allOf" => Check::AllOf(self.children("allOf")),
            "anyOf" => Check::AnyOf(self.children("anyOf")),
            "oneOf" => Check::OneOf(self.children("oneOf")),
            "not" => Check::Not(self.child(&["not"])?),
            "if" => Check::Condition(self.node.condition?),
            "unevaluatedProperties" => {
                Check::UnevaluatedProperties(self.child(&["unevaluatedProperties"])?)
            }
            "unevaluatedItems" => Check::UnevaluatedItems(self.child(&["unevaluatedItems"])?),
            _ => return None,
        })
    }

    /// Returns the check of a keyword with a plain value.
    fn plain_check(&self, name: &str, value: &Json<'_>) -> Option<Check> {
        Some(match name {
            "type" => Check::Types(declared::types(self.schema).ok()??),
            "enum" => Check::Members(declared::members(self.schema).ok()??),
            "const" => Check::Members(AllowedValues::new(vec![value.to_value()?])),
            "minimum" => Check::Lower("minimum", as_number(value)?, true),
            "exclusiveMinimum" => Check::Lower("exclusiveMinimum", as_number(value)?, false),
            "maximum" => Check::Upper("maximum", as_number(value)?, true),
            "exclusiveMaximum" => Check::Upper("exclusiveMaximum", as_number(value)?, false),
            "multipleOf" => Check::MultipleOf(as_number(value)?),
            "minLength" => Check::AtLeast(CountKind::Characters, count(value)?),
            "maxLength" => Check::AtMost(CountKind::Characters, count(value)?),
            "minItems" => Check::AtLeast(CountKind::Items, count(value)?),
            "maxItems" => Check::AtMost(CountKind::Items, count(value)?),
            "minProperties" => Check::AtLeast(CountKind::Members, count(value)?),
            "maxProperties" => Check::AtMost(CountKind::Members, count(value)?),
            "uniqueItems" if *value.shape() == JsonShape::Bool(true) => Check::Unique,
            // Null and defaults determine later which of these decoding requires.
            "required" => Check::Required(names(value)),
            "dependentRequired" => {
                let lists = value.as_object()?.members();
                Check::DependentRequired(
                    lists.map(|(name, list)| (name.to_string(), names(list))).collect(),
                )
            }
            _ => return None,
        })
    }

    fn children(&self, keyword: &str) -> Vec<NodeId> {
        let items = self.schema.get(keyword).and_then(Json::as_array).unwrap_or_default();
        (0..items.len()).filter_map(|index| self.child(&[keyword, &index.to_string()])).collect()
    }

    fn child(&self, tokens: &[&str]) -> Option<NodeId> {
        let pointer =
            tokens.iter().fold(self.site.pointer.clone(), |at, token| pointer::join(&at, token));
        let mut child = self.sites.at(&pointer)?;
        // A schema that is only a reference is replaced by its target. References form no cycle.
        while let Some(target) = self.sites.get(child).and_then(bare_reference) {
            child = target;
        }
        Some(child)
    }

    fn at(&self, keyword: &str) -> Pointer {
        pointer::join(&self.site.pointer, keyword)
    }
}

/// Returns the target of a `$ref` that has no other keyword beside it.
fn bare_reference(site: &Site<'_>) -> Option<NodeId> {
    let schema = site.json.as_object()?;
    let says_more =
        schema.members().any(|(name, _)| name != "$ref" && keywords::keyword(name).is_some());
    site.reference.filter(|_| !says_more)
}

/// Returns the kind for a type name. Unknown formats of integers leave the widest range (`ARG-12`).
fn kind(name: &'static str, format: &str) -> Kind {
    match name {
        "null" => Kind::Null,
        "boolean" => Kind::Boolean,
        "integer" => Kind::Integer(match format {
            "int8" => i128::from(i8::MIN)..=i128::from(i8::MAX),
            "int16" => i128::from(i16::MIN)..=i128::from(i16::MAX),
            "int32" => i128::from(i32::MIN)..=i128::from(i32::MAX),
            "int64" => i128::from(i64::MIN)..=i128::from(i64::MAX),
            "uint8" => 0..=i128::from(u8::MAX),
            "uint16" => 0..=i128::from(u16::MAX),
            "uint32" => 0..=i128::from(u32::MAX),
            "uint64" => 0..=i128::from(u64::MAX),
            _ => i128::from(i64::MIN)..=i128::from(u64::MAX),
        }),
        "number" => Kind::Number { single: format == "float" },
        "string" => Kind::Text(Format::named(format)),
        "array" => Kind::Array,
        _ => Kind::Object,
    }
}
