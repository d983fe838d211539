//! Exports the interface of `wit/` from the component. Only converts types.

use crate::plugin::{Entry, Plugin, call};
use crate::{Blob, Content, Definition, Link, Resource, ResourceBody, ToolFailure};

#[allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::allow_attributes_without_reason,
    reason = "written by wit-bindgen"
)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "wit",
        world: "plugin",
        pub_export_macro: true,
        default_bindings_module: "::cofferdam_sdk::__private::bindings",
        runtime_path: "wit_bindgen::rt",
    });
}

use bindings::cofferdam::plugin::{errors, types};
use bindings::exports::cofferdam::plugin::tools::Guest;

impl<P: Plugin> Guest for P {
    fn list_tools() -> Vec<types::ToolDefinition> {
        P::TOOLS.iter().map(|tool: &Entry| (tool.definition)().into()).collect()
    }

    fn call_tool(
        name: String,
        arguments_json: String,
    ) -> Result<Vec<types::Content>, types::Failure> {
        let contents = call(P::TOOLS, &name, &arguments_json)?;
        Ok(contents.into_iter().map(Into::into).collect())
    }
}

impl From<Definition> for types::ToolDefinition {
    fn from(definition: Definition) -> Self {
        Self {
            name: definition.name.to_owned(),
            title: definition.title.map(str::to_owned),
            description: definition.description.to_owned(),
            input_schema: definition.input_schema.to_string(),
            output_schema: definition.output_schema.map(|schema| schema.to_string()),
            annotations: types::Annotations {
                read_only: definition.annotations.read_only,
                destructive: definition.annotations.destructive,
                idempotent: definition.annotations.idempotent,
                open_world: definition.annotations.open_world,
                long_running: definition.annotations.long_running,
            },
        }
    }
}

impl From<Content> for types::Content {
    fn from(content: Content) -> Self {
        match content {
            Content::Text(text) => Self::Text(text),
            Content::Json(json) => Self::Json(json),
            Content::Blob(Blob { media_type, data }) => {
                Self::Blob(types::Blob { media_type, data })
            }
            Content::Resource(Resource { uri, media_type, body }) => {
                let body = match body {
                    ResourceBody::Text(text) => types::ResourceBody::Text(text),
                    ResourceBody::Blob(data) => types::ResourceBody::Blob(data),
                };
                Self::Resource(types::EmbeddedResource { uri, media_type, body })
            }
            Content::Link(Link { uri, name, media_type }) => {
                Self::Link(types::Link { uri, name, media_type })
            }
        }
    }
}

impl From<types::Content> for Content {
    fn from(content: types::Content) -> Self {
        match content {
            types::Content::Text(text) => Self::Text(text),
            types::Content::Json(json) => Self::Json(json),
            types::Content::Blob(types::Blob { media_type, data }) => {
                Self::Blob(Blob { media_type, data })
            }
            types::Content::Resource(types::EmbeddedResource { uri, media_type, body }) => {
                let body = match body {
                    types::ResourceBody::Text(text) => ResourceBody::Text(text),
                    types::ResourceBody::Blob(data) => ResourceBody::Blob(data),
                };
                Self::Resource(Resource { uri, media_type, body })
            }
            types::Content::Link(types::Link { uri, name, media_type }) => {
                Self::Link(Link { uri, name, media_type })
            }
        }
    }
}

impl From<ToolFailure> for types::Failure {
    fn from(failure: ToolFailure) -> Self {
        Self {
            transient: failure.is_transient(),
            value: failure.error_value().map(ToString::to_string),
            suggestion: failure.suggested().map(str::to_owned),
            message: match failure.unexpected() {
                Some(error) => (error.report)(&error.type_name, &error.text),
                None => failure.message().to_owned(),
            },
        }
    }
}

/// Reports an error that was not meant for the model and returns the message of its failure.
pub(crate) fn report_unexpected(type_name: &str, text: &str) -> String {
    errors::unexpected(type_name, text)
}
