//! The top level. No model API accepts a combinator there, so properties of alternatives become
//! optional properties of one object.

use serde_json::{Map, Value, json};

use super::conjoin::is_unrestricted;
use super::writer::{SchemaDraft, SchemaWriter, Stop};
use super::{Loss, finish, words};
use crate::schema::plan::SchemaPlan;

/// Keywords removed from the top level, in addition to `anyOf` and `oneOf`.
const REMOVED: [&str; 9] =
    ["$ref", "allOf", "not", "if", "then", "else", "dependentSchemas", "enum", "const"];

impl SchemaWriter<'_, '_> {
    pub(super) fn root(&mut self) -> Result<Map<String, Value>, Stop> {
        let mut draft = self.open(SchemaPlan::ROOT, self.rules.merges_top_level)?;
        if !self.rules.is_strict {
            self.plain_top_level(&mut draft)?;
        } else if draft.schema.contains_key("anyOf") {
            return Err(super::writer::inexpressible("", "the arguments have alternatives"));
        }
        draft.schema.insert("type".to_owned(), json!("object"));
        draft.schema.entry("properties").or_insert_with(|| json!({}));
        if self.rules.is_strict {
            self.finish_root(&mut draft)?;
        }
        self.described(draft)
    }

    fn finish_root(&mut self, draft: &mut SchemaDraft) -> Result<(), Stop> {
        let mut losses = Vec::new();
        finish::finish(draft, self.rules, "", &mut losses)?;
        losses.into_iter().for_each(|loss| self.note(loss));
        Ok(())
    }

    fn plain_top_level(&mut self, draft: &mut SchemaDraft) -> Result<(), Stop> {
        for keyword in ["anyOf", "oneOf"] {
            let Some(Value::Array(branches)) = draft.schema.shift_remove(keyword) else { continue };
            let mut expanded = Vec::with_capacity(branches.len());
            if self.rules.merges_top_level {
                for branch in branches {
                    expanded.push(self.expanded(branch)?);
                }
            }
            draft.said.extend(words::sentence(keyword, &json!(expanded)));
            merge_alternatives(&mut draft.schema, expanded);
            self.moved(keyword);
        }
        for keyword in REMOVED {
            let Some(value) = draft.schema.shift_remove(keyword) else { continue };
            self.conditional(draft, keyword, &value)?;
            draft.said.extend(words::sentence(keyword, &value));
            self.moved(keyword);
        }
        Ok(())
    }

    /// Declares the properties of a part that applies only under a condition.
    fn conditional(
        &mut self,
        draft: &mut SchemaDraft,
        keyword: &str,
        value: &Value,
    ) -> Result<(), Stop> {
        let parts: Vec<Value> = match (keyword, value) {
            ("then" | "else", part) => vec![part.clone()],
            ("dependentSchemas", Value::Object(parts)) => parts.values().cloned().collect(),
            _ => return Ok(()),
        };
        if self.rules.merges_top_level {
            for part in parts {
                let part = self.expanded(part)?;
                // An additional alternative without requirements keeps `required` unchanged.
                merge_alternatives(&mut draft.schema, vec![part, Map::new()]);
            }
        }
        Ok(())
    }

    /// Returns a converted schema, replaced by its definition if it is a reference.
    fn expanded(&mut self, schema: Value) -> Result<Map<String, Value>, Stop> {
        let Value::Object(schema) = schema else { return Ok(Map::new()) };
        let Some(target) =
            schema.get("$ref").and_then(Value::as_str).and_then(|name| self.named(name))
        else {
            return Ok(schema);
        };
        Ok(self.open(target, true)?.schema)
    }

    fn moved(&mut self, keyword: &str) {
        let what = format!("`{keyword}` at the top level becomes properties and words");
        self.note(Loss { pointer: String::new(), what });
    }
}

/// Adds the properties of alternatives. A property that all of them require becomes required; a
/// property that several declare accepts what any of them accepts.
fn merge_alternatives(schema: &mut Map<String, Value>, branches: Vec<Map<String, Value>>) {
    let is_closed =
        |schema: &Map<String, Value>| schema.get("additionalProperties") == Some(&json!(false));
    let keeps_others_out = is_closed(schema);
    let all_closed = !branches.is_empty() && branches.iter().all(is_closed);
    let own = properties(schema);
    let mut all = own.clone();
    for branch in &branches {
        for (name, property) in properties(branch) {
            match all.get_mut(&name) {
                _ if own.contains_key(&name) => {}
                Some(known) => *known = either(known.take(), property),
                None if keeps_others_out => {}
                None => {
                    all.insert(name, property);
                }
            }
        }
    }
    let required = required_by_all(schema, &branches);
    schema.insert("properties".to_owned(), Value::Object(all));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    if all_closed && !schema.contains_key("additionalProperties") {
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
}

fn properties(schema: &Map<String, Value>) -> Map<String, Value> {
    schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default()
}

fn required(schema: &Map<String, Value>) -> Vec<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn required_by_all(schema: &Map<String, Value>, branches: &[Map<String, Value>]) -> Vec<String> {
    let mut names: Vec<String> = required(schema).into_iter().map(str::to_owned).collect();
    if let Some((first, others)) = branches.split_first() {
        let others: Vec<_> = others.iter().map(required).collect();
        for name in required(first) {
            let is_common = others.iter().all(|names| names.contains(&name));
            if is_common && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
    }
    names
}

/// Returns a schema for what either of two accepts. Members of enumerations are joined, so that a
/// discriminator reads as one list.
fn either(left: Value, right: Value) -> Value {
    if left == right || is_unrestricted(&left) {
        return left;
    }
    if let Some(joined) = joined_members(&left, &right) {
        return joined;
    }
    match left {
        Value::Object(mut union) if union.len() == 1 && union.contains_key("anyOf") => {
            if let Some(branches) = union.get_mut("anyOf").and_then(Value::as_array_mut)
                && !branches.contains(&right)
            {
                branches.push(right);
            }
            Value::Object(union)
        }
        left => json!({"anyOf": [left, right]}),
    }
}

fn joined_members(left: &Value, right: &Value) -> Option<Value> {
    let (mut left, mut right) = (left.as_object()?.clone(), right.as_object()?.clone());
    let mut members = members(&mut left)?;
    let more = self::members(&mut right)?;
    let annotation = |schema: &mut Map<String, Value>| {
        schema.retain(|keyword, _| !matches!(keyword.as_str(), "title" | "description"));
    };
    let (mut plain_left, mut plain_right) = (left.clone(), right);
    annotation(&mut plain_left);
    annotation(&mut plain_right);
    if plain_left != plain_right {
        return None;
    }
    for member in more {
        if !members.contains(&member) {
            members.push(member);
        }
    }
    left.insert("enum".to_owned(), Value::Array(members));
    Some(Value::Object(left))
}

fn members(schema: &mut Map<String, Value>) -> Option<Vec<Value>> {
    match (schema.shift_remove("const"), schema.shift_remove("enum")) {
        (Some(only), None) => Some(vec![only]),
        (None, Some(Value::Array(members))) => Some(members),
        _ => None,
    }
}
