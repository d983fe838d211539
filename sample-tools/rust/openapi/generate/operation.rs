//! Operations: names, descriptions, arguments.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json, json};

use super::schema;

/// Maximum length of a tool's name that all model APIs accept.
const NAME_LENGTH_MAX: usize = 64;
/// Maximum characters of a description.
const DESCRIPTION_LENGTH_MAX: usize = 2_000;
/// Maximum bytes of an input schema.
const SCHEMA_BYTES_MAX: usize = 64 << 10;
/// Argument that every tool has.
pub(super) const BYTES_MAX: &str = "response_bytes_max";

/// An operation that becomes a tool.
pub(super) struct Operation {
    pub(super) name: String,
    pub(super) method: String,
    path: String,
    title: Option<String>,
    description: String,
    input_schema: Json,
    parameters: Vec<Parameter>,
    body: Option<Body>,
}

struct Parameter {
    argument: String,
    name: String,
    /// Variant of `Location`.
    location: &'static str,
    /// Variant of `Style`.
    style: &'static str,
    is_required: bool,
}

struct Body {
    /// Variant of `Encoding`.
    encoding: &'static str,
    media_type: String,
    /// Names of arguments and of members of the body. Without any, the body is the argument `body`.
    members: Vec<(String, String)>,
}

/// Reason for which there is no tool.
pub(super) enum Problem {
    /// The operation needs something that is not supported.
    Skipped(String),
    /// The document is invalid.
    Invalid(String),
}

impl From<String> for Problem {
    fn from(reason: String) -> Self {
        Self::Invalid(reason)
    }
}

/// Arguments of a tool.
#[derive(Default)]
struct Arguments {
    properties: Map<String, Json>,
    required: Vec<String>,
}

impl Arguments {
    /// Adds an argument under its name, or one that is still free.
    fn add(&mut self, name: &str, suffix: &str, schema: Json, is_required: bool) -> String {
        let mut argument = identifier(name);
        if self.properties.contains_key(&argument) || argument == BYTES_MAX {
            argument = format!("{argument}_{suffix}");
        }
        if is_required {
            self.required.push(argument.clone());
        }
        self.properties.insert(argument.clone(), schema);
        argument
    }
}

impl Operation {
    /// Reads an operation of a path item.
    pub(super) fn read(
        document: &Json,
        method: &str,
        path: &str,
        item: &Json,
        definition: &Json,
    ) -> Result<Self, Problem> {
        let text = |key: &str| definition.get(key).and_then(Json::as_str).map(str::trim);
        let mut arguments = Arguments::default();
        let mut parameters: Vec<Parameter> = Vec::new();
        // Parameters of an operation replace those of its path.
        for list in [definition.get("parameters"), item.get("parameters")] {
            for parameter in list.and_then(Json::as_array).into_iter().flatten() {
                let parameter = schema::follow(document, parameter)?;
                parameters.extend(read_parameter(
                    document,
                    parameter,
                    &parameters,
                    &mut arguments,
                )?);
            }
        }
        check_path(path, &parameters)?;
        let body = match definition.get("requestBody") {
            Some(body) => {
                Some(read_body(document, schema::follow(document, body)?, &mut arguments)?)
            }
            None => None,
        };
        arguments.properties.insert(
            BYTES_MAX.to_owned(),
            json!({
                "type": "integer",
                "description": "Maximum bytes of the response to return.",
                "default": 65_536,
                "minimum": 1,
                "maximum": 524_288
            }),
        );
        let input_schema = json!({
            "type": "object",
            "properties": arguments.properties,
            "required": arguments.required,
            "additionalProperties": false
        });
        let length = input_schema.to_string().len();
        if length > SCHEMA_BYTES_MAX {
            return Err(Problem::Skipped(format!(
                "its input schema has {length} bytes, more than {SCHEMA_BYTES_MAX}"
            )));
        }
        let method = method.to_uppercase();
        let name = match text("operationId") {
            Some(id) if !id.is_empty() => identifier(id),
            _ => identifier(&format!("{}_{path}", method.to_lowercase())),
        };
        let parts: Vec<_> = [text("summary"), text("description")].into_iter().flatten().collect();
        let description = match parts.is_empty() {
            true => format!("Sends {method} {path}."),
            false => parts.join("\n\n"),
        };
        Ok(Self {
            name,
            title: text("summary").filter(|it| it.len() <= 80).map(str::to_owned),
            description: description.chars().take(DESCRIPTION_LENGTH_MAX).collect(),
            path: path.to_owned(),
            method,
            input_schema,
            parameters,
            body,
        })
    }

