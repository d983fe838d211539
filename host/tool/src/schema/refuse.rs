//! A refusal before it becomes a [`DeclarationError`].

use super::pointer::Pointer;
use crate::declaration::DeclarationError;
use crate::declaration::Reason;

/// Reason why a schema is rejected, and the pointer to the invalid part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SchemaRefusal {
    pub(super) pointer: Pointer,
    pub(super) reason: Reason,
}

/// Returns a refusal at that pointer as an error.
pub(super) fn refuse<T>(pointer: &str, reason: Reason) -> Result<T, SchemaRefusal> {
    Err(SchemaRefusal { pointer: pointer.to_owned(), reason })
}

impl SchemaRefusal {
    pub(super) fn for_tool(&self, tool: &str) -> DeclarationError {
        DeclarationError::at(tool, &self.pointer, &self.reason)
    }
}
