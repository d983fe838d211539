//! A refusal on its way to becoming a [`DeclarationError`].

use super::pointer::Pointer;
use crate::declaration::DeclarationError;
use crate::declaration::Reason;

/// Why a schema is refused, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) pointer: Pointer,
    pub(super) reason: Reason,
}

/// A refusal at that pointer.
pub(super) fn refuse<T>(pointer: &str, reason: Reason) -> Result<T, Refusal> {
    Err(Refusal { pointer: pointer.to_owned(), reason })
}

impl Refusal {
    pub(super) fn for_tool(&self, tool: &str) -> DeclarationError {
        DeclarationError::at(tool, &self.pointer, &self.reason)
    }
}
