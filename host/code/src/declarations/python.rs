//! Declarations in Python.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::{TypedTool, arguments, comment, one_line};
use crate::identifier::is_python_keyword;
use crate::types::{ObjectType, Property, Type, pascal_case};

/// Returns the declaration of a tool, with the classes that it needs before it.
pub(super) fn declaration(tool: &TypedTool<'_>) -> String {
    let prefix = pascal_case(tool.id);
    let mut classes = Classes::default();
    let output = tool.output.as_ref();
    let named = tool.input.named.iter().chain(output.into_iter().flat_map(|output| &output.named));
    let mut aliases = String::new();
    for (name, ty) in named {
        match ty {
            Type::Object(object) if is_record(object) => classes.define(name, object),
            ty => {
                let text = classes.text(ty, name);
                let _ = writeln!(aliases, "type {name} = {text}");
            }
        }
    }
    let parameters = parameters(&tool.input.root, &mut classes, &prefix);
    let result = format!("{prefix}Result");
    let result = match (output, tool.observed) {
        (Some(output), _) => classes.text(&output.root, &result),
        (None, Some(observed)) => classes.text(observed, &result),
        (None, None) => "Any".to_owned(),
    };
    let mut text: String = classes.written.into_values().collect();
    text.push_str(&aliases);
    let _ = write!(text, "async def {}({parameters}) -> {result}:", tool.id);
    let is_observed = if tool.observed.is_some() { " (Result type: observed.)" } else { "" };
    let description = one_line(&tool.definition.description);
    let hints = tool.input.hints.iter().map(|hint| format!(" {}.", one_line(hint)));
    let description = format!("{description}{is_observed}{}", hints.collect::<String>());
    match description.trim() {
        "" => text.push_str(" ...\n"),
        description => {
            let _ = writeln!(text, "\n    \"\"\"{}\"\"\"", description.replace('"', "'"));
        }
    }
    text
}

/// Classes that a declaration needs for its objects, by name.
#[derive(Default)]
struct Classes {
    written: BTreeMap<String, String>,
}

impl Classes {
    /// Writes the class of an object.
    fn define(&mut self, name: &str, object: &ObjectType) {
        // Holds the name while the types of properties are written.
        self.written.insert(name.to_owned(), String::new());
        let are_names = object.properties.iter().all(|property| is_name(&property.name));
        let mut fields = Vec::new();
        for property in &object.properties {
            let ty = self.text(&property.ty, &format!("{name}{}", pascal_case(&property.name)));
            let ty = if property.is_required { ty } else { format!("NotRequired[{ty}]") };
            fields.push((property, ty));
        }
        let mut text = String::new();
        if are_names {
            let _ = writeln!(text, "class {name}(TypedDict):");
            for (property, ty) in fields {
                let comment = comment(property).map(|comment| format!("  # {comment}"));
                let _ =
                    writeln!(text, "    {}: {ty}{}", property.name, comment.unwrap_or_default());
            }
        } else {
            let fields: Vec<_> = fields
                .into_iter()
                .map(|(property, ty)| format!("{}: {ty}", quoted(&property.name)))
                .collect();
            let _ = writeln!(text, "{name} = TypedDict(\"{name}\", {{{}}})", fields.join(", "));
        }
        self.written.insert(name.to_owned(), text);
    }

