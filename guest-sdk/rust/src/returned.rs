//! Converts return values of tool functions to results for the host.
//!
//! Rust prefers an inherent method to a trait's method of the same name. Generated code uses this
//! to call one name for all types: `Result`, `String` and the other special types have an inherent
//! method, all other `Serialize` types use the trait. A trait would need specialization for this.
//! It works because the types are known at the macro's expansion.

#![expect(
    missing_docs,
    reason = "hidden, and all methods of a name do one thing for different types"
)]

use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{Blob, Content, Link, Resource, ToolFailure, schema};

/// Return value of a tool function.
#[derive(Debug)]
pub struct ReturnValue<T>(pub T);

impl<T, E> ReturnValue<Result<T, E>> {
    pub fn outcome(self) -> Result<T, ToolFailure>
    where
        E: Into<ToolFailure>,
    {
        self.0.map_err(Into::into)
    }
}

/// Outcome of every type that is not a `Result`: success.
pub trait PlainOutcome<T> {
    fn outcome(self) -> Result<T, ToolFailure>;
}

impl<T> PlainOutcome<T> for ReturnValue<T> {
    fn outcome(self) -> Result<T, ToolFailure> {
        Ok(self.0)
    }
}

/// Value of a success.
#[derive(Debug)]
pub struct Value<T>(pub T);

type Contents = Result<Vec<Content>, ToolFailure>;

impl Value<()> {
    pub fn contents(self) -> Contents {
        Ok(Vec::new())
    }
}

impl Value<String> {
    pub fn contents(self) -> Contents {
        Ok(vec![Content::Text(self.0)])
    }
}

impl Value<&str> {
    pub fn contents(self) -> Contents {
        Ok(vec![Content::text(self.0)])
    }
}

impl Value<Content> {
    pub fn contents(self) -> Contents {
        Ok(vec![self.0])
    }
}

impl Value<Vec<Content>> {
    pub fn contents(self) -> Contents {
        Ok(self.0)
    }
}

impl Value<Blob> {
    pub fn contents(self) -> Contents {
        Ok(vec![Content::Blob(self.0)])
    }
}

impl Value<Resource> {
    pub fn contents(self) -> Contents {
        Ok(vec![Content::Resource(self.0)])
    }
}

impl Value<Link> {
    pub fn contents(self) -> Contents {
        Ok(vec![Content::Link(self.0)])
    }
}

/// Contents of every other type: its JSON.
pub trait JsonContents<T> {
    fn contents(self) -> Contents
    where
        T: Serialize;
}

impl<T> JsonContents<T> for Value<T> {
    fn contents(self) -> Contents
    where
        T: Serialize,
    {
        Ok(vec![Content::json(&self.0)?])
    }
}

/// Return type without a value.
#[derive(Debug)]
pub struct Returns<T>(PhantomData<fn() -> T>);

impl<T> Default for Returns<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Returns<T> {
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T, E> Returns<Result<T, E>> {
    /// Returns the schema of a success. Failures have no schema.
    #[must_use]
    pub fn schema(&self) -> serde_json::Value
    where
        T: JsonSchema,
    {
        schema::of_output::<T>()
    }
}

/// Schema of every type that is not a `Result`.
pub trait PlainSchema<T> {
    fn schema(&self) -> serde_json::Value
    where
        T: JsonSchema;
}

impl<T> PlainSchema<T> for Returns<T> {
    fn schema(&self) -> serde_json::Value
    where
        T: JsonSchema,
    {
        schema::of_output::<T>()
    }
}
