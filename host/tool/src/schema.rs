//! Declared schemas: compiles a declaration, or rejects it, into its published form and the plan
//! for decoding arguments.
//!
//! A declaration is compiled once, at load. A call then walks the plan and never uses the schema
//! again: it searches no keyword, compiles no pattern and resolves no reference.
//!
//! The dialect is JSON Schema 2020-12 with these restrictions, each of which is an error and never
//! ignored: references stay within the document; `$dynamicRef` and an `$id` below the top level are
//! unsupported; schemas that apply to the same value must not form a cycle. Keywords outside the
//! dialect are published and have no effect.

mod build;
mod declared;
mod defaults;
mod dialect;
mod extent;
mod keywords;
mod pattern;
mod plan;
mod pointer;
mod presence;
mod publish;
mod refuse;
mod serialized;
mod sites;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::OnceLock;

use serde_json::{Map, Value};

use crate::arguments::{self, Arguments, DecodeOptions, InvalidArguments};
use crate::declaration::{DeclarationError, Reason, tool_name};
use crate::json::Json;
use plan::NodeId;
use refuse::{SchemaRefusal, refuse};
use sites::Sites;

pub use crate::json::equal;
pub(crate) use declared::is_of;
pub use dialect::{Dialect, DialectSchema, Loss, UnknownDialect};
pub(crate) use plan::{
    Additional, AllowedValues, ArrayPlan, Check, Choice, Contains, CountKind, Format, Kind,
    NodeId as SchemaId, ObjectPlan, Property, SchemaCondition, SchemaNode, SchemaPlan,
};
pub(crate) use publish::GROUP_KEYWORD;
pub(crate) use serialized::SerializedSchema;

/// Compiled schema of a tool's arguments.
///
/// Compilation costs time and memory proportional to the size of the JSON; each `pattern` costs
/// about as much as five parameters. Schemas share nothing, and no validator library is involved. A
/// compiled schema can be cached in serialized form ([`SerializedTool`](crate::declaration::SerializedTool)).
/// The first call then compiles it again, so that a host which starts with the schemas of a
/// thousand plugins compiles only those that are called.
#[derive(Debug)]
pub struct InputSchema {
    /// Source of the other fields, which are computed on first use; `None` if they are set from the
    /// beginning.
    serialized: Option<Box<SerializedSchema>>,
    compiled: OnceLock<CompiledInput>,
    published: OnceLock<Value>,
}

#[derive(Debug)]
struct CompiledInput {
    reading: DecodeMode,
    notes: Vec<Note>,
}

/// Method of reading arguments.
#[derive(Debug)]
enum DecodeMode {
    /// Arguments are decoded by a plan.
    Plan(Box<SchemaPlan>),
    /// Arguments are passed on as written.
    AsWritten,
}

/// Compiled schema of a result (`RES-22`). Compiled once like an [`InputSchema`], but a result is
/// only validated: nothing is converted, completed or dropped, and plain JSON Schema determines
/// validity.
#[derive(Debug)]
pub struct OutputSchema {
    serialized: Option<Box<SerializedSchema>>,
    /// Boxed because it is large and rarely needed.
    plan: OnceLock<Box<SchemaPlan>>,
    published: OnceLock<Value>,
}

/// An oddity in a declaration that is not an error (`ARG-40`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// `required` lists a property that has a default. It is published as not required.
    RequiredWithDefault {
        /// JSON Pointer of the object schema.
        object: String,
        /// Name of the property.
        property: String,
    },
    /// `required` lists a property that accepts null. It is published as not required.
    RequiredButNullable {
        /// JSON Pointer of the object schema.
        object: String,
        /// Name of the property.
        property: String,
    },
}

