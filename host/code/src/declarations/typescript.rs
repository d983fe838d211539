//! Declarations in TypeScript.

use std::fmt::Write as _;

use serde_json::Value;

use super::{TypedTool, arguments, comment, one_line};
use crate::types::{ObjectType, Property, Type};

/// Returns the declaration of a tool, with the types that it needs before it.
pub(super) fn declaration(tool: &TypedTool<'_>) -> String {
    let mut text = String::new();
    let named = tool.output.iter().flat_map(|output| &output.named);
    for (name, ty) in tool.input.named.iter().chain(named) {
        let _ = writeln!(text, "type {name} = {}", type_text(ty));
    }
    let description = one_line(&tool.definition.description);
    if !description.is_empty() {
        let _ = writeln!(text, "/** {} */", description.replace("*/", "* /"));
    }
    let result = match (&tool.output, tool.observed) {
        (Some(output), _) => type_text(&output.root),
        (None, Some(observed)) => format!("{} /* observed */", type_text(observed)),
        (None, None) => type_text(&Type::Unknown),
    };
    let hints = tool.input.hints.iter().map(|hint| format!(" // {}", one_line(hint)));
    let _ = writeln!(
        text,
        "{}({}): Promise<{result}>{}",
        tool.id,
        parameter(&tool.input.root),
        hints.collect::<String>(),
    );
    text
}

/// Returns the parameter of a tool. Commented properties have lines of their own.
fn parameter(input: &Type) -> String {
    let properties = match arguments(input) {
        Some([]) => return "args?: {}".to_owned(),
        Some(properties) => properties,
        None => return format!("args: {}", type_text(input)),
    };
    let mark = if properties.iter().any(|property| property.is_required) { "" } else { "?" };
    if properties.iter().all(|property| comment(property).is_none()) {
        return format!("args{mark}: {}", type_text(input));
    }
    let mut text = format!("args{mark}: {{\n");
    for property in properties {
        let comment = comment(property).map(|comment| format!(" // {comment}"));
        let _ = writeln!(text, "  {}{}", property_text(property), comment.unwrap_or_default());
    }
    text.push('}');
    text
}

fn property_text(property: &Property) -> String {
    let mark = if property.is_required { "" } else { "?" };
    format!("{}{mark}: {}", key(&property.name), type_text(&property.ty))
}

/// Returns a type as an expression in one line.
pub(crate) fn type_text(ty: &Type) -> String {
    match ty {
        Type::Unknown => "unknown".to_owned(),
        Type::Null => "null".to_owned(),
        Type::Boolean => "boolean".to_owned(),
        Type::Number | Type::Integer => "number".to_owned(),
        Type::String => "string".to_owned(),
        Type::Literal(value) => value.to_string(),
        Type::Array(item) => format!("{}[]", member(item)),
        Type::Tuple(first, rest) => {
            let rest = rest.as_ref().map(|rest| format!("...{}[]", member(rest)));
            let members: Vec<_> = first.iter().map(type_text).chain(rest).collect();
            format!("[{}]", members.join(", "))
        }
        Type::Object(object) => object_text(object),
        Type::Union(members) => members.iter().map(member).collect::<Vec<_>>().join(" | "),
        Type::Intersection(members) => members.iter().map(member).collect::<Vec<_>>().join(" & "),
        Type::Reference(name) => name.clone(),
    }
}

/// Returns a type as a part of a larger one.
fn member(ty: &Type) -> String {
    match ty {
        Type::Union(_) | Type::Intersection(_) => format!("({})", type_text(ty)),
        _ => type_text(ty),
    }
}

fn object_text(object: &ObjectType) -> String {
    let properties = object.properties.iter().map(|property| match comment(property) {
        Some(comment) => {
            format!("{} /* {} */", property_text(property), comment.replace("*/", "* /"))
        }
        None => property_text(property),
    });
    let rest = object.rest.as_ref().map(|rest| format!("[key: string]: {}", type_text(rest)));
    let members: Vec<_> = properties.chain(rest).collect();
    if members.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", members.join("; ")) }
}

/// Returns a property name as it is written in a type.
fn key(name: &str) -> String {
    let is_identifier = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$'));
    if is_identifier { name.to_owned() } else { Value::from(name).to_string() }
}
