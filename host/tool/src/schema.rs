//! Declared schemas: what is refused, what is published, and the plan that arguments are decoded
//! by.
//!
//! A declaration is compiled once, at load. A call then walks the plan and never looks at the
//! schema again: no keyword is searched, no pattern compiled and no reference resolved during a
//! call.
//!
//! The dialect is JSON Schema 2020-12 with these edges, each of them refused rather than ignored:
//! references stay within the document; `$dynamicRef` and an `$id` below the top level do not
//! exist; schemas that apply to the same value may not lead in a circle. Keywords that are not part
//! of the dialect are published and mean nothing.

mod build;
mod declared;
mod defaults;
mod dialect;
mod extent;
mod kept;
mod keywords;
mod pattern;
mod plan;
mod pointer;
mod presence;
mod publish;
mod refuse;
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
use refuse::{Refusal, refuse};
use sites::Sites;

pub(crate) use declared::is_of;
pub use dialect::{Dialect, DialectSchema, Loss, UnknownDialect};
pub(crate) use kept::KeptSchema;
pub(crate) use plan::{
    Additional, ArrayPlan, Check, Choice, Condition, Contains, Counted, Format, Kind, Members,
    Node, NodeId as SchemaId, ObjectPlan, Plan, Property,
};

/// A compiled declaration of arguments.
///
/// Compiling costs time and memory in proportion to the text; each `pattern` costs about as much as
/// five parameters. Nothing is shared between schemas, and no validator of a library stands behind
/// it. What was compiled before can be kept as text ([`KeptTool`](crate::declaration::KeptTool)):
/// it is compiled again by the first call, so that a host which starts with the schemas of a
/// thousand plugins compiles those that are called.
#[derive(Debug)]
pub struct InputSchema {
    /// What the rest is made of when it is first needed; `None` where it is there from the
    /// beginning.
    kept: Option<Box<KeptSchema>>,
    compiled: OnceLock<CompiledInput>,
    published: OnceLock<Value>,
}

#[derive(Debug)]
struct CompiledInput {
    reading: Reading,
    notes: Vec<Note>,
}

/// How arguments are read.
#[derive(Debug)]
enum Reading {
    /// They are decoded by a plan.
    Plan(Box<Plan>),
    /// They are taken as they are.
    AsWritten,
}

/// A compiled declaration of a result (`RES-22`). Compiled once like an [`InputSchema`], but a
/// result is only validated: nothing in it is converted, completed or dropped, and JSON Schema
/// alone says what is valid.
#[derive(Debug)]
pub struct OutputSchema {
    kept: Option<Box<KeptSchema>>,
    /// Large, and mostly not there.
    plan: OnceLock<Box<Plan>>,
    published: OnceLock<Value>,
}

/// Something in a declaration that is odd and not refused (`ARG-40`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// `required` lists a property that has a default. It is published as not required.
    RequiredWithDefault {
        /// JSON Pointer of the object schema.
        object: String,
        /// The name of the property.
        property: String,
    },
    /// `required` lists a property that accepts null. It is published as not required.
    RequiredButNullable {
        /// JSON Pointer of the object schema.
        object: String,
        /// The name of the property.
        property: String,
    },
}

impl Note {
    /// JSON Pointer of the object schema that the note is about.
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

    /// Compiles the schema like [`InputSchema::compile`], or says everything that is wrong with it.
    /// What depends on something that is wrong is not looked at.
    ///
    /// # Errors
    /// All rules that the declaration breaks, those that [`InputSchema::compile`] names first.
    pub fn compile_or_explain(tool: &str, declared: &str) -> Result<Self, Vec<DeclarationError>> {
        tool_name(tool).map_err(|error| vec![error])?;
        let all = |refusals: Vec<Refusal>| {
            refusals.iter().map(|refusal| refusal.for_tool(tool)).collect()
        };
        Self::compile_text(declared).map_err(all)
    }

    fn compile_text(declared: &str) -> Result<Self, Vec<Refusal>> {
        let json = extent::read(declared).map_err(one)?;
        let sites = locate(&json).map_err(one)?;
        check_top_level(&json, &sites).map_err(one)?;
        let mut plan = Plan::new(build::nodes(&sites)?);
        presence::fill_nullable(&mut plan, &sites);
        let defaults = defaults::texts(&sites);
        defaults::mark(&mut plan, &defaults);
        let (notes, mut refusals) = presence::fill_required(&mut plan, &sites);
        refusals.extend(defaults::fill(&mut plan, &sites, &defaults));
        if !refusals.is_empty() {
            return Err(refusals);
        }
        let published = publish::published(&plan, &sites, &json);
        Ok(Self::ready(CompiledInput { reading: Reading::Plan(Box::new(plan)), notes }, published))
    }

