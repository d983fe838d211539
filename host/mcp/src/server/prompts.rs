//! Prompts: tools that the user calls for their output, instead of the model.

use cofferdam_tool::{Output, ToolDefinition};
use rmcp::model::{Prompt, PromptArgument, PromptMessage, Role};
use serde_json::Value;

use super::answer::block;
use super::catalog::CatalogEntry;

/// Maximum number of completion values that MCP allows.
const COMPLETIONS_MAX: usize = 100;

/// Tool that is offered as a prompt.
#[derive(Debug, Clone)]
pub struct PromptOffer {
    /// Name of the prompt.
    pub name: String,
    /// Name of the tool that renders the prompt. Each item of its result becomes a user message.
    pub tool: String,
}

/// Returns the prompt as clients see it, with the description and arguments of its tool.
pub(super) fn prompt(offer: &PromptOffer, entry: &CatalogEntry) -> Prompt {
    let definition = &entry.definition;
    let schema = definition.input.published();
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|required| required.iter().any(|r| r == name));
    let arguments: Vec<_> = properties(definition)
        .map(|(name, property)| {
            let mut argument = PromptArgument::new(name).with_required(is_required(name));
            argument.description =
                property.get("description").and_then(Value::as_str).map(str::to_owned);
            argument
        })
        .collect();
    let arguments = (!arguments.is_empty()).then_some(arguments);
    let mut prompt =
        Prompt::new(offer.name.clone(), Some(definition.description.clone()), arguments);
    prompt.title.clone_from(&definition.title);
    prompt.icons.clone_from(&entry.tool().icons);
    prompt
}

/// Converts a tool's output to prompt messages.
pub(super) fn messages(output: Output) -> Vec<PromptMessage> {
    let message = |content| PromptMessage::new(Role::User, content);
    match output {
        Output::Value(value) => {
            vec![PromptMessage::new_text(Role::User, Output::Value(value).text())]
        }
        Output::Contents(contents) => {
            contents.into_iter().map(|content| message(block(content))).collect()
        }
    }
}

/// Returns completions of a partly typed argument, from the members of its `enum`.
pub(super) fn completions(definition: &ToolDefinition, argument: &str, typed: &str) -> Vec<String> {
    let members = properties(definition)
        .find(|(name, _)| *name == argument)
        .and_then(|(_, property)| property.get("enum")?.as_array());
    let texts = members.into_iter().flatten().filter_map(Value::as_str);
    texts.filter(|text| text.starts_with(typed)).take(COMPLETIONS_MAX).map(str::to_owned).collect()
}

fn properties(definition: &ToolDefinition) -> impl Iterator<Item = (&str, &Value)> {
    let properties = definition.input.published().get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, property)| (name.as_str(), property))
}
