//! Types of results that were seen. They hold names and types of properties, never values.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{ObjectType, Property, Type};

/// Maximum depth of an observed type. Deeper values are unknown.
const LEVELS_MAX: usize = 6;
/// Maximum number of properties of an observed object. An object with more is a map.
const PROPERTIES_MAX: usize = 32;
/// Maximum length of the name of an observed property.
const NAME_BYTES_MAX: usize = 40;
/// Maximum number of items of a list that are looked at.
const ITEMS_MAX: usize = 16;

/// Maximum number of values of merged objects that are looked at.
const MAPPED_MAX: usize = PROPERTIES_MAX * ITEMS_MAX;

impl Type {
    /// Returns the type that fits the values, for [`CodeOptions::observed`](crate::CodeOptions). It
    /// has names and types of properties, never values: an object whose names do not look like
    /// those of properties is a map.
    #[must_use]
    pub fn observed<'v>(values: impl IntoIterator<Item = &'v Value>) -> Self {
        join(values.into_iter().map(|value| of_value(value, 0)).collect())
    }

    /// Returns the type that fits the values of both types, which were observed.
    pub(crate) fn joined(self, other: Self) -> Self {
        join(vec![self, other])
    }
}

fn of_value(value: &Value, level: usize) -> Type {
    match value {
        Value::Null => Type::Null,
        Value::Bool(_) => Type::Boolean,
        Value::Number(number) if number.is_f64() => Type::Number,
        Value::Number(_) => Type::Integer,
        Value::String(_) => Type::String,
        _ if level >= LEVELS_MAX => Type::Unknown,
        Value::Array(items) => {
            let items = items.iter().take(ITEMS_MAX).map(|item| of_value(item, level + 1));
            Type::Array(Box::new(join(items.collect())))
        }
        Value::Object(object) => of_object(object, level),
    }
}

fn of_object(object: &Map<String, Value>, level: usize) -> Type {
    let is_record = object.len() <= PROPERTIES_MAX && object.keys().all(|name| is_property(name));
    if !is_record {
        let values = object.values().take(ITEMS_MAX).map(|value| of_value(value, level + 1));
        let rest = Some(Box::new(join(values.collect())));
        return Type::Object(ObjectType { properties: Vec::new(), rest });
    }
    let properties = object.iter().map(|(name, value)| Property {
        name: name.clone(),
        ty: of_value(value, level + 1),
        is_required: true,
        description: None,
        hints: Vec::new(),
    });
    Type::Object(ObjectType { properties: properties.collect(), rest: None })
}

/// Returns whether a name looks like that of a property and not like a value.
fn is_property(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$');
    name.len() <= NAME_BYTES_MAX
        && name.chars().all(is_word)
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$'))
}

/// Joins types of several values: objects are merged, and numbers with integers are numbers.
fn join(types: Vec<Type>) -> Type {
    let mut objects: Vec<ObjectType> = Vec::new();
    let mut items: Vec<Type> = Vec::new();
    let (mut others, mut has_arrays): (Vec<Type>, bool) = (Vec::new(), false);
    let flat = types.into_iter().flat_map(|ty| match ty {
        Type::Union(members) => members,
        ty => vec![ty],
    });
    for ty in flat {
        match ty {
            Type::Object(object) => objects.push(object),
            Type::Array(item) => {
                has_arrays = true;
                items.push(*item);
            }
            ty => others.push(ty),
        }
    }
    if others.contains(&Type::Number) {
        others.retain(|ty| *ty != Type::Integer);
    }
    if has_arrays {
        // An empty list says nothing about the items of the others.
        items.retain(|item| *item != Type::Unknown);
        others.push(Type::Array(Box::new(join(items))));
    }
    if !objects.is_empty() {
        others.push(Type::Object(merge(objects)));
    }
    Type::union(others)
}

/// Merges objects. A property that one of them lacks is optional. If they have more names together
/// than one may have, they are a map.
fn merge(objects: Vec<ObjectType>) -> ObjectType {
    let names = || objects.iter().flat_map(|object| &object.properties).map(|it| it.name.as_str());
    let mut distinct = BTreeSet::new();
    let has_many = names().any(|name| distinct.insert(name) && distinct.len() > PROPERTIES_MAX);
    if has_many || objects.iter().any(|object| object.rest.is_some()) {
        let all = objects.into_iter().flat_map(|object| {
            let rest = object.rest.map(|rest| *rest);
            rest.into_iter().chain(object.properties.into_iter().map(|property| property.ty))
        });
        let rest = Some(Box::new(join(all.take(MAPPED_MAX).collect())));
        return ObjectType { properties: Vec::new(), rest };
    }
    let count = objects.len();
    let mut found: Vec<(Property, Vec<Type>)> = Vec::new();
    for property in objects.into_iter().flat_map(|object| object.properties) {
        match found.iter_mut().find(|(other, _)| other.name == property.name) {
            Some((_, types)) => types.push(property.ty),
            None => {
                let ty = property.ty.clone();
                found.push((property, vec![ty]));
            }
        }
    }
    let properties = found.into_iter().map(|(property, types)| Property {
        is_required: types.len() == count,
        ty: join(types),
        ..property
    });
    ObjectType { properties: properties.collect(), rest: None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Type;
    use crate::declarations::typescript;

    fn shape(values: &[serde_json::Value]) -> String {
        typescript::type_text(&Type::observed(values))
    }

    #[test]
    fn values_of_one_tool_become_one_type() {
        let values = [
            json!({"name": "a", "size": 1, "tags": []}),
            json!({"name": "b", "size": 1.5, "tags": ["x"], "parent": null}),
        ];
        assert_eq!(shape(&values), "{ name: string; size: number; tags: string[]; parent?: null }");
        assert_eq!(shape(&[json!([1, 2]), json!([])]), "number[]");
        assert_eq!(shape(&[json!(1), json!("a"), json!(null)]), "number | string | null");
    }

    #[test]
    fn names_that_look_like_values_are_not_shown() {
        let values = [json!({"jane.doe@example.com": {"age": 3}, "x": {"age": 4}})];
        assert_eq!(shape(&values), "{ [key: string]: { age: number } }");
        let many: serde_json::Map<_, _> =
            (0..100).map(|index| (format!("user{index}"), json!(index))).collect();
        assert_eq!(shape(&[many.into()]), "{ [key: string]: number }");
    }

    #[test]
    fn objects_with_many_names_together_are_a_map() {
        let object = |from: u32| -> serde_json::Value {
            (from..from + 32)
                .map(|number| (format!("a{number}"), json!(number)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        assert_eq!(shape(&[object(0), object(1)]), "{ [key: string]: number }");
        assert!(shape(&[object(0), object(0)]).starts_with("{ a0: number; a1: number"));
    }

    #[test]
    fn deep_values_end_as_unknown() {
        let deep = (0..50).fold(json!(1), |value, _| json!({"a": value}));
        let text = shape(&[deep]);
        assert!(text.contains("unknown") && text.len() < 100, "{text}");
    }
}