impl Note {
    /// Returns the JSON Pointer of the object schema that the note is about.
    #[must_use]
    pub fn object(&self) -> &str {
        match self {
            Self::RequiredWithDefault { object, .. } | Self::RequiredButNullable { object, .. } => {
                object
            }
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (object, property, has) = match self {
            Self::RequiredWithDefault { object, property } => (object, property, "has a default"),
            Self::RequiredButNullable { object, property } => (object, property, "accepts null"),
        };
        write!(f, "'{property}' in `{object}/required` {has} and is published as not required")
    }
}

impl InputSchema {
    /// Compiles the schema of a tool's arguments.
    ///
    /// # Errors
    /// The first rule of `ARG-38` or `ARG-42` that the declaration or the tool's name breaks.
    pub fn compile(tool: &str, declared: &str) -> Result<Self, DeclarationError> {
        tool_name(tool)?;
        Self::compile_text(declared).map_err(|refusals| first(refusals).for_tool(tool))
    }

    /// Compiles the schema like [`InputSchema::compile`], or reports all errors. Parts that depend
    /// on an invalid part are not checked.
    ///
    /// # Errors
    /// All rules that the declaration breaks, starting with the one that [`InputSchema::compile`]
    /// reports.
    pub fn compile_or_explain(tool: &str, declared: &str) -> Result<Self, Vec<DeclarationError>> {
        tool_name(tool).map_err(|error| vec![error])?;
        let all = |refusals: Vec<SchemaRefusal>| {
            refusals.iter().map(|refusal| refusal.for_tool(tool)).collect()
        };
        Self::compile_text(declared).map_err(all)
    }

    fn compile_text(declared: &str) -> Result<Self, Vec<SchemaRefusal>> {
        let json = extent::read(declared).map_err(one)?;
        let sites = locate(&json).map_err(one)?;
        check_top_level(&json, &sites).map_err(one)?;
        let mut plan = SchemaPlan::new(build::nodes(&sites)?);
        presence::fill_nullable(&mut plan, &sites);
        let defaults = defaults::texts(&sites);
        defaults::mark(&mut plan, &defaults);
        let (notes, mut refusals) = presence::fill_required(&mut plan, &sites);
        refusals.extend(defaults::fill(&mut plan, &sites, &defaults));
        if !refusals.is_empty() {
            return Err(refusals);
        }
        let published = publish::published(&plan, &sites, &json);
        Ok(Self::ready(
            CompiledInput { reading: DecodeMode::Plan(Box::new(plan)), notes },
            published,
        ))
    }

    fn ready(compiled: CompiledInput, published: Value) -> Self {
        Self { serialized: None, compiled: compiled.into(), published: published.into() }
    }

    /// Restores a schema that was compiled before, by the same rules.
    pub(crate) fn from_serialized(serialized: SerializedSchema) -> Self {
        Self {
            serialized: Some(Box::new(serialized)),
            compiled: OnceLock::new(),
            published: OnceLock::new(),
        }
    }

    fn compiled(&self) -> &CompiledInput {
        self.compiled.get_or_init(|| {
            let compiled = self
                .serialized
                .as_ref()
                .and_then(|serialized| Self::compile_text(serialized.declared()).ok());
            // A cached schema that was never accepted yields a tool that accepts nothing.
            compiled.and_then(|schema| schema.compiled.into_inner()).unwrap_or_else(|| {
                CompiledInput {
                    reading: DecodeMode::Plan(Box::new(SchemaPlan::refusing())),
                    notes: Vec::new(),
                }
            })
        })
    }

    /// Returns the schema of a remote tool, whose arguments are forwarded as the model wrote them:
    /// any JSON object within the limits of `ARG-30` is accepted, nothing is converted, filled in
    /// or dropped, and the schema is published unchanged (`MCP-3`). It is not compiled, so
    /// [`InputSchema::compile`] might reject it.
    #[must_use]
    pub fn forwarded(schema: Value) -> Self {
        Self::ready(CompiledInput { reading: DecodeMode::AsWritten, notes: Vec::new() }, schema)
    }

    /// Returns the schema that a model sees (`ARG-36`).
    #[must_use]
    pub fn published(&self) -> &Value {
        self.published.get_or_init(|| serialized::published(self.serialized.as_deref()))
    }

