//! Locates the schemas of a declaration: every subschema by its JSON Pointer, and the links between
//! them.
//!
//! Nothing is compiled here. The cost is linear in the length of the JSON text, so that the counts
//! of `ARG-42` can be taken from the result before anything else happens.

use std::collections::HashMap;

use super::keywords::{self, ApplicationSite, KeywordShape};
use super::plan::NodeId;
use super::pointer::{self, Pointer};
use super::refuse::{SchemaRefusal, refuse};
use crate::declaration::Reason;
use crate::json::{Json, JsonShape as Kind};

/// All schemas of one declaration. The number of a site is the number of its node.
#[derive(Debug)]
pub(super) struct Sites<'j> {
    sites: Vec<Site<'j>>,
    by_pointer: HashMap<Pointer, NodeId>,
}

/// A schema in the declaration.
#[derive(Debug)]
pub(super) struct Site<'j> {
    pub(super) pointer: Pointer,
    pub(super) json: &'j Json<'j>,
    /// Keyword whose value is or contains the schema.
    pub(super) keyword: &'static str,
    /// The enclosing schema, if both apply to the same value.
    pub(super) around: Option<NodeId>,
    pub(super) children: Vec<Child>,
    /// Target of `$ref`.
    pub(super) reference: Option<NodeId>,
}

/// A subschema that lies within another schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct Child {
    pub(super) node: NodeId,
    pub(super) site: ApplicationSite,
}

/// Finds all schemas, including those that only a `$ref` reaches.
pub(super) fn locate<'j>(root: &'j Json<'j>) -> Result<Sites<'j>, SchemaRefusal> {
    let mut locator = Locator {
        root,
        sites: Sites { sites: vec![], by_pointer: HashMap::new() },
        references: vec![],
    };
    locator.visit(Pointer::new(), root, "", None)?;
    // A reference may lead to a schema with further references, so the list grows while it is
    // processed.
    let mut next = 0;
    while let Some((from, reference)) = locator.references.get(next).copied() {
        next += 1;
        locator.follow(from, reference)?;
    }
    Ok(locator.sites)
}

impl<'j> Sites<'j> {
    pub(super) fn get(&self, id: NodeId) -> Option<&Site<'j>> {
        self.sites.get(id.0)
    }

    pub(super) fn at(&self, pointer: &str) -> Option<NodeId> {
        self.by_pointer.get(pointer).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.sites.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (NodeId, &Site<'j>)> {
        self.sites.iter().enumerate().map(|(index, site)| (NodeId(index), site))
    }
}

struct Locator<'j> {
    root: &'j Json<'j>,
    sites: Sites<'j>,
    references: Vec<(NodeId, &'j str)>,
}

impl<'j> Locator<'j> {
    /// Records a schema and everything within it. Recursion ends at the nesting limit of `ARG-42`.
    fn visit(
        &mut self,
        pointer: Pointer,
        json: &'j Json<'j>,
        keyword: &'static str,
        around: Option<NodeId>,
    ) -> Result<NodeId, SchemaRefusal> {
        if let Some(known) = self.sites.at(&pointer) {
            return Ok(known);
        }
        let id = NodeId(self.sites.len());
        self.sites.by_pointer.insert(pointer.clone(), id);
        let site = Site {
            pointer: pointer.clone(),
            json,
            keyword,
            around,
            children: vec![],
            reference: None,
        };
        self.sites.sites.push(site);
        match json.shape() {
            Kind::Bool(_) => {}
            Kind::Object(object) => {
                for (name, value) in object.members() {
                    self.keyword(id, &pointer, name, value)?;
                }
            }
            _ => return refuse(&pointer, Reason::KeywordShape { expected: "a schema" }),
        }
        Ok(id)
    }

    fn keyword(
        &mut self,
        id: NodeId,
        at: &Pointer,
        name: &str,
        value: &'j Json<'j>,
    ) -> Result<(), SchemaRefusal> {
        let Some((keyword, shape, site)) = keywords::keyword(name) else { return Ok(()) };
        let at = pointer::join(at, name);
        keywords::check(shape, value)
            .map_err(|reason| SchemaRefusal { pointer: at.clone(), reason })?;
        match (keyword, shape) {
            ("$ref", _) => self.references.extend(value.as_str().map(|reference| (id, reference))),
            ("$id", _) if id != NodeId(0) => return refuse(&at, Reason::NestedId),
            (_, KeywordShape::Schema) => self.child(id, at, value, keyword, site)?,
            (_, KeywordShape::SchemaList) => {
                for (index, item) in value.as_array().unwrap_or_default().iter().enumerate() {
                    self.child(id, pointer::join(&at, &index.to_string()), item, keyword, site)?;
                }
            }
            (_, KeywordShape::SchemaMap) => {
                for (name, member) in
                    value.as_object().into_iter().flat_map(|object| object.members())
                {
                    self.child(id, pointer::join(&at, name), member, keyword, site)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn child(
        &mut self,
        parent: NodeId,
        pointer: Pointer,
        json: &'j Json<'j>,
        keyword: &'static str,
        site: ApplicationSite,
    ) -> Result<(), SchemaRefusal> {
        let around = (site == ApplicationSite::Same).then_some(parent);
        let node = self.visit(pointer, json, keyword, around)?;
        if let Some(above) = self.sites.sites.get_mut(parent.0) {
            above.children.push(Child { node, site });
        }
        Ok(())
    }

    fn follow(&mut self, from: NodeId, reference: &'j str) -> Result<(), SchemaRefusal> {
        let at = self
            .sites
            .get(from)
            .map(|site| pointer::join(&site.pointer, "$ref"))
            .unwrap_or_default();
        let refusal = |reason| SchemaRefusal { pointer: at.clone(), reason };
        let fragment = self.fragment(reference).ok_or_else(|| refusal(Reason::RemoteReference))?;
        let (pointer, json) = self
            .target(&fragment)
            .ok_or_else(|| refusal(Reason::DanglingReference { target: reference.to_owned() }))?;
        let target = self.visit(pointer, json, "$ref", None)?;
        if let Some(site) = self.sites.sites.get_mut(from.0) {
            site.reference = Some(target);
        }
        Ok(())
    }

    /// Returns the part of a reference after `#` if it stays in this document. The only base is the
    /// `$id` of the top level.
    fn fragment(&self, reference: &str) -> Option<String> {
        let own = self.root.as_object().and_then(|root| root.get("$id")).and_then(Json::as_str);
        let rest = own
            .and_then(|id| reference.strip_prefix(id.trim_end_matches('#')))
            .unwrap_or(reference);
        let fragment = if rest.is_empty() { "" } else { rest.strip_prefix('#')? };
        Some(pointer::percent_decoded(fragment))
    }

    fn target(&self, fragment: &str) -> Option<(Pointer, &'j Json<'j>)> {
        if fragment.is_empty() || fragment.starts_with('/') {
            return pointer::find(self.root, fragment);
        }
        let is_anchor = |site: &&Site<'j>| {
            let anchor = site.json.as_object().and_then(|object| object.get("$anchor"));
            anchor.and_then(Json::as_str) == Some(fragment)
        };
        self.sites.sites.iter().find(is_anchor).map(|site| (site.pointer.clone(), site.json))
    }
}
