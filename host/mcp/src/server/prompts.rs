//! Prompts: tools that a person, and not a model, calls for their text.

use cofferdam_tool::{Output, ToolDefinition};
use rmcp::model::{Prompt, PromptArgument, PromptMessage, Role};
use serde_json::Value;

use super::answer::block;
use super::catalog::Entry;

/// Most values of a completion that MCP allows.
const COMPLETIONS_MAX: usize = 100;

/// A tool that is offered as a prompt.
#[derive(Debug, Clone)]
pub struct PromptOffer {
    /// The prompt's name.
    pub name: String,
    /// The tool that makes its messages. Each item of its result is a message of the user.
    pub tool: String,
}

/// The prompt as a client sees it: the tool's description and arguments.
pub(super) fn prompt(offer: &PromptOffer, entry: &Entry) -> Prompt {
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

/// The messages that a tool's output is.
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

/// The values of an argument that begin with what was typed: the members of its `enum`.
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