    fn ready(compiled: CompiledInput, published: Value) -> Self {
        Self { kept: None, compiled: compiled.into(), published: published.into() }
    }

    /// A schema that was compiled before, by the same rules.
    pub(crate) fn of_kept(kept: KeptSchema) -> Self {
        Self { kept: Some(Box::new(kept)), compiled: OnceLock::new(), published: OnceLock::new() }
    }

    fn compiled(&self) -> &CompiledInput {
        self.compiled.get_or_init(|| {
            let compiled =
                self.kept.as_ref().and_then(|kept| Self::compile_text(kept.declared()).ok());
            // Who keeps what was never accepted gets a tool that accepts nothing.
            compiled.and_then(|schema| schema.compiled.into_inner()).unwrap_or_else(|| {
                CompiledInput {
                    reading: Reading::Plan(Box::new(Plan::refusing())),
                    notes: Vec::new(),
                }
            })
        })
    }

    /// A schema of somebody else's tool, whose arguments go on as the model wrote them: any JSON
    /// object within the limits of `ARG-30` is taken, nothing is converted, filled in or dropped,
    /// and the schema is published as it is (`MCP-3`). It is not compiled, so it may be one that
    /// [`InputSchema::compile`] refuses.
    #[must_use]
    pub fn forwarded(schema: Value) -> Self {
        Self::ready(CompiledInput { reading: Reading::AsWritten, notes: Vec::new() }, schema)
    }

    /// The schema as a model sees it (`ARG-36`).
    #[must_use]
    pub fn published(&self) -> &Value {
        self.published.get_or_init(|| kept::published(self.kept.as_deref()))
    }

    /// The same as an object of its own, for whoever keeps it.
    #[must_use]
    pub fn published_object(&self) -> Map<String, Value> {
        kept::object(self.published.get(), self.kept.as_deref())
    }

    #[cfg(test)]
    pub(crate) fn plan(&self) -> &Plan {
        match &self.compiled().reading {
            Reading::Plan(plan) => plan,
            Reading::AsWritten => panic!("a forwarded schema has no plan"),
        }
    }

