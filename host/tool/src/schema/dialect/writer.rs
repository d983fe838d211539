//! Walks a declaration and writes it in a dialect.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::Loss;
use super::budget::Budget;
use super::circles::{recursive, references};
use super::conditions::{declares_more, has_properties, restricts_only};
use super::conjoin::conjoin;
use super::rules::{Rules, Siblings};
use super::{finish, numbers, words};
use crate::json::{Json, JsonObject, JsonShape as Kind};
use crate::schema::keywords::{self, KeywordShape};
use crate::schema::plan::{NodeId, SchemaPlan};
use crate::schema::pointer;
use crate::schema::sites::{Site, Sites};

/// Reason why a schema cannot be written by the given rules.
#[derive(Debug)]
pub(super) enum Stop {
    /// The result would be too large.
    TooLarge,
    /// A strict mode cannot express the schema at the pointer.
    CannotSay { pointer: String, what: String },
}

/// A schema being written: its keywords, and sentences for constraints without a keyword.
#[derive(Debug, Default)]
pub(super) struct SchemaDraft {
    pub(super) schema: Map<String, Value>,
    pub(super) said: Vec<String>,
}

pub(super) struct SchemaWriter<'w, 'j> {
    pub(super) sites: &'w Sites<'j>,
    pub(super) rules: &'static Rules,
    pub(super) budget: Budget,
    /// For each schema, true if it is marked as recursive: at least one on every cycle of
    /// references.
    recursive: Vec<bool>,
    /// References to definitions by target; `targets` is the inverse.
    names: HashMap<NodeId, String>,
    targets: HashMap<String, NodeId>,
    names_taken: HashMap<String, usize>,
    losses: Vec<Loss>,
    lost: HashSet<(NodeId, String)>,
}

impl<'w, 'j> SchemaWriter<'w, 'j> {
    pub(super) fn new(sites: &'w Sites<'j>, rules: &'static Rules) -> Self {
        Self {
            sites,
            rules,
            budget: Budget::default(),
            recursive: recursive(sites),
            names: HashMap::new(),
            targets: HashMap::new(),
            names_taken: HashMap::new(),
            losses: vec![],
            lost: HashSet::new(),
        }
    }

    /// Writes the whole schema.
    pub(super) fn write(mut self) -> Result<(Value, Vec<Loss>), Stop> {
        if let Some(index) =
            self.recursive.iter().position(|is| *is).filter(|_| !self.rules.recursion)
        {
            return Err(inexpressible(&self.pointer(NodeId(index)), "a schema contains itself"));
        }
        let mut root = Value::Object(self.root()?);
        let mut definitions = Map::new();
        let mut wanted = references(&root);
        // A definition may refer to others, so the list grows while it is processed.
        let mut next = 0;
        while let Some(reference) = wanted.get(next).cloned() {
            next += 1;
            let Some(name) =
                reference.strip_prefix("#/$defs/").filter(|name| !definitions.contains_key(*name))
            else {
                continue;
            };
            if let Some(id) = self.named(&reference) {
                let definition = self.schema(id)?;
                wanted.extend(references(&definition));
                definitions.insert(name.to_owned(), definition);
            }
        }
        if let Some(root) = root.as_object_mut().filter(|_| !definitions.is_empty()) {
            root.insert("$defs".to_owned(), Value::Object(definitions));
        }
        Ok((root, self.losses))
    }

    /// Writes one complete schema.
    pub(super) fn schema(&mut self, id: NodeId) -> Result<Value, Stop> {
        let mut draft = self.open(id, false)?;
        if self.rules.is_strict {
            let at = self.pointer(id);
            let mut losses = Vec::new();
            finish::finish(&mut draft, self.rules, &at, &mut losses)?;
            losses.into_iter().for_each(|loss| self.note(loss));
        }
        self.described(draft).map(Value::Object)
    }

