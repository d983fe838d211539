//! Decodes arguments from JSON to parameters.
//!
//! The host has already decoded them by the published schema, so errors are not expected here. An
//! incorrect host or a unit test gets a failure with a message, never a panic.

use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::{Deserializer, Map, Value};

use crate::ToolFailure;

/// Arguments of one call. Absent and null are the same.
#[derive(Debug)]
pub struct Arguments {
    tool: &'static str,
    values: Map<String, Value>,
}

impl Arguments {
    /// Parses a JSON object.
    ///
    /// # Errors
    /// [`ToolFailure`] if `text` is anything else.
    pub fn parse(tool: &'static str, text: &str) -> Result<Self, ToolFailure> {
        let mut deserializer = Deserializer::from_str(text);
        // The host allows 128 levels, one more than this parser does by default.
        deserializer.disable_recursion_limit();
        let values = Map::deserialize(&mut deserializer)
            .and_then(|values| deserializer.end().map(|()| values));
        match values {
            Ok(values) => Ok(Self { tool, values }),
            Err(_) => {
                Err(ToolFailure::new(format!("Arguments for '{tool}' are not a JSON object."))
                    .permanent())
            }
        }
    }

    /// Removes and returns an argument.
    ///
    /// # Errors
    /// [`ToolFailure`] if the value is not a `T`, or if it is missing and `T` does not accept null.
    pub fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, ToolFailure> {
        let value = self.supplied(name);
        let missing = value.is_none();
        T::deserialize(value.unwrap_or(Value::Null))
            .map_err(|error| self.failure(name, missing, &error))
    }

    /// Removes and returns an argument, or returns the default if it is missing.
    ///
    /// # Errors
    /// [`ToolFailure`] if the value is present and not a `T`.
    pub fn take_or<T: DeserializeOwned>(
        &mut self,
        name: &str,
        default: fn() -> T,
    ) -> Result<T, ToolFailure> {
        match self.supplied(name) {
            None => Ok(default()),
            Some(value) => T::deserialize(value).map_err(|error| self.failure(name, false, &error)),
        }
    }

    fn supplied(&mut self, name: &str) -> Option<Value> {
        // Most tools read all of their arguments, so the order of the others does not matter.
        self.values.swap_remove(name).filter(|value| !value.is_null())
    }

    fn failure(&self, name: &str, missing: bool, error: &serde_json::Error) -> ToolFailure {
        let tool = self.tool;
        let message = match missing {
            true => format!("Required argument '{name}' was not supplied to '{tool}'."),
            false => format!("Argument '{name}' of '{tool}' cannot be used: {error}."),
        };
        ToolFailure::new(message).permanent()
    }
}
