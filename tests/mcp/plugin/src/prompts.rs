//! Tools whose results are prompts. Each item is a message.

use cofferdam_sdk::{Content, Resource, ToolFailure, client, tool};

use crate::contents::PNG;
use crate::rounds::{field, form};

/// A simple prompt without arguments
#[tool(read_only)]
pub fn test_simple_prompt() -> &'static str {
    "This is a simple prompt for testing."
}

/// A prompt with two arguments
#[tool(read_only)]
pub fn test_prompt_with_arguments(
    /// First test argument
    arg1: String,
    /// Second test argument
    arg2: String,
) -> String {
    format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
}

/// A prompt with a resource in it
#[tool(read_only)]
#[allow(non_snake_case, reason = "the suite's name of the parameter")]
pub fn test_prompt_with_embedded_resource(
    /// URI of the resource to embed
    resourceUri: String,
) -> Vec<Content> {
    let resource = Resource::text(resourceUri, "Embedded resource content for testing.");
    vec![
        resource.media_type("text/plain").into(),
        Content::text("Please process the embedded resource above."),
    ]
}

/// A prompt with an image
#[tool(read_only)]
pub fn test_prompt_with_image() -> Vec<Content> {
    vec![Content::blob("image/png", PNG), Content::text("Please analyze the image above.")]
}

/// A prompt that asks the person first
#[tool]
pub fn test_input_required_result_prompt() -> Result<String, ToolFailure> {
    let question =
        form("What context should the prompt use?", "context", "string").named("user_context");
    let context = field(&client::ask(question)?, "context");
    let context =
        context.and_then(|context| context.as_str().map(str::to_owned)).unwrap_or_default();
    Ok(format!("Prompt with elicited context: {context}"))
}