    /// Returns a type as an expression. `name` is the name of its class if it needs one.
    fn text(&mut self, ty: &Type, name: &str) -> String {
        match ty {
            Type::Unknown => "Any".to_owned(),
            Type::Null => "None".to_owned(),
            Type::Boolean => "bool".to_owned(),
            Type::Number => "float".to_owned(),
            Type::Integer => "int".to_owned(),
            Type::String => "str".to_owned(),
            Type::Literal(value) => format!("Literal[{}]", literal(value)),
            Type::Array(item) => format!("list[{}]", self.text(item, &format!("{name}Item"))),
            Type::Tuple(first, rest) => {
                let all = first.iter().chain(rest.as_deref());
                let item = Type::union(all.cloned());
                format!("list[{}]", self.text(&item, &format!("{name}Item")))
            }
            Type::Object(object) if is_record(object) => {
                let name = self.free(name);
                self.define(&name, object);
                name
            }
            Type::Object(object) => match &object.rest {
                Some(rest) if object.properties.is_empty() => {
                    format!("dict[str, {}]", self.text(rest, &format!("{name}Value")))
                }
                _ => "dict[str, Any]".to_owned(),
            },
            Type::Union(members) => self.union(members, name),
            Type::Intersection(members) => self.intersection(members, name),
            Type::Reference(name) => name.clone(),
        }
    }

    fn union(&mut self, members: &[Type], name: &str) -> String {
        let mut literals = Vec::new();
        let mut others = Vec::new();
        for member in members {
            match member {
                Type::Literal(value) => literals.push(literal(value)),
                other => others.push(self.text(other, name)),
            }
        }
        if !literals.is_empty() {
            others.insert(0, format!("Literal[{}]", literals.join(", ")));
        }
        others.dedup();
        others.join(" | ")
    }

    /// Python has no intersection types. Objects are merged: properties of an alternative are
    /// optional. Other types are unknown.
    fn intersection(&mut self, members: &[Type], name: &str) -> String {
        let mut merged = ObjectType::default();
        for member in members {
            match member {
                Type::Object(object) => merged.properties.extend(object.properties.clone()),
                Type::Union(alternatives) => {
                    let optional = alternatives.iter().filter_map(|ty| match ty {
                        Type::Object(object) => Some(&object.properties),
                        _ => None,
                    });
                    for property in optional.flatten() {
                        if !merged.properties.iter().any(|known| known.name == property.name) {
                            let property = Property { is_required: false, ..property.clone() };
                            merged.properties.push(property);
                        }
                    }
                }
                _ => return "Any".to_owned(),
            }
        }
        self.text(&Type::Object(merged), name)
    }

    fn free(&self, name: &str) -> String {
        let numbered = (2..).map(|number| format!("{name}{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        names.find(|name| !self.written.contains_key(name)).unwrap_or_default()
    }
}

/// Returns the parameters of a tool. Commented ones have lines of their own.
fn parameters(input: &Type, classes: &mut Classes, prefix: &str) -> String {
    let properties = match arguments(input) {
        Some([]) => return String::new(),
        Some(properties) if properties.iter().all(|property| is_name(&property.name)) => properties,
        // Arguments that are no keywords go into one dictionary.
        _ => return format!("args: {}, /", classes.text(input, &format!("{prefix}Args"))),
    };
    let mut written = Vec::new();
    for property in properties {
        let ty = classes.text(&property.ty, &format!("{prefix}{}", pascal_case(&property.name)));
        let default = if property.is_required { "" } else { " = ..." };
        written.push((format!("{}: {ty}{default}", property.name), comment(property)));
    }
    if written.iter().all(|(_, comment)| comment.is_none()) {
        let plain: Vec<_> = written.into_iter().map(|(parameter, _)| parameter).collect();
        return format!("*, {}", plain.join(", "));
    }
    let lines = written.into_iter().map(|(parameter, comment)| {
        let comment = comment.map(|comment| format!("  # {comment}"));
        format!("    {parameter},{}\n", comment.unwrap_or_default())
    });
    format!("\n    *,\n{}", lines.collect::<String>())
}

/// Returns whether an object is one with known properties, and no map.
fn is_record(object: &ObjectType) -> bool {
    !object.properties.is_empty()
}

/// Returns whether a property can be a keyword argument.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !is_python_keyword(name)
}

fn literal(value: &Value) -> String {
    match value {
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

/// Returns a string literal. JSON's escapes mean the same in Python.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
