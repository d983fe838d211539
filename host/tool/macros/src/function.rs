//! Reads a tool from a function: checks the signature and removes the parameters' attributes.

use proc_macro2::TokenStream;
use syn::spanned::Spanned as _;
use syn::{
    Attribute, Error, FnArg, Ident, ItemFn, Pat, PatType, Result, ReturnType, Safety, Type,
    Visibility,
};

use crate::attribute::{ParameterDefault, ToolOptions, parse_default};
use crate::{docs, types};

/// Maximum bytes of a tool's description (`ARG-43`).
const DESCRIPTION_BYTES_MAX: usize = 4096;

/// Maximum length of a tool's name (`ARG-38`).
const NAME_LENGTH_MAX: usize = 128;

/// Function that becomes a tool.
pub(crate) struct ToolFunction {
    pub(crate) ident: Ident,
    pub(crate) visibility: Visibility,
    /// The `#[cfg]`s of the function, which also apply to all generated code.
    pub(crate) conditions: Vec<Attribute>,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) options: ToolOptions,
    /// Parameters in order.
    pub(crate) parameters: Vec<FunctionParameter>,
    pub(crate) is_async: bool,
    pub(crate) output: ReturnType,
}

/// Parameter of the function.
pub(crate) enum FunctionParameter {
    /// Property of the input schema.
    Argument(Box<Argument>),
    /// `&CallContext`.
    Context,
}

/// Parameter that becomes a property of the input schema.
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) description: Option<String>,
    pub(crate) default: Option<ParameterDefault>,
}

/// Reads a tool from a function. Always removes doc comments and `#[tool]` attributes from the
/// parameters of `function`, so that the compiler does not report them after an error here.
pub(crate) fn read(attribute: TokenStream, function: &mut ItemFn) -> Result<ToolFunction> {
    let mut errors = Errors::default();
    let parameters = errors.take(parameters(function));
    errors.take(check_signature(function));
    let description = errors.take(description(function));
    let options = errors.take(ToolOptions::parse(attribute));
    let name = options.as_ref().and_then(|options| errors.take(name(options, &function.sig.ident)));
    errors.finish()?;
    Ok(ToolFunction {
        ident: function.sig.ident.clone(),
        visibility: function.vis.clone(),
        conditions: function.attrs.iter().filter(|it| it.path().is_ident("cfg")).cloned().collect(),
        name: name.unwrap_or_default(),
        description: description.unwrap_or_default(),
        options: options.unwrap_or_default(),
        parameters: parameters.unwrap_or_default(),
        is_async: function.sig.asyncness.is_some(),
        output: function.sig.output.clone(),
    })
}

/// Combines several errors into one, so that an author sees all of them.
#[derive(Default)]
struct Errors(Option<Error>);

