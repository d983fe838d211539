//! Types of arguments and results, from JSON Schema or from values.

mod observed;
mod schema;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use self::schema::{ConvertedSchema, convert, pascal_case};

/// Type of a JSON value, as a typed language can express it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Type {
    /// Any value.
    Unknown,
    /// Null.
    Null,
    /// True or false.
    Boolean,
    /// A number.
    Number,
    /// A number without a fraction.
    Integer,
    /// A string.
    String,
    /// Exactly this value.
    Literal(Value),
    /// A list with items of one type.
    Array(Box<Type>),
    /// A list with one type for each of the first items. Further items have the last type, if
    /// there is one.
    Tuple(Vec<Type>, Option<Box<Type>>),
    /// An object.
    Object(ObjectType),
    /// A value of any of these types.
    Union(Vec<Type>),
    /// A value of all of these types.
    Intersection(Vec<Type>),
    /// A named type.
    Reference(String),
}

/// Type of an object.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ObjectType {
    /// Declared properties.
    pub properties: Vec<Property>,
    /// Type of undeclared properties; `None` if they are not accepted or not known.
    pub rest: Option<Box<Type>>,
}

/// Property of an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Property {
    /// Name in JSON.
    pub name: String,
    /// Type of the value.
    pub ty: Type,
    /// Whether every object has the property.
    pub is_required: bool,
    /// Description by the author of the schema.
    pub description: Option<String>,
    /// Parts of the schema that the type does not express, such as `1 to 10`.
    pub hints: Vec<String>,
}

impl Type {
    /// Returns the union of types, without repetitions and nested unions.
    pub(crate) fn union(types: impl IntoIterator<Item = Self>) -> Self {
        let mut members: Vec<Self> = Vec::new();
        for ty in types {
            let new = match ty {
                Self::Union(nested) => nested,
                ty => vec![ty],
            };
            for ty in new {
                if !members.contains(&ty) {
                    members.push(ty);
                }
            }
        }
        if members.contains(&Self::Unknown) {
            return Self::Unknown;
        }
        match members.pop() {
            None => Self::Unknown,
            Some(only) if members.is_empty() => only,
            Some(last) => {
                members.push(last);
                Self::Union(members)
            }
        }
    }

    /// Returns the intersection of types. Types that accept any value do not count.
    pub(crate) fn intersection(types: impl IntoIterator<Item = Self>) -> Self {
        let mut members: Vec<Self> = Vec::new();
        for ty in types {
            if ty != Self::Unknown && !members.contains(&ty) {
                members.push(ty);
            }
        }
        match members.pop() {
            None => Self::Unknown,
            Some(only) if members.is_empty() => only,
            Some(last) => {
                members.push(last);
                Self::Intersection(members)
            }
        }
    }
}