    /// Writes the operation as an expression.
    pub(super) fn write(&self, code: &mut String) {
        // Writing to a string does not fail.
        let _ = write!(
            code,
            "    Operation {{\n        name: {:?},\n        title: {:?},\n        description: {:?},\n        \
             input_schema: {:?},\n        method: Method::{},\n        path: {:?},\n        \
             parameters: &[",
            self.name,
            self.title,
            self.description,
            self.input_schema.to_string(),
            title_case(&self.method),
            self.path,
        );
        for parameter in &self.parameters {
            let _ = write!(
                code,
                "\n            Parameter {{ argument: {:?}, name: {:?}, location: Location::{}, style: \
                 Style::{}, is_required: {} }},",
                parameter.argument,
                parameter.name,
                parameter.location,
                parameter.style,
                parameter.is_required
            );
        }
        code.push_str("],\n        body: ");
        match &self.body {
            None => code.push_str("None,\n    },\n"),
            Some(body) => {
                let _ = write!(
                    code,
                    "Some(Body {{ encoding: Encoding::{}, media_type: {:?}, members: &{:?} }}),\n    }},\n",
                    body.encoding, body.media_type, body.members
                );
            }
        }
    }
}

/// Reads a parameter, or returns `None` if the caller cannot set it.
fn read_parameter(
    document: &Json,
    parameter: &Json,
    earlier: &[Parameter],
    arguments: &mut Arguments,
) -> Result<Option<Parameter>, Problem> {
    let text = |key: &str| parameter.get(key).and_then(Json::as_str);
    let name = text("name").ok_or_else(|| "a parameter has no `name`".to_owned())?;
    let is_required = parameter.get("required") == Some(&Json::Bool(true));
    let location = match text("in").unwrap_or_default() {
        "path" => "Path",
        "query" => "Query",
        "header" if is_set_by_host(document, name) => return Ok(None),
        "header" => "Header",
        "cookie" if is_required => {
            return Err(Problem::Skipped(format!("it requires the cookie `{name}`")));
        }
        "cookie" => return Ok(None),
        other => {
            let reason =
                format!("the parameter `{name}` is in `{other}`, expected path, query or header");
            return Err(Problem::Invalid(reason));
        }
    };
    if earlier.iter().any(|it| it.name == name && it.location == location) {
        return Ok(None);
    }
    let content = parameter.get("content").and_then(Json::as_object);
    let content = content.and_then(|content| content.values().next());
    let given = content.and_then(|it| it.get("schema")).or_else(|| parameter.get("schema"));
    let mut schema = schema::inline(document, given.unwrap_or(&json!({"type": "string"})))?;
    if let (Some(description), Some(members)) = (text("description"), schema.as_object_mut()) {
        members.insert("description".to_owned(), Json::from(description.trim()));
    }
    let explode = parameter.get("explode").and_then(Json::as_bool);
    let style = match (text("style"), location) {
        _ if content.is_some() => "Json",
        (Some("deepObject"), "Query") => "Deep",
        (Some("spaceDelimited"), "Query") => "Spaces",
        (Some("pipeDelimited"), "Query") => "Pipes",
        (None | Some("form"), "Query") if explode.unwrap_or(true) => "Repeated",
        (None | Some("form"), "Query") | (None | Some("simple"), _) => "Commas",
        (Some(style), _) => {
            return Err(Problem::Skipped(format!("`{name}` has the style `{style}`")));
        }
    };
    let argument =
        arguments.add(name, &location.to_lowercase(), schema, is_required || location == "Path");
    let is_required = is_required || location == "Path";
    Ok(Some(Parameter { argument, name: name.to_owned(), location, style, is_required }))
}

