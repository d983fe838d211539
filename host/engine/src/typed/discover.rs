//! Discovery of the functions of a component that are tools, and of the shapes of their values.

use cofferdam_tool::declaration::DeclarationError;
use wasmtime::component::types::{ComponentFunc, ComponentItem, Type};
use wasmtime::component::{Component, ComponentExportIndex, ResourceType};

use super::Function;
use super::names;
use super::shape::{Field, Integer, ValueShape, VariantCase};
use crate::LoadError;

/// Maximum number of functions in one component, the same as for declared tools (`ARG-43`). Checked
/// before a shape is built.
const FUNCTIONS_MAX: usize = 128;
/// Maximum number of nodes in the shapes of one function. Its schema could not have more
/// (`ARG-42`), so nothing larger is built.
const NODES_MAX: usize = 10_000;
/// Maximum number of nodes in the shapes of all functions together, which live as long as the
/// plugin. No component whose definitions fit into the 262144 bytes of `ARG-43` comes near, but
/// results are not part of those.
const NODES_IN_ALL_MAX: usize = 50_000;
/// Maximum depth of one type. The screen rejects deeper ones; this is for hosts that raise its
/// limit, since every walk over a shape recurses.
const LEVELS_MAX: usize = 60;

/// Error for an exported function that cannot be a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("exports the function `{function}`, which cannot be a tool: {reason}")]
pub struct UnsupportedFunction {
    /// Name of the function as written in the component, after its interface and a `#` if it has
    /// one.
    pub function: String,
    /// Reason for the rejection.
    pub reason: String,
}

/// Returns true if an export belongs to a protocol between hosts and components. `wasi:cli/run` is
/// not a tool, and neither is a Cofferdam interface in a version that this host does not know.
pub(crate) fn is_protocol(export: &str) -> bool {
    export.starts_with("wasi:") || export.starts_with("cofferdam:")
}

/// Returns true for the function `exports#init`, which componentize-py calls when it builds a
/// component and leaves in it. Calling it again is useless. Its parameter names distinguish it from
/// a function of the author.
fn is_runtime_export(interface: &str, function: &str, ty: &ComponentFunc) -> bool {
    interface == "exports"
        && function == "init"
        && ty.params().map(|(name, _)| name).eq(["app-name", "symbols", "stub-wasi"])
}

/// Exported function that has not been examined yet.
struct ExportedFunction {
    interface: Option<String>,
    name: String,
    ty: ComponentFunc,
    export: ComponentExportIndex,
}

/// Returns all functions that are tools.
pub(super) fn functions(component: &Component) -> Result<Vec<Function>, LoadError> {
    let found = find(component);
    if found.is_empty() {
        return Err(LoadError::no_tools());
    }
    if found.len() > FUNCTIONS_MAX {
        return Err(DeclarationError::TooManyTools { count: found.len() }.into());
    }
    let named: Vec<_> =
        found.iter().map(|found| (found.interface.as_deref(), found.name.as_str())).collect();
    let tools = names::tools(&named);
    let mut builder = Builder { component, nodes: 0, nodes_before: 0 };
    let planned = found.into_iter().zip(tools).map(|(found, tool)| plan(&mut builder, found, tool));
    planned.collect::<Result<_, _>>().map_err(LoadError::UnsupportedFunction)
}

fn find(component: &Component) -> Vec<ExportedFunction> {
    let engine = component.engine();
    let mut all = Vec::new();
    for (export, item) in component.component_type().exports(engine) {
        let Some(index) = component.get_export_index(None, export) else { continue };
        if is_protocol(export) {
            continue;
        }
        match item.ty {
            ComponentItem::ComponentFunc(ty) => {
                all.push(ExportedFunction {
                    interface: None,
                    name: export.to_owned(),
                    ty,
                    export: index,
                });
            }
            ComponentItem::ComponentInstance(interface) => {
                for (name, item) in interface.exports(engine) {
                    let ComponentItem::ComponentFunc(ty) = item.ty else { continue };
                    if is_runtime_export(export, name, &ty) {
                        continue;
                    }
                    let Some(export_index) = component.get_export_index(Some(&index), name) else {
                        continue;
                    };
                    let interface = Some(export.to_owned());
                    all.push(ExportedFunction {
                        interface,
                        name: name.to_owned(),
                        ty,
                        export: export_index,
                    });
                }
            }
            _ => {}
        }
    }
    all
}

fn plan(
    builder: &mut Builder<'_>,
    found: ExportedFunction,
    tool: String,
) -> Result<Function, UnsupportedFunction> {
    let written = match &found.interface {
        Some(interface) => format!("{interface}#{}", found.name),
        None => found.name.clone(),
    };
    let unfit = |reason| UnsupportedFunction { function: written.clone(), reason };
    if found.name.starts_with('[') {
        return Err(unfit("it belongs to a resource, and a call cannot hold one".to_owned()));
    }
    builder.next_function();
    let parameters: Result<Vec<_>, _> = found
        .ty
        .params()
        .map(|(name, ty)| builder.part(name, &ty, &format!("its parameter `{name}`")))
        .collect();
    let parameters = parameters.map_err(unfit)?;
    let result = found.ty.results().next().map(|ty| builder.whole(&ty, "its result")).transpose();
    let result = result.map_err(unfit)?;
    let ExportedFunction { interface, name, export, .. } = found;
    Ok(Function { tool, interface, name, export, parameters, result })
}

