//! The schema that a model sees (`ARG-36`): the declared one, with `required` adjusted to what
//! decoding requires.

use serde_json::{Map, Value, json};

use super::plan::{Check, SchemaPlan};
use super::pointer;
use super::sites::Sites;
use crate::json::{Json, JsonShape};

/// Keyword with which a declaration names the group of its tool.
pub(crate) const GROUP_KEYWORD: &str = "x-group";

/// Returns the published schema of a declaration.
pub(super) fn published(plan: &SchemaPlan, sites: &Sites<'_>, declared: &Json<'_>) -> Value {
    let publisher = Publisher { plan, sites };
    let mut schema = match publisher.value(declared, "") {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    // Part of the definition and not of the arguments.
    schema.shift_remove(GROUP_KEYWORD);
    schema.insert("type".to_owned(), json!("object"));
    schema.entry("properties").or_insert_with(|| json!({}));
    Value::Object(schema)
}

struct Publisher<'p, 'j> {
    plan: &'p SchemaPlan,
    sites: &'p Sites<'j>,
}

impl Publisher<'_, '_> {
    fn value(&self, json: &Json<'_>, at: &str) -> Value {
        match json.shape() {
            JsonShape::Object(object) => {
                let members = object
                    .members()
                    .map(|(name, member)| (name, self.value(member, &pointer::join(at, name))));
                let mut map: Map<String, Value> =
                    members.map(|(name, value)| (name.to_string(), value)).collect();
                self.publish_required(&mut map, at);
                Value::Object(map)
            }
            JsonShape::Array(items) => items
                .iter()
                .enumerate()
                .map(|(index, item)| self.value(item, &pointer::join(at, &index.to_string())))
                .collect(),
            _ => json.to_value().unwrap_or_default(),
        }
    }

    /// Replaces `required` of a schema by the properties that decoding requires, in declaration
    /// order.
    fn publish_required(&self, schema: &mut Map<String, Value>, at: &str) {
        let Some(id) = self.sites.at(at).filter(|_| schema.contains_key("required")) else {
            return;
        };
        let node = self.plan.node(id);
        let listed = node.checks.iter().find_map(|check| match check {
            Check::Required(names) => Some(names.as_slice()),
            _ => None,
        });
        let object = node.object.as_deref();
        let declared = object.into_iter().flat_map(|object| &object.properties);
        let declared =
            declared.filter(|property| property.required).map(|property| property.name.as_str());
        let elsewhere = listed.unwrap_or_default().iter().map(String::as_str);
        let elsewhere =
            elsewhere.filter(|name| object.is_none_or(|object| !object.index.contains_key(*name)));
        let required: Vec<&str> = declared.chain(elsewhere).collect();
        if required.is_empty() {
            schema.shift_remove("required");
        } else {
            schema.insert("required".to_owned(), json!(required));
        }
    }
}
