//! Tools and prompts that a server lists, within the limits.

use std::borrow::Cow;

use cofferdam_tool::redact::Redactor;
use cofferdam_tool::{Annotations, CallContext};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::call::TaskSupport;
use super::limits::{
    DESCRIPTION_BYTES_MAX, LISTING_BYTES_MAX, PAGES_MAX, PROMPTS_MAX, SCHEMA_BYTES_MAX,
    SCHEMA_LEVELS_MAX, TITLE_BYTES_MAX, TOOLS_MAX, cut,
};
use super::remote::{Remote, RequestError};
use super::schema::{PromptArgument, input_schema};

/// Key in `_meta` that carries `execution` past the SDK's type for tools, which has no field for
/// it.
pub(crate) const EXECUTION: &str = "cofferdam/execution";

/// Tools and prompts of a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerListing {
    /// Tools, in the server's order.
    pub tools: Vec<ToolListed>,
    /// Prompts, in the server's order.
    pub prompts: Vec<PromptListed>,
    /// Descriptions of the entries that were left out, with the reasons.
    pub left_out: Vec<String>,
}

/// Tool as a server lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolListed {
    /// Name on the server.
    pub name: String,
    /// Short name for display.
    pub title: Option<String>,
    /// Description, in the server's words.
    pub description: String,
    /// Schema of the arguments (`MCP-14`).
    pub input_schema: Value,
    /// Schema of the structured content.
    pub output_schema: Option<Value>,
    /// Behavior hints.
    pub annotations: Annotations,
    /// Task support of the tool.
    pub support: TaskSupport,
    /// `_meta` of the tool, which is sent back with each call.
    pub meta: Option<Map<String, Value>>,
}

/// Prompt as a server lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct PromptListed {
    /// Name on the server.
    pub name: String,
    /// Short name for display.
    #[serde(default)]
    pub title: Option<String>,
    /// Description, in the server's words.
    #[serde(default)]
    pub description: Option<String>,
    /// Arguments of the prompt.
    #[serde(default)]
    pub arguments: Option<Vec<PromptArgument>>,
}