/// Returns whether the host sets a header: OpenAPI reserves some, and others have a key.
fn is_set_by_host(document: &Json, name: &str) -> bool {
    let is_reserved = ["accept", "content-type", "authorization", "host", "cookie"]
        .iter()
        .any(|it| name.eq_ignore_ascii_case(it));
    let schemes = document.pointer("/components/securitySchemes").and_then(Json::as_object);
    let keys = schemes.into_iter().flatten().filter_map(|(_, scheme)| {
        (scheme.get("in")?.as_str()? == "header").then(|| scheme.get("name")?.as_str())?
    });
    is_reserved || keys.into_iter().any(|key| name.eq_ignore_ascii_case(key))
}

fn check_path(path: &str, parameters: &[Parameter]) -> Result<(), String> {
    let mut rest = path;
    while let Some((_, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or("`{` has no `}`")?;
        if !parameters.iter().any(|it| it.location == "Path" && it.name == name) {
            return Err(format!("the path has `{{{name}}}`, and there is no such path parameter"));
        }
        rest = after;
    }
    Ok(())
}

fn read_body(document: &Json, body: &Json, arguments: &mut Arguments) -> Result<Body, Problem> {
    let is_required = body.get("required") == Some(&Json::Bool(true));
    let content = body.get("content").and_then(Json::as_object);
    let content = content.ok_or_else(|| "the body has no `content`".to_owned())?;
    let found = content.iter().find_map(|(media_type, content)| {
        let kind = media_type.split(';').next().unwrap_or_default().trim().to_lowercase();
        let encoding = match kind.as_str() {
            "application/json" => "Json",
            kind if kind.ends_with("+json") => "Json",
            "application/x-www-form-urlencoded" => "Form",
            kind if kind.starts_with("text/") => "Text",
            _ => return None,
        };
        Some((encoding, media_type.clone(), content))
    });
    let Some((encoding, media_type, content)) = found else {
        let kinds: Vec<_> = content.keys().cloned().collect();
        return Err(Problem::Skipped(format!(
            "its body is {}, expected JSON, a form or text",
            kinds.join(" or ")
        )));
    };
    let given = content.get("schema").cloned().unwrap_or_else(|| json!({}));
    let mut schema = schema::inline(document, &given)?;
    if let Some(members) = flat_members(&schema) {
        let required: Vec<_> =
            schema.get("required").and_then(Json::as_array).cloned().unwrap_or_default();
        let members = members.into_iter().map(|(name, schema)| {
            let is_required = is_required && required.contains(&Json::from(name.as_str()));
            (arguments.add(&name, "body", schema, is_required), name)
        });
        return Ok(Body { encoding, media_type, members: members.collect() });
    }
    if let (Some(description), Some(members)) = (body.get("description"), schema.as_object_mut()) {
        members.insert("description".to_owned(), description.clone());
    }
    let argument = arguments.add("body", "content", schema, is_required);
    match argument == "body" {
        true => Ok(Body { encoding, media_type, members: Vec::new() }),
        false => Err(Problem::Skipped("it has a parameter `body` and a body".to_owned())),
    }
}

/// Returns the members of an object schema that says nothing else, which become arguments.
fn flat_members(schema: &Json) -> Option<Map<String, Json>> {
    let members = schema.as_object()?;
    let is_plain = members.iter().all(|(keyword, value)| match keyword.as_str() {
        "type" => value == "object",
        "properties" | "required" | "title" | "description" => true,
        "additionalProperties" => value == &Json::Bool(false),
        _ => false,
    });
    let properties = members.get("properties")?.as_object()?;
    (is_plain && !properties.is_empty()).then(|| properties.clone())
}

/// Returns a name of letters, digits, `_` and `-`.
fn identifier(name: &str) -> String {
    let mut identifier = String::new();
    for character in name.chars() {
        if character.is_ascii_alphanumeric() || character == '-' {
            identifier.push(character);
        } else if !identifier.is_empty() && !identifier.ends_with('_') {
            identifier.push('_');
        }
    }
    identifier.truncate(NAME_LENGTH_MAX);
    let identifier = identifier.trim_end_matches('_');
    if identifier.is_empty() { "value".to_owned() } else { identifier.to_owned() }
}

fn title_case(method: &str) -> String {
    let (first, rest) = method.split_at(1);
    first.to_owned() + &rest.to_lowercase()
}
