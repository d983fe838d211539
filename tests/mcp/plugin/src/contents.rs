//! Results of every kind.

use cofferdam_sdk::{Blob, Content, Resource, ToolFailure, tool};

/// A PNG of one red pixel.
pub(crate) const PNG: &[u8] = include_bytes!("pixel.png");
/// A WAV without samples.
const WAV: &[u8] = include_bytes!("silence.wav");

/// Answers a text.
#[tool(read_only)]
pub fn test_simple_text() -> &'static str {
    "This is a simple text response for testing."
}

/// Answers an image.
#[tool(read_only)]
pub fn test_image_content() -> Blob {
    Blob::new("image/png", PNG)
}

/// Answers a sound.
#[tool(read_only)]
pub fn test_audio_content() -> Blob {
    Blob::new("audio/wav", WAV)
}

/// Answers a resource with what it holds.
#[tool(read_only)]
pub fn test_embedded_resource() -> Resource {
    Resource::text("test://embedded-resource", "This is an embedded resource content.")
        .media_type("text/plain")
}

/// Answers a text, an image and a resource.
#[tool(read_only)]
pub fn test_multiple_content_types() -> Vec<Content> {
    let resource =
        Resource::text("test://mixed-content-resource", r#"{"test":"data","value":123}"#);
    vec![
        Content::text("Multiple content types test:"),
        Content::blob("image/png", PNG),
        resource.media_type("application/json").into(),
    ]
}

/// Always reports a failure.
#[tool(read_only)]
pub fn test_error_handling() -> Result<(), ToolFailure> {
    Err(ToolFailure::new("This tool intentionally returns an error for testing"))
}