    /// Like [`published`](Self::published), as an owned object.
    #[must_use]
    pub fn published_object(&self) -> Map<String, Value> {
        serialized::object(self.published.get(), self.serialized.as_deref())
    }

    #[cfg(test)]
    pub(crate) fn plan(&self) -> &SchemaPlan {
        match &self.compiled().reading {
            DecodeMode::Plan(plan) => plan,
            DecodeMode::AsWritten => panic!("a forwarded schema has no plan"),
        }
    }

    /// Returns oddities of the declaration, for its author (`ARG-40`).
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.compiled().notes
    }

    /// Converts the schema to a dialect. The result is not cached: a host converts once and stores
    /// what it sends.
    #[must_use]
    pub fn in_dialect(&self, dialect: Dialect) -> DialectSchema {
        let mut written = dialect::write(self.published(), dialect);
        if dialect == Dialect::Portable && !self.is_forwarded() {
            dialect::close_if_empty(&mut written.schema);
        }
        written
    }

    /// Returns true if arguments are forwarded as written. Does not compile a cached schema.
    fn is_forwarded(&self) -> bool {
        self.serialized.is_none() && matches!(self.compiled().reading, DecodeMode::AsWritten)
    }

    /// Decodes the JSON of arguments (`ARG-28`); `None` is the same as empty.
    ///
    /// # Errors
    /// All problems of the arguments together (`ARG-31`).
    pub fn decode(
        &self,
        tool: &str,
        text: Option<&[u8]>,
        options: &DecodeOptions,
    ) -> Result<Arguments, InvalidArguments> {
        let text = text.unwrap_or_default();
        match &self.compiled().reading {
            DecodeMode::Plan(plan) => arguments::decode(plan, tool, text, options),
            DecodeMode::AsWritten => arguments::as_written(tool, text, options),
        }
    }

    /// Decodes arguments given as a value. A parameter that accepts the text of a value gets
    /// compact JSON (`ARG-9`), to which the limits of `ARG-30` apply as well.
    ///
    /// # Errors
    /// All problems of the arguments together (`ARG-31`).
    pub fn decode_value(
        &self,
        tool: &str,
        value: &Value,
        options: &DecodeOptions,
    ) -> Result<Arguments, InvalidArguments> {
        arguments::text_of(tool, value)
            .and_then(|text| self.decode(tool, Some(text.as_bytes()), options))
    }
}

impl OutputSchema {
    /// Compiles the schema of a tool's result. The limits of `ARG-42` apply, and so do the rules
    /// for `enum`, bounds, `type`, `$ref` and `pattern` (`ARG-38`); `required` may name any
    /// property, as in JSON Schema, and a `default` has no effect.
    ///
    /// # Errors
    /// The first rule that the declaration breaks.
    pub fn compile(tool: &str, declared: &str) -> Result<Self, DeclarationError> {
        Self::compile_text(declared).map_err(|refusals| first(refusals).for_tool(tool))
    }

    /// Compiles the schema like [`OutputSchema::compile`], or reports all errors.
    ///
    /// # Errors
    /// All rules that the declaration breaks, starting with the one that [`OutputSchema::compile`]
    /// reports.
    pub fn compile_or_explain(tool: &str, declared: &str) -> Result<Self, Vec<DeclarationError>> {
        let all = |refusals: Vec<SchemaRefusal>| {
            refusals.iter().map(|refusal| refusal.for_tool(tool)).collect()
        };
        Self::compile_text(declared).map_err(all)
    }

    fn compile_text(declared: &str) -> Result<Self, Vec<SchemaRefusal>> {
        Self::compile_schema(declared).map_err(|mut refusals| {
            refusals.iter_mut().for_each(|refusal| refusal.pointer.insert_str(0, "/outputSchema"));
            refusals
        })
    }

    fn compile_schema(declared: &str) -> Result<Self, Vec<SchemaRefusal>> {
        let json = extent::read(declared).map_err(one)?;
        let sites = locate(&json).map_err(one)?;
        let plan = Box::new(SchemaPlan::new(build::nodes(&sites)?));
        Ok(Self {
            serialized: None,
            plan: plan.into(),
            published: json.to_value().unwrap_or_default().into(),
        })
    }

