//! Arguments on their way from JSON to parameters.
//!
//! The host has decoded them by the published schema, so nothing here should fail. A host that
//! breaks its word, and a unit test, get a failure in words and never a panic.

use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::{Deserializer, Map, Value};

use crate::ToolFailure;

/// The arguments of one call. Absent and null are the same.
#[derive(Debug)]
pub struct Arguments {
    tool: &'static str,
    values: Map<String, Value>,
}

impl Arguments {
    /// Reads a JSON object.
    ///
    /// # Errors
    ///
    /// If the text is anything else.
    pub fn parse(tool: &'static str, text: &str) -> Result<Self, ToolFailure> {
        let mut deserializer = Deserializer::from_str(text);
        // The host lets 128 levels through, one more than this reader would.
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

    /// Takes an argument out.
    ///
    /// # Errors
    ///
    /// If the value is not a `T`, or if it is missing and `T` does not accept null.
    pub fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, ToolFailure> {
        let value = self.supplied(name);
        let missing = value.is_none();
        T::deserialize(value.unwrap_or(Value::Null))
            .map_err(|error| self.failure(name, missing, &error))
    }

    /// Takes an argument out, or the default if it is not there.
    ///
    /// # Errors
    ///
    /// If the value is there and no `T`.
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
        // Most tools read all of their arguments, so the order of the rest does not matter.
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