/// Builds the shapes of functions, one after another.
struct Builder<'c> {
    component: &'c Component,
    /// Number of nodes of the current function.
    nodes: usize,
    /// Number of nodes of the functions before it.
    nodes_before: usize,
}

impl Builder<'_> {
    fn next_function(&mut self) {
        self.nodes_before += self.nodes;
        self.nodes = 0;
    }

    fn part(&mut self, name: &str, ty: &Type, part: &str) -> Result<Field, String> {
        Ok(Field { name: name.to_owned(), key: names::snake(name), shape: self.whole(ty, part)? })
    }

    fn whole(&mut self, ty: &Type, part: &str) -> Result<ValueShape, String> {
        self.shape(ty, LEVELS_MAX).map_err(|problem| format!("{part} {problem}"))
    }

    /// Returns the shape of a type. Recurses at most `levels` deep.
    fn shape(&mut self, ty: &Type, levels: usize) -> Result<ValueShape, String> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(format!(
                "is too large; all types of a function may have {NODES_MAX} nodes together"
            ));
        }
        if self.nodes + self.nodes_before > NODES_IN_ALL_MAX {
            return Err(format!(
                "is one too many; all types of a plugin may have {NODES_IN_ALL_MAX} nodes together"
            ));
        }
        let Some(levels) = levels.checked_sub(1) else {
            return Err(format!("is nested deeper than {LEVELS_MAX} levels"));
        };
        Ok(match ty {
            Type::Bool => ValueShape::Bool,
            Type::S8 => ValueShape::Integer(Integer::S8),
            Type::U8 => ValueShape::Integer(Integer::U8),
            Type::S16 => ValueShape::Integer(Integer::S16),
            Type::U16 => ValueShape::Integer(Integer::U16),
            Type::S32 => ValueShape::Integer(Integer::S32),
            Type::U32 => ValueShape::Integer(Integer::U32),
            Type::S64 => ValueShape::Integer(Integer::S64),
            Type::U64 => ValueShape::Integer(Integer::U64),
            Type::Float32 => ValueShape::Float32,
            Type::Float64 => ValueShape::Float64,
            Type::Char => ValueShape::Char,
            Type::String => ValueShape::Text,
            Type::List(list) => match list.ty() {
                Type::U8 => ValueShape::Bytes,
                element => ValueShape::List(Box::new(self.shape(&element, levels)?)),
            },
            Type::Option(option) => ValueShape::Option(Box::new(self.shape(&option.ty(), levels)?)),
            Type::Record(_) | Type::Tuple(_) | Type::Variant(_) | Type::Result(_) => {
                self.compound(ty, levels)?
            }
            Type::Enum(names) => ValueShape::Enum(names.names().map(str::to_owned).collect()),
            Type::Flags(names) => ValueShape::Flags(names.names().map(str::to_owned).collect()),
            Type::Own(resource) | Type::Borrow(resource) => {
                return Err(self.refuse_resource(resource));
            }
            Type::Stream(_) => return Err(no_json("a stream")),
            Type::Future(_) => return Err(no_json("a future")),
            Type::ErrorContext => return Err(no_json("an error-context")),
            Type::Map(_) => return Err(no_json("a map")),
            Type::FixedLengthList(_) => return Err(no_json("a list of fixed length")),
        })
    }

    fn compound(&mut self, ty: &Type, levels: usize) -> Result<ValueShape, String> {
        let optional = |builder: &mut Self, ty: Option<Type>| {
            ty.map(|ty| builder.shape(&ty, levels).map(Box::new)).transpose()
        };
        match ty {
            Type::Record(record) => {
                let field = |field: wasmtime::component::types::Field<'_>| {
                    let shape = self.shape(&field.ty, levels)?;
                    Ok(Field { name: field.name.to_owned(), key: names::snake(field.name), shape })
                };
                record.fields().map(field).collect::<Result<_, String>>().map(ValueShape::Record)
            }
            Type::Tuple(tuple) => tuple
                .types()
                .map(|ty| self.shape(&ty, levels))
                .collect::<Result<_, _>>()
                .map(ValueShape::Tuple),
            Type::Variant(variant) => {
                let case = |case: wasmtime::component::types::Case<'_>| {
                    let payload = case.ty.map(|ty| self.shape(&ty, levels)).transpose()?;
                    Ok(VariantCase { name: case.name.to_owned(), payload })
                };
                variant.cases().map(case).collect::<Result<_, String>>().map(ValueShape::Variant)
            }
            Type::Result(result) => {
                let ok = optional(self, result.ok())?;
                Ok(ValueShape::Result { ok, error: optional(self, result.err())? })
            }
            _ => Err(no_json("a type that this host does not know")),
        }
    }

    fn refuse_resource(&self, resource: &ResourceType) -> String {
        match resource_name(self.component, resource) {
            Some(name) => no_json(&format!("the resource `{name}`")),
            None => no_json("a resource"),
        }
    }
}

fn no_json(what: &str) -> String {
    format!("holds {what}, which has no JSON form")
}

/// Returns the component's name of a resource, from the first import or export that has it.
fn resource_name(component: &Component, resource: &ResourceType) -> Option<String> {
    let engine = component.engine();
    let ty = component.component_type();
    let mut instances = ty.imports(engine).chain(ty.exports(engine));
    instances.find_map(|(_, item)| match item.ty {
        ComponentItem::ComponentInstance(instance) => {
            instance.exports(engine).find_map(|(name, item)| {
                matches!(&item.ty, ComponentItem::Resource(found) if found == resource)
                    .then(|| name.to_owned())
            })
        }
        _ => None,
    })
}