    /// Restores a schema that was compiled before, by the same rules.
    pub(crate) fn from_serialized(serialized: SerializedSchema) -> Self {
        Self {
            serialized: Some(Box::new(serialized)),
            plan: OnceLock::new(),
            published: OnceLock::new(),
        }
    }

    fn plan(&self) -> &SchemaPlan {
        self.plan.get_or_init(|| {
            let compiled = self
                .serialized
                .as_ref()
                .and_then(|serialized| Self::compile_schema(serialized.declared()).ok());
            compiled
                .and_then(|schema| schema.plan.into_inner())
                .unwrap_or_else(|| Box::new(SchemaPlan::refusing()))
        })
    }

    /// Returns the schema as declared.
    #[must_use]
    pub fn published(&self) -> &Value {
        self.published.get_or_init(|| serialized::published(self.serialized.as_deref()))
    }

    /// Like [`published`](Self::published), as an owned object; empty if the schema is `true` or
    /// `false`.
    #[must_use]
    pub fn published_object(&self) -> Map<String, Value> {
        serialized::object(self.published.get(), self.serialized.as_deref())
    }

    /// Converts the schema to a dialect. Every value that is valid by the declaration is also valid
    /// by the converted schema.
    #[must_use]
    pub fn in_dialect(&self, dialect: Dialect) -> DialectSchema {
        dialect::write(self.published(), dialect)
    }

    /// Validates the value of a successful call.
    ///
    /// # Errors
    /// The paths of the parts that violate a keyword, with the keyword. The string is for the
    /// operator and contains no values.
    pub fn validate(&self, value: &Value) -> Result<(), String> {
        arguments::validate(self.plan(), value)
    }
}

fn one(refusal: SchemaRefusal) -> Vec<SchemaRefusal> {
    vec![refusal]
}

/// Returns the first refusal, for callers that report only one.
fn first(mut refusals: Vec<SchemaRefusal>) -> SchemaRefusal {
    debug_assert!(!refusals.is_empty(), "a schema is refused for a reason");
    refusals.truncate(1);
    refusals.pop().unwrap_or(SchemaRefusal { pointer: String::new(), reason: Reason::NotAnObject })
}

fn locate<'j>(json: &'j Json<'j>) -> Result<Sites<'j>, SchemaRefusal> {
    let sites = sites::locate(json)?;
    extent::check_nodes(&sites)?;
    extent::check_in_place(&sites)?;
    Ok(sites)
}

/// Checks that the top level is an object schema and that its properties have names (`ARG-38`). A
/// schema without a type is an object schema unless it reads as something else: `{}` is a tool
/// without parameters.
fn check_top_level(json: &Json<'_>, sites: &Sites<'_>) -> Result<(), SchemaRefusal> {
    if !reads_as_object(sites, SchemaPlan::ROOT) {
        return refuse("", Reason::NotAnObject);
    }
    let properties =
        json.as_object().and_then(|schema| schema.get("properties")).and_then(Json::as_object);
    match properties.and_then(|properties| properties.get("")) {
        Some(_) => refuse("/properties/", Reason::EmptyParameterName),
        None => Ok(()),
    }
}

/// Returns whether a schema reads as an object schema. Recursion follows only `$ref`, which forms
/// no cycle.
fn reads_as_object(sites: &Sites<'_>, id: NodeId) -> bool {
    let Some(site) = sites.get(id) else { return false };
    let Some(schema) = site.json.as_object() else { return false };
    match declared::types(schema) {
        Ok(Some(types)) => types == ["object"],
        // An unknown type is reported with a better reason where the node is built.
        Err(_) => true,
        Ok(None) => {
            let has = |name| schema.get(name).is_some();
            let is_object = has("properties") || has("additionalProperties");
            let is_other = has("items") || has("prefixItems") || has("enum") || has("const");
            (is_object || !is_other)
                && site.reference.is_none_or(|target| reads_as_object(sites, target))
        }
    }
}