    pub(super) fn described(&mut self, mut draft: SchemaDraft) -> Result<Map<String, Value>, Stop> {
        self.budget.spend(draft.said.iter().map(String::len).sum())?;
        words::describe(&mut draft.schema, &draft.said);
        wrap_reference(&mut draft.schema, self.rules.siblings);
        Ok(draft.schema)
    }

    /// Writes one schema and merges the schemas that apply to the same value into it, as the rules
    /// require. With `expands`, a reference is always replaced by its target. Schemas that apply to
    /// the same value form no cycle, so this terminates.
    pub(super) fn open(&mut self, id: NodeId, expands: bool) -> Result<SchemaDraft, Stop> {
        self.budget.enter()?;
        let sites = self.sites;
        let mut draft = SchemaDraft::default();
        if let Some(site) = sites.get(id) {
            match site.json.shape() {
                Kind::Object(schema) => draft = self.keywords(id, site, schema, expands)?,
                Kind::Bool(false) => {
                    draft.schema.insert("not".to_owned(), json!({}));
                }
                _ => {}
            }
        }
        self.budget.leave();
        Ok(draft)
    }

    fn keywords(
        &mut self,
        id: NodeId,
        site: &Site<'j>,
        schema: &JsonObject<'j>,
        expands: bool,
    ) -> Result<SchemaDraft, Stop> {
        let mut draft = SchemaDraft::default();
        for (name, value) in schema.members() {
            self.keyword(&mut draft, id, site, (name, value), expands)?;
        }
        if self.rules.bounds_numbers {
            numbers::bound(&mut draft.schema);
        }
        let flattens = expands || self.rules.flattens;
        let parts = if flattens { self.listed(site, "allOf") } else { vec![] };
        if let Some(target) = site.reference {
            self.reference(&mut draft, id, target, expands || !parts.is_empty())?;
        }
        // A single part that is a reference stays a reference.
        let is_alone =
            parts.len() == 1 && site.reference.is_none() && !has_assertions(&draft.schema);
        let keeps = is_alone && id != SchemaPlan::ROOT && !expands;
        for part in parts {
            let more = self.open(part, !keeps)?;
            self.merge(&mut draft, more, id)?;
        }
        Ok(draft)
    }

    pub(super) fn merge(
        &mut self,
        draft: &mut SchemaDraft,
        more: SchemaDraft,
        id: NodeId,
    ) -> Result<(), Stop> {
        let merges_properties = !self.rules.is_strict;
        let said = conjoin(&mut draft.schema, more.schema, merges_properties).map_err(|name| {
            inexpressible(
                &self.pointer(id),
                &format!("`{name}` is declared twice, in different ways"),
            )
        })?;
        for sentence in more.said.into_iter().chain(said) {
            if !draft.said.contains(&sentence) {
                draft.said.push(sentence);
            }
        }
        Ok(())
    }

    fn reference(
        &mut self,
        draft: &mut SchemaDraft,
        id: NodeId,
        target: NodeId,
        expands: bool,
    ) -> Result<(), Stop> {
        let has_assertions = has_assertions(&draft.schema);
        let is_recursive = self.recursive.get(target.0).copied().unwrap_or_default();
        let inlines = self.rules.inlines && !is_recursive;
        if expands || (has_assertions && self.rules.siblings == Siblings::InAnyOf) {
            let more = self.open(target, true)?;
            return self.merge(draft, more, id);
        }
        if !inlines {
            let name = self.name(target)?;
            draft.schema.insert("$ref".to_owned(), Value::String(name));
            return Ok(());
        }
        let more = self.open(target, false)?;
        if !has_assertions {
            return self.merge(draft, more, id);
        }
        let more = self.described(more)?;
        let parts = draft.schema.entry("allOf").or_insert_with(|| json!([]));
        if let Some(parts) = parts.as_array_mut() {
            parts.push(Value::Object(more));
        }
        Ok(())
    }

