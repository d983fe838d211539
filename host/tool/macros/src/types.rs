//! Checks types by their tokens.

use syn::{GenericArgument, PathArguments, Type, TypeReference};

/// Returns whether a type is written as `&CallContext`, with any path.
pub(crate) fn is_context(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) => {
            reference.mutability.is_none() && is_named(&reference.elem, "CallContext")
        }
        _ => false,
    }
}

/// Returns whether a type is the context in a form that no call can pass.
pub(crate) fn is_wrong_context(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) => is_named(&reference.elem, "CallContext") && !is_context(ty),
        other => is_named(other, "CallContext"),
    }
}

/// Returns the first reference inside a type. Arguments cannot contain references, because they are
/// decoded from JSON that is dropped before the tool runs.
pub(crate) fn reference(ty: &Type) -> Option<&TypeReference> {
    match ty {
        Type::Reference(found) => Some(found),
        Type::Array(array) => reference(&array.elem),
        Type::Group(group) => reference(&group.elem),
        Type::Paren(paren) => reference(&paren.elem),
        Type::Slice(slice) => reference(&slice.elem),
        Type::Tuple(tuple) => tuple.elems.iter().find_map(reference),
        Type::Path(path) => {
            path.path.segments.iter().find_map(|segment| match &segment.arguments {
                PathArguments::AngleBracketed(arguments) => {
                    arguments.args.iter().find_map(in_argument)
                }
                _ => None,
            })
        }
        _ => None,
    }
}

fn in_argument(argument: &GenericArgument) -> Option<&TypeReference> {
    match argument {
        GenericArgument::Type(ty) => reference(ty),
        _ => None,
    }
}

/// Returns the owned type to suggest instead of a reference.
pub(crate) fn owned(reference: &TypeReference) -> &'static str {
    match &*reference.elem {
        Type::Path(path) if path.path.is_ident("str") => "`String`",
        Type::Path(path) if path.path.is_ident("Path") => "`PathBuf`",
        Type::Slice(_) => "a `Vec`",
        _ => "the type without `&`",
    }
}

/// Returns whether a type is written as `Option<…>`.
pub(crate) fn is_option(ty: &Type) -> bool {
    is_named(ty, "Option")
}

/// Returns whether the last part of a type's path is `name`.
fn is_named(ty: &Type, name: &str) -> bool {
    match ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|segment| segment.ident == name),
        Type::Group(group) => is_named(&group.elem, name),
        Type::Paren(paren) => is_named(&paren.elem, name),
        _ => false,
    }
}
