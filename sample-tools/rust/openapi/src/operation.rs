//! Operations of the document, and the tools that call them.

use cofferdam_sdk::{Annotations, Arguments, Content, Definition, Tool, ToolFailure};
use serde_json::Value as Json;

use crate::request::Request;
use crate::{OPERATIONS, answer, http};

/// Operation of the document.
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    pub(crate) title: Option<&'static str>,
    pub(crate) description: &'static str,
    /// JSON Schema of the arguments.
    pub(crate) input_schema: &'static str,
    pub(crate) method: Method,
    /// Path below the server, with `{name}` for parameters.
    pub(crate) path: &'static str,
    pub(crate) parameters: &'static [Parameter],
    pub(crate) body: Option<Body>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "a document need not use all of them")]
pub(crate) enum Method {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

/// Parameter of an operation.
pub(crate) struct Parameter {
    /// Name of the argument that has its value.
    pub(crate) argument: &'static str,
    pub(crate) name: &'static str,
    pub(crate) location: Location,
    pub(crate) style: Style,
    pub(crate) is_required: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "a document need not use all of them")]
pub(crate) enum Location {
    Path,
    Query,
    Header,
}

/// Form of arrays and objects in a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "a document need not use all of them")]
pub(crate) enum Style {
    /// `a,b`
    Commas,
    /// `name=a&name=b`
    Repeated,
    /// `name=a%20b`
    Spaces,
    /// `name=a|b`
    Pipes,
    /// `name[key]=a`
    Deep,
    /// JSON text.
    Json,
}

/// Body of a request.
pub(crate) struct Body {
    pub(crate) encoding: Encoding,
    pub(crate) media_type: &'static str,
    /// Arguments and the members of the body that they become. Without any, the argument `body` is
    /// the body.
    pub(crate) members: &'static [(&'static str, &'static str)],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "a document need not use all of them")]
pub(crate) enum Encoding {
    Json,
    Form,
    Text,
}

impl Method {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    fn annotations(self) -> Annotations {
        let is_read_only = matches!(self, Self::Get | Self::Head);
        let mut annotations = Annotations::default();
        annotations.read_only = Some(is_read_only);
        annotations.destructive = Some(matches!(self, Self::Put | Self::Patch | Self::Delete));
        annotations.idempotent = Some(is_read_only || matches!(self, Self::Put | Self::Delete));
        annotations.open_world = Some(true);
        annotations
    }
}

/// Tool that calls the operation at an index of [`OPERATIONS`].
pub(crate) struct Call<const INDEX: usize>;

impl<const INDEX: usize> Call<INDEX> {
    #[expect(clippy::indexing_slicing, reason = "checked by the compiler")]
    const OPERATION: &'static Operation = &OPERATIONS[INDEX];
}

impl<const INDEX: usize> Tool for Call<INDEX> {
    const NAME: &'static str = Self::OPERATION.name;

    fn definition() -> Definition {
        let operation = Self::OPERATION;
        // The build wrote the schema as JSON.
        let schema = serde_json::from_str(operation.input_schema).unwrap_or(Json::Bool(true));
        let mut definition = Definition::new(operation.name, operation.description, schema);
        definition.title = operation.title;
        definition.annotations = operation.method.annotations();
        definition
    }

    fn call(mut arguments: Arguments) -> Result<Vec<Content>, ToolFailure> {
        let bytes_max = arguments.take_or("response_bytes_max", || answer::BYTES_DEFAULT)?;
        let request = Request::build(crate::SERVER, Self::OPERATION, &mut arguments)?;
        let name = request.to_string();
        let response = http::send(request, bytes_max.clamp(1, answer::BYTES_MAX))?;
        answer::content(&name, response)
    }
}