    fn keyword(
        &mut self,
        draft: &mut SchemaDraft,
        id: NodeId,
        site: &Site<'j>,
        (name, value): (&str, &Json<'j>),
        expands: bool,
    ) -> Result<(), Stop> {
        let Some(schema) = site.json.as_object() else { return Ok(()) };
        self.budget.spend(name.len())?;
        let Some((keyword, shape, _)) = keywords::keyword(name) else {
            return self.annotation(draft, name, value);
        };
        let at = pointer::join(&site.pointer, keyword);
        match keyword {
            "$ref" | "$defs" | "definitions" | "$anchor" | "$id" => return Ok(()),
            "allOf" if expands || self.rules.flattens => return Ok(()),
            "anyOf" | "oneOf" if self.rules.is_strict && restricts_only(schema, value) => {
                return self.record_loss(draft, id, keyword, value);
            }
            "anyOf" | "oneOf" if self.rules.is_strict && has_properties(schema) => {
                return Err(inexpressible(&at, "alternatives beside `properties`"));
            }
            "then" | "else" | "dependentSchemas"
                if self.rules.is_strict && declares_more(schema, value, keyword) =>
            {
                return Err(inexpressible(&at, "properties that depend on a condition"));
            }
            "patternProperties" if self.rules.is_strict => {
                return Err(inexpressible(&at, "an object with keys of the model's choice"));
            }
            "unevaluatedProperties" if self.rules.is_strict => return Ok(()),
            "oneOf" if self.rules.is_strict => {
                let branches = self.schemas(&at, value)?;
                draft.schema.insert("anyOf".to_owned(), branches);
                return Ok(());
            }
            "properties" => {
                let properties = self.properties(&at, value)?;
                draft.schema.insert(name.to_owned(), properties);
                return Ok(());
            }
            "prefixItems" if !self.rules.supports(keyword) => {
                return self.positions(draft, id, site, value);
            }
            // Keeps the items that `prefixItems` has produced.
            "items" if draft.schema.contains_key("items") => return Ok(()),
            "format" if !value.as_str().is_some_and(|format| self.keeps_format(format)) => {
                return self.record_loss(draft, id, keyword, value);
            }
            "minItems"
                if self
                    .rules
                    .min_items_max
                    .is_some_and(|most| keywords::count(value) > Some(most)) =>
            {
                return self.record_loss(draft, id, keyword, value);
            }
            _ if !self.rules.supports(keyword) => {
                return self.record_loss(draft, id, keyword, value);
            }
            _ => {}
        }
        let written = match shape {
            KeywordShape::Schema => self.flag_or_schema(&at, value)?,
            KeywordShape::SchemaList => self.schemas(&at, value)?,
            KeywordShape::SchemaMap => self.schema_map(&at, value)?,
            _ => {
                self.budget.spend(value.raw().len())?;
                value.to_value().unwrap_or_default()
            }
        };
        draft.schema.insert(name.to_owned(), written);
        Ok(())
    }

    /// Returns whether a format is written. Formats of numbers become bounds later.
    fn keeps_format(&self, format: &str) -> bool {
        self.rules.knows_format(format)
            || self.rules.bounds_numbers && numbers::is_number_format(format)
    }

    /// Writes a keyword outside the dialect, which has no effect on values. It is omitted for
    /// readers that accept only known keywords.
    fn annotation(
        &mut self,
        draft: &mut SchemaDraft,
        name: &str,
        value: &Json<'_>,
    ) -> Result<(), Stop> {
        let is_plain = matches!(name, "title" | "description");
        let known = self.rules.keywords.is_none()
            || is_plain
            || (!self.rules.is_strict
                && (matches!(name, "examples" | "deprecated" | "readOnly" | "writeOnly")
                    || matches!(name, "contentEncoding" | "contentMediaType")
                    || name.starts_with("x-")));
        self.budget.spend(value.raw().len())?;
        let value = value.to_value().unwrap_or_default();
        if known {
            draft.schema.insert(name.to_owned(), value);
        } else if name == "examples" {
            draft.said.extend(words::sentence(name, &value));
        }
        Ok(())
    }

    /// Records that a keyword becomes a sentence.
    pub(super) fn record_loss(
        &mut self,
        draft: &mut SchemaDraft,
        id: NodeId,
        keyword: &str,
        value: &Json<'_>,
    ) -> Result<(), Stop> {
        self.budget.spend(value.raw().len())?;
        let sentence = value.to_value().and_then(|value| words::sentence(keyword, &value));
        let what = match &sentence {
            Some(sentence) => {
                format!("`{keyword}` becomes words: {}", sentence.trim_end_matches('.'))
            }
            // Keywords that allow everything, and ranges that nothing exceeds in practice.
            None if matches!(keyword, "format" | "uniqueItems") => return Ok(()),
            None => format!("`{keyword}` is left out"),
        };
        draft.said.extend(sentence);
        if self.lost.insert((id, keyword.to_owned())) {
            self.losses.push(Loss { pointer: self.pointer(id), what });
        }
        Ok(())
    }

    /// Writes positional items for readers that support only one schema for all items.
    fn positions(
        &mut self,
        draft: &mut SchemaDraft,
        id: NodeId,
        site: &Site<'j>,
        value: &Json<'j>,
    ) -> Result<(), Stop> {
        self.record_loss(draft, id, "prefixItems", value)?;
        let at = pointer::join(&site.pointer, "prefixItems");
        let mut kinds = match self.schemas(&at, value)? {
            Value::Array(kinds) => kinds,
            _ => vec![],
        };
        let rest = site.json.as_object().and_then(|schema| schema.get("items"));
        match rest.map(Json::shape) {
            Some(Kind::Bool(false)) => draft.said.push(format!("At most {} items.", kinds.len())),
            Some(_) => {
                let rest = self.sites.at(&pointer::join(&site.pointer, "items"));
                kinds.extend(rest.map(|rest| self.schema(rest)).transpose()?);
            }
            None if self.has_more_than(site, kinds.len()) => kinds.push(json!({})),
            None => {}
        }
        let mut distinct: Vec<Value> = Vec::new();
        for kind in kinds {
            if !distinct.contains(&kind) {
                distinct.push(kind);
            }
        }
        let items = match <[Value; 1]>::try_from(distinct) {
            Ok([only]) => only,
            Err(several) if several.iter().any(super::conjoin::is_unrestricted) => json!({}),
            Err(several) => json!({"anyOf": several}),
        };
        draft.schema.insert("items".to_owned(), items);
        Ok(())
    }

    /// Returns whether an array may have more than `items` elements.
    fn has_more_than(&self, site: &Site<'_>, items: usize) -> bool {
        let most = site
            .json
            .as_object()
            .and_then(|schema| schema.get("maxItems"))
            .and_then(keywords::count);
        most.is_none_or(|most| most > u64::try_from(items).unwrap_or(u64::MAX))
    }

    fn properties(&mut self, at: &str, value: &Json<'j>) -> Result<Value, Stop> {
        let mut properties = Map::new();
        for (name, member) in value.as_object().into_iter().flat_map(JsonObject::members) {
            // A property that no value fits can only be omitted.
            if self.rules.is_strict && matches!(member.shape(), Kind::Bool(false)) {
                continue;
            }
            self.budget.spend(name.len())?;
            if let Some(id) = self.sites.at(&pointer::join(at, name)) {
                properties.insert(name.to_string(), self.schema(id)?);
            }
        }
        Ok(Value::Object(properties))
    }

    fn flag_or_schema(&mut self, at: &str, value: &Json<'j>) -> Result<Value, Stop> {
        match (value.shape(), self.sites.at(at)) {
            (Kind::Bool(flag), _) if at.ends_with("/additionalProperties") => {
                Ok(Value::Bool(*flag))
            }
            // Readers that support all keywords of 2020-12 also support boolean schemas.
            (Kind::Bool(flag), _) if self.rules.keywords.is_none() => Ok(Value::Bool(*flag)),
            (_, Some(id)) => self.schema(id),
            _ => Ok(json!({})),
        }
    }

    fn schema_map(&mut self, at: &str, value: &Json<'j>) -> Result<Value, Stop> {
        let mut map = Map::new();
        for (name, _) in value.as_object().into_iter().flat_map(JsonObject::members) {
            self.budget.spend(name.len())?;
            if let Some(id) = self.sites.at(&pointer::join(at, name)) {
                map.insert(name.to_string(), self.schema(id)?);
            }
        }
        Ok(Value::Object(map))
    }

    fn schemas(&mut self, at: &str, value: &Json<'j>) -> Result<Value, Stop> {
        let count = value.as_array().map_or(0, <[Json<'_>]>::len);
        let ids =
            (0..count).filter_map(|index| self.sites.at(&pointer::join(at, &index.to_string())));
        ids.collect::<Vec<_>>().into_iter().map(|id| self.schema(id)).collect()
    }

    /// Returns the schemas that a keyword lists.
    pub(super) fn listed(&self, site: &Site<'_>, keyword: &str) -> Vec<NodeId> {
        let list =
            site.json.as_object().and_then(|schema| schema.get(keyword)).and_then(Json::as_array);
        let at = pointer::join(&site.pointer, keyword);
        let index = 0..list.map_or(0, <[Json<'_>]>::len);
        index.filter_map(|index| self.sites.at(&pointer::join(&at, &index.to_string()))).collect()
    }

    /// Returns the reference to a definition.
    fn name(&mut self, target: NodeId) -> Result<String, Stop> {
        if target == SchemaPlan::ROOT {
            return Ok("#".to_owned());
        }
        if !self.names.contains_key(&target) {
            let reference = format!("#/$defs/{}", self.new_name(target));
            self.targets.insert(reference.clone(), target);
            self.names.insert(target, reference);
        }
        let reference = self.names.get(&target).cloned().unwrap_or_default();
        self.budget.spend(reference.len())?;
        Ok(reference)
    }

    /// Returns the target of a converted reference.
    pub(super) fn named(&self, reference: &str) -> Option<NodeId> {
        self.targets.get(reference).copied()
    }

    pub(super) fn note(&mut self, loss: Loss) {
        if !self.losses.contains(&loss) {
            self.losses.push(loss);
        }
    }

    /// Returns a unique name from the last part of the pointer, with only plain characters.
    fn new_name(&mut self, target: NodeId) -> String {
        let pointer = self.pointer(target);
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' }
        };
        let mut name: String = last.chars().map(plain).take(64).collect();
        if name.is_empty() || name.chars().all(|c| c.is_ascii_digit()) {
            name = format!("schema{name}");
        }
        loop {
            let taken = self.names_taken.entry(name.clone()).or_default();
            *taken += 1;
            if *taken == 1 {
                return name;
            }
            name = format!("{name}_{taken}");
        }
    }

    pub(super) fn pointer(&self, id: NodeId) -> String {
        self.sites.get(id).map(|site| site.pointer.clone()).unwrap_or_default()
    }
}

pub(super) fn inexpressible(pointer: &str, what: &str) -> Stop {
    Stop::CannotSay { pointer: pointer.to_owned(), what: what.to_owned() }
}

/// Returns whether a schema restricts values.
pub(super) fn has_assertions(schema: &Map<String, Value>) -> bool {
    schema
        .keys()
        .any(|name| name != "default" && name != "$ref" && keywords::keyword(name).is_some())
}

/// Moves a reference so that the reader does not ignore the keywords beside it.
fn wrap_reference(schema: &mut Map<String, Value>, siblings: Siblings) {
    let keyword = match siblings {
        Siblings::Beside => return,
        Siblings::InAllOf => "allOf",
        Siblings::InAnyOf => "anyOf",
    };
    if schema.len() < 2 {
        return;
    }
    if let Some(reference) = schema.shift_remove("$ref") {
        let parts = schema.entry(keyword).or_insert_with(|| json!([]));
        if let Some(parts) = parts.as_array_mut() {
            parts.push(json!({"$ref": reference}));
        }
    }
}