    /// What is odd about the declaration, for the author's eyes (`ARG-40`).
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.compiled().notes
    }

    /// The schema as the reader of a dialect is shown it. Not kept: a host asks once and keeps what
    /// it sends.
    #[must_use]
    pub fn in_dialect(&self, dialect: Dialect) -> DialectSchema {
        let mut written = dialect::write(self.published(), dialect);
        if dialect == Dialect::Portable && !self.is_forwarded() {
            dialect::close_if_empty(&mut written.schema);
        }
        written
    }

    /// Returns true if arguments go on as they were written. A schema that is kept is not compiled
    /// for this.
    fn is_forwarded(&self) -> bool {
        self.kept.is_none() && matches!(self.compiled().reading, Reading::AsWritten)
    }

    /// Decodes the text of arguments (`ARG-28`); `None` is the absent text.
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
            Reading::Plan(plan) => arguments::decode(plan, tool, text, options),
            Reading::AsWritten => arguments::as_written(tool, text, options),
        }
    }

    /// Decodes arguments that arrive as a value. Where a parameter takes the text of a value, it is
    /// compact JSON (`ARG-9`); the limits of `ARG-30` hold for the compact text as well.
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
    /// Compiles the schema of a tool's result. The limits of `ARG-42` hold for it, and what an
    /// `enum`, a bound, a `type`, a `$ref` or a `pattern` may not be (`ARG-38`); `required` may
    /// name any property, as JSON Schema allows, and a `default` means nothing.
    ///
    /// # Errors
    /// The first rule that the declaration breaks.
    pub fn compile(tool: &str, declared: &str) -> Result<Self, DeclarationError> {
        Self::compile_text(declared).map_err(|refusals| first(refusals).for_tool(tool))
    }

    /// Compiles the schema like [`OutputSchema::compile`], or says everything that is wrong with
    /// it.
    ///
    /// # Errors
    /// All rules that the declaration breaks, those that [`OutputSchema::compile`] names first.
    pub fn compile_or_explain(tool: &str, declared: &str) -> Result<Self, Vec<DeclarationError>> {
        let all = |refusals: Vec<Refusal>| {
            refusals.iter().map(|refusal| refusal.for_tool(tool)).collect()
        };
        Self::compile_text(declared).map_err(all)
    }

    fn compile_text(declared: &str) -> Result<Self, Vec<Refusal>> {
        Self::compile_schema(declared).map_err(|mut refusals| {
            refusals.iter_mut().for_each(|refusal| refusal.pointer.insert_str(0, "/outputSchema"));
            refusals
        })
    }

    fn compile_schema(declared: &str) -> Result<Self, Vec<Refusal>> {
        let json = extent::read(declared).map_err(one)?;
        let sites = locate(&json).map_err(one)?;
        let plan = Box::new(Plan::new(build::nodes(&sites)?));
        Ok(Self {
            kept: None,
            plan: plan.into(),
            published: json.to_value().unwrap_or_default().into(),
        })
    }

    /// A schema that was compiled before, by the same rules.
    pub(crate) fn of_kept(kept: KeptSchema) -> Self {
        Self { kept: Some(Box::new(kept)), plan: OnceLock::new(), published: OnceLock::new() }
    }

    fn plan(&self) -> &Plan {
        self.plan.get_or_init(|| {
            let compiled =
                self.kept.as_ref().and_then(|kept| Self::compile_schema(kept.declared()).ok());
            compiled
                .and_then(|schema| schema.plan.into_inner())
                .unwrap_or_else(|| Box::new(Plan::refusing()))
        })
    }

    /// The schema as it was declared.
    #[must_use]
    pub fn published(&self) -> &Value {
        self.published.get_or_init(|| kept::published(self.kept.as_deref()))
    }

    /// The same as an object of its own, for whoever keeps it; without members if it is `true` or
    /// `false`.
    #[must_use]
    pub fn published_object(&self) -> Map<String, Value> {
        kept::object(self.published.get(), self.kept.as_deref())
    }

    /// The schema as the reader of a dialect is shown it. A value that the declaration takes fits
    /// it as well.
    #[must_use]
    pub fn in_dialect(&self, dialect: Dialect) -> DialectSchema {
        dialect::write(self.published(), dialect)
    }

    /// Validates the value of a success.
    ///
    /// # Errors
    /// Which parts of the value break which keywords. The text is for the person who runs the host:
    /// it names paths and keywords and shows no values.
    pub fn validate(&self, value: &Value) -> Result<(), String> {
        arguments::validate(self.plan(), value)
    }
}

fn one(refusal: Refusal) -> Vec<Refusal> {
    vec![refusal]
}

/// The refusal that is named when one is enough.
fn first(mut refusals: Vec<Refusal>) -> Refusal {
    debug_assert!(!refusals.is_empty(), "a schema is refused for a reason");
    refusals.truncate(1);
    refusals.pop().unwrap_or(Refusal { pointer: String::new(), reason: Reason::NotAnObject })
}

fn locate<'j>(json: &'j Json<'j>) -> Result<Sites<'j>, Refusal> {
    let sites = sites::locate(json)?;
    extent::check_nodes(&sites)?;
    extent::check_in_place(&sites)?;
    Ok(sites)
}

/// The top level is an object schema, and its properties have names (`ARG-38`). A schema that
/// states no type is one unless it reads as something else: `{}` is a tool without parameters.
fn check_top_level(json: &Json<'_>, sites: &Sites<'_>) -> Result<(), Refusal> {
    if !reads_as_object(sites, Plan::ROOT) {
        return refuse("", Reason::NotAnObject);
    }
    let properties =
        json.as_object().and_then(|schema| schema.get("properties")).and_then(Json::as_object);
    match properties.and_then(|properties| properties.get("")) {
        Some(_) => refuse("/properties/", Reason::EmptyParameterName),
        None => Ok(()),
    }
}

/// Recursion follows `$ref` alone, which does not lead in a circle.
fn reads_as_object(sites: &Sites<'_>, id: NodeId) -> bool {
    let Some(site) = sites.get(id) else { return false };
    let Some(schema) = site.json.as_object() else { return false };
    match declared::types(schema) {
        Ok(Some(types)) => types == ["object"],
        // An unknown type is refused where the node is built, with a better reason.
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