/// Error of listing a server's tools and prompts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ListingError {
    /// The request failed.
    #[error("{0}")]
    Request(#[from] RequestError),
    /// The response contains no list.
    #[error("the answer to {0} has no list in it")]
    Malformed(&'static str),
}

impl ServerListing {
    /// Fetches the lists of a server.
    ///
    /// # Errors
    /// [`ListingError`] if a page cannot be fetched. Invalid single entries are left out instead.
    pub async fn fetch(
        remote: &dyn Remote,
        tools: bool,
        prompts: bool,
    ) -> Result<Self, ListingError> {
        let mut listing = Self::default();
        let mut room = LISTING_BYTES_MAX;
        if tools {
            let listed =
                pages(remote, "tools/list", "tools", TOOLS_MAX, &mut room, &mut listing.left_out)
                    .await?;
            for tool in listed {
                match ToolListed::read(tool) {
                    Ok(tool) => listing.tools.push(tool),
                    Err(reason) => listing.left_out.push(reason),
                }
            }
        }
        if prompts {
            let listed = pages(
                remote,
                "prompts/list",
                "prompts",
                PROMPTS_MAX,
                &mut room,
                &mut listing.left_out,
            )
            .await?;
            for prompt in listed {
                match serde_json::from_value(prompt) {
                    Ok(prompt) => listing.prompts.push(prompt),
                    Err(_) => listing.left_out.push("a prompt that is not one".to_owned()),
                }
            }
        }
        Ok(listing)
    }
}

impl ServerListing {
    /// Removes the secrets that `redactor` hides. A tool or prompt with a secret in its name is
    /// left out, because it could not be called.
    #[must_use]
    pub fn redacted(self, redactor: &Redactor) -> Self {
        let Self { mut tools, mut prompts, left_out } = self;
        let mut left_out: Vec<_> =
            left_out.into_iter().map(|reason| redactor.text(&reason).into_owned()).collect();
        let mut is_fit = |name: &str| {
            let is_fit = matches!(redactor.text(name), Cow::Borrowed(_));
            if !is_fit {
                left_out.push(format!("`{}`: its name holds a secret", redactor.text(name)));
            }
            is_fit
        };
        tools.retain(|tool| is_fit(&tool.name));
        prompts.retain(|prompt| is_fit(&prompt.name));
        let clean = |text: &mut String| {
            if let Cow::Owned(cleaned) = redactor.text(text) {
                *text = cleaned;
            }
        };
        for tool in &mut tools {
            tool.title.iter_mut().chain([&mut tool.description]).for_each(clean);
            tool.input_schema = redactor.value(tool.input_schema.take());
            tool.output_schema = tool.output_schema.take().map(|schema| redactor.value(schema));
            tool.meta =
                tool.meta.take().and_then(|meta| match redactor.value(Value::Object(meta)) {
                    Value::Object(meta) => Some(meta),
                    _ => None,
                });
        }
        for prompt in &mut prompts {
            prompt.title.iter_mut().chain(&mut prompt.description).for_each(clean);
            for argument in prompt.arguments.iter_mut().flatten() {
                argument.description.iter_mut().chain([&mut argument.name]).for_each(clean);
            }
        }
        Self { tools, prompts, left_out }
    }
}

/// Returns all entries of a paged list, within the limits.
pub(super) async fn pages(
    remote: &dyn Remote,
    method: &'static str,
    member: &str,
    entries_max: usize,
    room: &mut usize,
    left_out: &mut Vec<String>,
) -> Result<Vec<Value>, ListingError> {
    let no_caller = CallContext::default();
    let (mut entries, mut cursor) = (Vec::new(), None);
    for _ in 0..PAGES_MAX {
        let parameters = cursor.map(|cursor| ("cursor".to_owned(), cursor)).into_iter().collect();
        let mut page = remote.request(method, parameters, &no_caller).await?;
        let Some(Value::Array(listed)) = page.get_mut(member).map(Value::take) else {
            return Err(ListingError::Malformed(method));
        };
        for entry in listed {
            let bytes = entry.to_string().len();
            if entries.len() >= entries_max || bytes > *room {
                left_out.push(format!("all {member} after the first {}", entries.len()));
                return Ok(entries);
            }
            *room = room.saturating_sub(bytes);
            entries.push(entry);
        }
        cursor = page.get_mut("nextCursor").map(Value::take).filter(Value::is_string);
        if cursor.is_none() {
            return Ok(entries);
        }
    }
    left_out.push(format!("all {member} after page {PAGES_MAX}"));
    Ok(entries)
}

impl ToolListed {
    /// Parses one entry of a listing.
    ///
    /// # Errors
    /// The reason why the tool is left out, for the log.
    pub fn read(tool: Value) -> Result<Self, String> {
        let Value::Object(mut members) = tool else {
            return Err("a tool that is not an object".to_owned());
        };
        let mut text = |name: &str| match members.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let Some(name) = text("name") else { return Err("a tool without a name".to_owned()) };
        let title = text("title");
        let description = text("description").unwrap_or_default();
        let input_schema = input_schema(members.get("inputSchema"));
        check_schema(&input_schema)
            .map_err(|reason| format!("`{name}`: its input schema {reason}"))?;
        if input_schema.get("type").is_some_and(|kind| kind != "object") {
            return Err(format!("`{name}`: its arguments are not an object"));
        }
        // A tool is just as usable without an output schema.
        let output_schema =
            members.remove("outputSchema").filter(|schema| check_schema(schema).is_ok());
        let mut meta = match members.remove("_meta") {
            Some(Value::Object(meta)) => Some(meta),
            _ => None,
        };
        let carried = meta.as_mut().and_then(|meta| meta.remove(EXECUTION));
        let meta = meta.filter(|meta| !meta.is_empty());
        let execution = members.remove("execution").or(carried);
        let support = TaskSupport::read(
            execution.as_ref().and_then(|execution| execution.get("taskSupport")),
        );
        let hints = members.get("annotations");
        let hint = |name: &str| hints.and_then(|hints| hints.get(name)).and_then(Value::as_bool);
        let annotations = Annotations {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
            long_running: (support == TaskSupport::Required).then_some(true),
        };
        let titled =
            hints.and_then(|hints| hints.get("title")).and_then(Value::as_str).map(str::to_owned);
        Ok(Self {
            title: title.or(titled).map(|title| cut(&title, TITLE_BYTES_MAX).to_owned()),
            description: cut(&description, DESCRIPTION_BYTES_MAX).to_owned(),
            name,
            input_schema,
            output_schema,
            annotations,
            support,
            meta,
        })
    }
}

/// Checks that a schema is an object of acceptable size and depth. Its contents are not checked,
/// because this host does not decode arguments by it.
fn check_schema(schema: &Value) -> Result<(), &'static str> {
    if !schema.is_object() {
        return Err("is not an object");
    }
    if !is_flatter(schema, SCHEMA_LEVELS_MAX) {
        return Err("is nested too deeply");
    }
    if schema.to_string().len() > SCHEMA_BYTES_MAX { Err("is too large") } else { Ok(()) }
}

/// Returns true if a value has at most `levels` levels. The recursion never goes deeper than that.
pub(crate) fn is_flatter(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else { return false };
    match value {
        Value::Array(items) => items.iter().all(|item| is_flatter(item, below)),
        Value::Object(members) => members.values().all(|member| is_flatter(member, below)),
        _ => true,
    }
}
