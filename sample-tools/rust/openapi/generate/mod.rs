//! Turns an OpenAPI document into the source of tools.

mod operation;
mod schema;
mod yaml;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value as Json;

use self::operation::Operation;

/// Maximum number of tools of a plugin.
const TOOLS_MAX: usize = 128;
/// Methods of a path that become tools.
const METHODS: [&str; 6] = ["get", "put", "post", "delete", "patch", "head"];

/// Source of the tools.
pub(crate) struct Generated {
    /// A constant `OPERATIONS` and the call of `plugin!`.
    pub(crate) code: String,
    /// Address of the server, without a `/` at the end.
    pub(crate) server: String,
    /// Methods of all operations, separated by commas.
    pub(crate) methods: String,
    pub(crate) warnings: Vec<String>,
}

/// Parses a document.
pub(crate) fn parse(name: &str, text: &str) -> Result<Json, String> {
    match name.ends_with(".json") {
        true => serde_json::from_str(text).map_err(|error| format!("{name}: {error}")),
        false => yaml::parse(text).map_err(|error| format!("{name}: {error}")),
    }
}

/// Generates the tools of a document. `selection` has one operation ID, or method and path, per
/// line.
pub(crate) fn generate(
    document: &Json,
    server: Option<&str>,
    selection: Option<&str>,
) -> Result<Generated, String> {
    let version = document.get("openapi").and_then(Json::as_str).unwrap_or_default();
    if !version.starts_with("3.") {
        return Err(match document.get("swagger") {
            Some(_) => "this is a document of Swagger 2; convert it to OpenAPI 3".to_owned(),
            None => format!("expected `openapi` to be a version 3, found `{version}`"),
        });
    }
    let server = match server {
        Some(server) => check_server(server)?,
        None => check_server(&server_of(document)?)?,
    };
    let mut wanted: Option<BTreeSet<&str>> = selection.map(|text| {
        text.lines().map(str::trim).filter(|it| !it.is_empty() && !it.starts_with('#')).collect()
    });
    let mut warnings = Vec::new();
    let mut operations: Vec<Operation> = Vec::new();
    let mut names = BTreeMap::new();
    let paths = document.get("paths").and_then(Json::as_object).ok_or("there are no `paths`")?;
    for (path, item) in paths {
        let item = schema::follow(document, item)?;
        for method in METHODS {
            let Some(definition) = item.get(method) else { continue };
            let endpoint = format!("{} {path}", method.to_uppercase());
            let id = definition.get("operationId").and_then(Json::as_str).unwrap_or_default();
            if let Some(wanted) = &mut wanted
                && !(wanted.remove(id) | wanted.remove(endpoint.as_str()))
            {
                continue;
            }
            match Operation::read(document, method, path, item, definition) {
                Ok(operation) => {
                    let name = operation.name.to_lowercase();
                    if let Some(other) = names.insert(name, endpoint.clone()) {
                        return Err(format!(
                            "`{other}` and `{endpoint}` are both named `{}`: give them different \
                             operation IDs",
                            operation.name
                        ));
                    }
                    operations.push(operation);
                }
                Err(operation::Problem::Skipped(reason)) => {
                    warnings.push(format!("no tool for `{endpoint}`: {reason}"));
                }
                Err(operation::Problem::Invalid(reason)) => {
                    return Err(format!("`{endpoint}`: {reason}"));
                }
            }
        }
    }
    if let Some(name) = wanted.as_ref().and_then(BTreeSet::first) {
        return Err(format!("operations.txt names `{name}`, which is not in the document"));
    }
    if operations.is_empty() {
        return Err("there are no operations to make tools from".to_owned());
    }
    if operations.len() > TOOLS_MAX {
        return Err(format!(
            "there are {} operations, and a plugin has at most {TOOLS_MAX} tools: name the ones to \
             include in operations.txt",
            operations.len()
        ));
    }
    warnings.extend(schema::key_warnings(document));
    let methods: BTreeSet<_> = operations.iter().map(|it| it.method.as_str()).collect();
    Ok(Generated {
        code: code(&server, &operations),
        methods: methods.into_iter().collect::<Vec<_>>().join(","),
        server,
        warnings,
    })
}

/// Returns the address of the first server, with the defaults of its variables.
fn server_of(document: &Json) -> Result<String, String> {
    let server = document
        .pointer("/servers/0")
        .ok_or("there are no `servers`: add one, or set the environment variable OPENAPI_SERVER")?;
    let mut url = server.get("url").and_then(Json::as_str).unwrap_or_default().to_owned();
    for (name, variable) in server.get("variables").and_then(Json::as_object).into_iter().flatten()
    {
        let default = variable.get("default").and_then(Json::as_str).unwrap_or_default();
        url = url.replace(&format!("{{{name}}}"), default);
    }
    Ok(url)
}

fn check_server(url: &str) -> Result<String, String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.contains(['{', '?', '#', '@', ' ', '"', '\\']) => {
            Ok(url.trim_end_matches('/').to_owned())
        }
        _ => Err(format!(
            "the address of the server is `{url}`, expected one such as `https://api.example.com/v1`: \
             set the environment variable OPENAPI_SERVER"
        )),
    }
}

/// Returns the generated source.
fn code(server: &str, operations: &[Operation]) -> String {
    let mut code =
        format!("/// Address of the server.\npub(crate) const SERVER: &str = {server:?};\n\n");
    code += "/// Operations of the document.\npub(crate) const OPERATIONS: &[Operation] = &[\n";
    for operation in operations {
        operation.write(&mut code);
    }
    code += "];\n\ncofferdam_sdk::plugin!(";
    for index in 0..operations.len() {
        let separator = if index > 0 { ", " } else { "" };
        // Writing to a string does not fail.
        let _ = write!(code, "{separator}Call<{index}>");
    }
    code + "; manifest = \"plugin.toml\");\n"
}

#[cfg(test)]
mod tests;
