//! Arguments and return values of functions as Rust types.
//!
//! Rust prefers an inherent method to a trait's method of the same name. Generated code uses this
//! to call one name for all return types: `Result`, `Output` and the types of contents have an
//! inherent method, all other `Serialize` types use the trait. It works because the types are known
//! where the macro is expanded.

#![expect(
    missing_docs,
    reason = "hidden, and all methods of a name do one thing for different types"
)]

#[cfg(test)]
mod tests;

use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{FunctionEnd, schema};
use crate::{Arguments, Content, ErrorType, Output, ToolError, ToolFailure};

/// Arguments of one call, already decoded by the schema. Absent and null are the same.
///
/// The schema of a type may allow values that its `Deserialize` rejects. Such an argument is a
/// failure with a message for the model.
#[derive(Debug)]
pub struct TypedArguments {
    tool: &'static str,
    values: Map<String, Value>,
}

impl TypedArguments {
    #[must_use]
    pub fn new(tool: &'static str, arguments: Arguments) -> Self {
        Self { tool, values: arguments.into_map() }
    }

    /// Removes and returns an argument.
    pub fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, FunctionEnd> {
        let value = self.supplied(name);
        let is_missing = value.is_none();
        T::deserialize(value.unwrap_or(Value::Null))
            .map_err(|error| self.failure(name, is_missing, &error))
    }

    /// Removes and returns an argument, or returns the default if it is missing.
    pub fn take_or<T: DeserializeOwned>(
        &mut self,
        name: &str,
        default: fn() -> T,
    ) -> Result<T, FunctionEnd> {
        match self.supplied(name) {
            None => Ok(default()),
            Some(value) => T::deserialize(value).map_err(|error| self.failure(name, false, &error)),
        }
    }

    fn supplied(&mut self, name: &str) -> Option<Value> {
        // Most functions take all of their arguments, so the order of the others does not matter.
        self.values.swap_remove(name).filter(|value| !value.is_null())
    }

    fn failure(&self, name: &str, is_missing: bool, error: &serde_json::Error) -> FunctionEnd {
        let tool = self.tool;
        let message = match is_missing {
            true => format!("Required argument '{name}' was not supplied to '{tool}'."),
            false => format!("Argument '{name}' of '{tool}' cannot be used: {error}."),
        };
        ToolFailure { transient: Some(false), ..ToolFailure::new(message) }.into()
    }
}

/// Return value of a function.
#[derive(Debug)]
pub struct ReturnValue<T>(pub T);

impl<T, E> ReturnValue<Result<T, E>> {
    pub fn outcome(self) -> Result<T, FunctionEnd>
    where
        E: Into<FunctionEnd>,
    {
        self.0.map_err(Into::into)
    }
}

/// Outcome of every type that is not a `Result`: success.
pub trait PlainOutcome<T> {
    fn outcome(self) -> Result<T, FunctionEnd>;
}

impl<T> PlainOutcome<T> for ReturnValue<T> {
    fn outcome(self) -> Result<T, FunctionEnd> {
        Ok(self.0)
    }
}

/// Value of a success.
#[derive(Debug)]
pub struct SuccessValue<T>(pub T);

impl SuccessValue<Output> {
    pub fn output(self) -> Result<Output, FunctionEnd> {
        Ok(self.0)
    }
}

impl SuccessValue<Content> {
    pub fn output(self) -> Result<Output, FunctionEnd> {
        Ok(Output::from_contents(vec![self.0]))
    }
}

impl SuccessValue<Vec<Content>> {
    pub fn output(self) -> Result<Output, FunctionEnd> {
        Ok(Output::from_contents(self.0))
    }
}

/// Output of every other type: its JSON.
pub trait JsonOutput<T> {
    fn output(self) -> Result<Output, FunctionEnd>
    where
        T: Serialize;
}

impl<T> JsonOutput<T> for SuccessValue<T> {
    fn output(self) -> Result<Output, FunctionEnd>
    where
        T: Serialize,
    {
        serde_json::to_value(self.0).map(Output::Value).map_err(|error| {
            let error = ToolError::new(ErrorType::InvalidResult).with_detail(error.to_string());
            FunctionEnd::Error(Box::new(error))
        })
    }
}

/// Return type without a value.
#[derive(Debug)]
pub struct ReturnType<T>(PhantomData<fn() -> T>);

impl<T> Default for ReturnType<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> ReturnType<T> {
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T, E> ReturnType<Result<T, E>> {
    /// Returns the schema of a success. Failures have no schema.
    #[must_use]
    pub fn schema(&self) -> String
    where
        T: JsonSchema,
    {
        schema::of_output::<T>()
    }
}

/// Schema of every type that is not a `Result`.
pub trait PlainSchema<T> {
    fn schema(&self) -> String
    where
        T: JsonSchema;
}

impl<T> PlainSchema<T> for ReturnType<T> {
    fn schema(&self) -> String
    where
        T: JsonSchema,
    {
        schema::of_output::<T>()
    }
}