impl Errors {
    fn take<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.push(error);
                None
            }
        }
    }

    fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            None => self.0 = Some(error),
        }
    }

    fn finish(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

fn check_signature(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    let mut errors = Errors::default();
    if let Safety::Unsafe(keyword) = &signature.safety {
        errors.push(Error::new(
            keyword.span,
            "a tool cannot be `unsafe`: a model calls it with any arguments",
        ));
    }
    if let Some(first) = signature.generics.params.first() {
        errors.push(generic(first.span()));
    }
    errors.finish()
}

fn generic(span: proc_macro2::Span) -> Error {
    Error::new(span, "a tool cannot be generic: it has a single input schema")
}

fn description(function: &ItemFn) -> Result<String> {
    let ident = &function.sig.ident;
    let text = docs::text(&function.attrs)?;
    if text.is_empty() {
        let message = format!(
            "the tool `{ident}` has no description: say in a doc comment (`/// …`) what it does \
             and when to use it, because a model knows nothing else about it"
        );
        return Err(Error::new(ident.span(), message));
    }
    if text.len() > DESCRIPTION_BYTES_MAX {
        let message = format!(
            "the description has {} bytes; at most {DESCRIPTION_BYTES_MAX} are allowed",
            text.len()
        );
        return Err(Error::new(ident.span(), message));
    }
    Ok(text)
}

/// Returns the name from the options, or else the function's name.
fn name(options: &ToolOptions, ident: &Ident) -> Result<String> {
    let (name, span) = match &options.name {
        Some(name) => (name.value(), name.span()),
        None => (plain_name(ident), ident.span()),
    };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    if name.is_empty() || name.len() > NAME_LENGTH_MAX || !name.bytes().all(allowed) {
        let message = format!(
            "`{name}` cannot be the name of a tool: expected 1 to {NAME_LENGTH_MAX} characters \
             from `A-Z a-z 0-9 _ . -`"
        );
        return Err(Error::new(span, message));
    }
    Ok(name)
}

/// Returns an identifier without `r#`.
fn plain_name(ident: &Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").unwrap_or(&name).to_owned()
}

fn parameters(function: &mut ItemFn) -> Result<Vec<FunctionParameter>> {
    let mut errors = Errors::default();
    let mut parameters = Vec::new();
    let mut has_context = false;
    for input in &mut function.sig.inputs {
        match input {
            FnArg::Typed(input) => {
                let read = errors.take(parameter(input));
                if let Some(FunctionParameter::Context) = read
                    && std::mem::replace(&mut has_context, true)
                {
                    errors
                        .push(Error::new(input.ty.span(), "a tool has one `&CallContext` at most"));
                }
                parameters.extend(read);
            }
            FnArg::Receiver(receiver) => {
                let message = "a tool is a plain function: it has no `self`";
                errors.push(Error::new(receiver.self_token.span, message));
            }
        }
    }
    errors.finish()?;
    Ok(parameters)
}

fn parameter(input: &mut PatType) -> Result<FunctionParameter> {
    let attributes = std::mem::take(&mut input.attrs);
    let (ours, others): (Vec<_>, Vec<_>) =
        attributes.into_iter().partition(|it| docs::is_doc(it) || it.path().is_ident("tool"));
    input.attrs = others;
    if types::is_context(&input.ty) {
        return match ours.iter().find(|it| !docs::is_doc(it)) {
            Some(attribute) => Err(Error::new_spanned(
                attribute,
                "the context does not come from the model, so it has no options",
            )),
            None => Ok(FunctionParameter::Context),
        };
    }
    argument(input, &ours).map(|read| FunctionParameter::Argument(Box::new(read)))
}

fn argument(input: &PatType, attributes: &[Attribute]) -> Result<Argument> {
    let mut errors = Errors::default();
    let name = errors.take(argument_name(&input.pat));
    errors.take(check_type(&input.ty));
    let description = errors.take(docs::text(attributes)).filter(|text| !text.is_empty());
    let default = errors.take(default(attributes, &input.ty)).flatten();
    errors.finish()?;
    Ok(Argument { name: name.unwrap_or_default(), ty: (*input.ty).clone(), description, default })
}

fn argument_name(pattern: &Pat) -> Result<String> {
    match pattern {
        Pat::Ident(name) if name.subpat.is_none() && name.by_ref.is_none() => {
            Ok(plain_name(&name.ident))
        }
        other => Err(Error::new_spanned(
            other,
            "a tool's parameter must be a plain name, which is the name that the model uses",
        )),
    }
}

fn check_type(ty: &Type) -> Result<()> {
    if types::is_wrong_context(ty) {
        return Err(Error::new_spanned(ty, "a tool takes the context as `&CallContext`"));
    }
    if let Some(reference) = types::reference(ty) {
        let message = format!(
            "a tool's parameters own their values, which are decoded from JSON: write {}",
            types::owned(reference)
        );
        return Err(Error::new_spanned(reference, message));
    }
    match ty {
        Type::ImplTrait(ty) => Err(generic(ty.span())),
        _ => Ok(()),
    }
}

fn default(attributes: &[Attribute], ty: &Type) -> Result<Option<ParameterDefault>> {
    let mut found = None;
    for attribute in attributes.iter().filter(|it| it.path().is_ident("tool")) {
        if found.is_some() {
            return Err(Error::new_spanned(
                attribute,
                "this parameter already has a `#[tool]`: write one",
            ));
        }
        found = parse_default(attribute)?.map(|default| (attribute, default));
    }
    match found {
        Some((attribute, _)) if types::is_option(ty) => Err(Error::new_spanned(
            attribute,
            "a parameter with a default is never `None`: leave out the default or the `Option`",
        )),
        found => Ok(found.map(|(_, default)| default)),
    }
}
