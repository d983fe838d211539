//! Generates the code beside the function. It names items of `cofferdam_tool` by absolute path, and
//! its variables have their own scope (`Span::mixed_site`), so that the author's code cannot change
//! its meaning.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Expr, ExprLit, Lit, ReturnType, Type};

use crate::attribute::ParameterDefault;
use crate::function::{Argument, FunctionParameter, ToolFunction};

/// Returns the code that makes a tool of a function. `library` is the path of `cofferdam_tool`.
pub(crate) fn expand(library: &TokenStream, tool: &ToolFunction) -> TokenStream {
    let ToolFunction { ident, visibility, conditions, .. } = tool;
    let defaults = arguments(tool).map(|(index, argument)| default_function(index, argument));
    let declaration = declaration(library, tool);
    let call = call(library, tool);
    quote_spanned! {Span::mixed_site()=>
        #(#conditions)*
        #[doc(hidden)]
        #[allow(non_camel_case_types, reason = "has the name of the function that it stands for")]
        #visibility enum #ident {}

        #(#conditions)*
        const _: () = {
            #(#defaults)*

            #[automatically_derived]
            impl #library::functions::FunctionTool for #ident {
                #declaration
                #call
            }
        };
    }
}

/// Returns the parameters that the model sends, each with its position among all parameters.
fn arguments(tool: &ToolFunction) -> impl Iterator<Item = (usize, &Argument)> {
    tool.parameters.iter().enumerate().filter_map(|(index, parameter)| match parameter {
        FunctionParameter::Argument(argument) => Some((index, &**argument)),
        FunctionParameter::Context => None,
    })
}

/// Generates the function that returns the default of a parameter, for the schema and for calls in
/// which the argument is missing.
fn default_function(index: usize, argument: &Argument) -> TokenStream {
    let (function, ty) = (default_ident(index), &argument.ty);
    let value = match &argument.default {
        None => return TokenStream::new(),
        Some(ParameterDefault::OfType) => {
            quote_spanned!(at(ty.span())=> <#ty as ::core::default::Default>::default())
        }
        Some(ParameterDefault::Value(expression)) => match &**expression {
            // Lets `default = "en"` work for a `String`.
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
                quote!(::core::convert::Into::into(#text))
            }
            expression => quote!(#expression),
        },
    };
    quote_spanned! {Span::mixed_site()=>
        fn #function() -> #ty {
            #value
        }
    }
}

fn declaration(library: &TokenStream, tool: &ToolFunction) -> TokenStream {
    let ToolFunction { name, description, options, .. } = tool;
    let properties = arguments(tool).map(|(index, argument)| property(index, argument));
    let title = options.title.iter();
    let group = options.group.iter();
    let hints = options.hints.iter().map(|(hint, value)| {
        quote_spanned!(Span::mixed_site()=> declaration.annotations.#hint = ::core::option::Option::Some(#value);)
    });
    let output = output_schema(library, tool);
    quote_spanned! {Span::mixed_site()=>
        #[allow(unused_mut, reason = "depends on the options")]
        fn declaration() -> #library::declaration::Declaration {
            let mut schema = #library::functions::__private::ObjectSchema::new();
            #(#properties)*
            let mut declaration =
                #library::declaration::Declaration::new(#name, #description, schema.finish());
            #(declaration.title = ::core::option::Option::Some(::core::convert::Into::into(#title));)*
            #(declaration.group = ::core::option::Option::Some(::core::convert::Into::into(#group));)*
            #(#hints)*
            #output
            declaration
        }
    }
}

fn property(index: usize, argument: &Argument) -> TokenStream {
    let Argument { name, ty, default, .. } = argument;
    let description = argument.description.as_deref().unwrap_or_default();
    let function = default_ident(index);
    match default {
        None => quote_spanned!(at(ty.span())=> schema.property::<#ty>(#name, #description);),
        Some(_) => {
            quote_spanned!(at(ty.span())=> schema.defaulted::<#ty>(#name, #description, #function());)
        }
    }
}

fn output_schema(library: &TokenStream, tool: &ToolFunction) -> TokenStream {
    if !tool.options.output_schema {
        return TokenStream::new();
    }
    let ty = match &tool.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => quote!(#ty),
    };
    quote_spanned! {at(output_span(tool))=>
        #[allow(unused_imports, reason = "depends on the return type")]
        use #library::functions::__private::PlainSchema as _;
        declaration.output_schema = ::core::option::Option::Some(
            #library::functions::__private::ReturnType::<#ty>::new().schema()
        );
    }
}

fn call(library: &TokenStream, tool: &ToolFunction) -> TokenStream {
    let ToolFunction { ident, name, .. } = tool;
    let decoded = arguments(tool).map(|(index, argument)| {
        let (local, function) = (local_ident(index), default_ident(index));
        let Argument { name, ty, default, .. } = argument;
        match default {
            None => quote_spanned!(at(ty.span())=> let #local = arguments.take::<#ty>(#name)?;),
            Some(_) => {
                quote_spanned!(at(ty.span())=> let #local = arguments.take_or::<#ty>(#name, #function)?;)
            }
        }
    });
    let context = Ident::new("context", Span::mixed_site());
    let passed = tool.parameters.iter().enumerate().map(|(index, parameter)| match parameter {
        FunctionParameter::Argument(_) => {
            let local = local_ident(index);
            quote!(#local)
        }
        FunctionParameter::Context => quote!(&#context),
    });
    let wait = tool.is_async.then(|| quote!(.await));
    let returned = quote!(#ident(#(#passed),*)#wait);
    let output = quote_spanned! {at(output_span(tool))=>
        #library::functions::__private::SuccessValue(
            #library::functions::__private::ReturnValue(#returned).outcome()?
        ).output()
    };
    quote_spanned! {Span::mixed_site()=>
        #[allow(unused_mut, unused_variables, reason = "depends on the parameters")]
        async fn call(
            arguments: #library::Arguments,
            context: #library::CallContext,
        ) -> ::core::result::Result<#library::Output, #library::functions::FunctionEnd> {
            #[allow(unused_imports, reason = "depends on the return type")]
            use #library::functions::__private::{JsonOutput as _, PlainOutcome as _};
            let mut arguments =
                #library::functions::__private::TypedArguments::new(#name, arguments);
            #(#decoded)*
            #output
        }
    }
}

/// Returns the span of the return type, at which errors about the output are reported.
fn output_span(tool: &ToolFunction) -> Span {
    match &tool.output {
        ReturnType::Default => tool.ident.span(),
        ReturnType::Type(_, ty) => Type::span(ty),
    }
}

/// Returns a span that reports errors at `span` and resolves names in this file.
fn at(span: Span) -> Span {
    span.resolved_at(Span::mixed_site())
}

fn default_ident(index: usize) -> Ident {
    format_ident!("default_{index}", span = Span::mixed_site())
}

fn local_ident(index: usize) -> Ident {
    format_ident!("argument_{index}", span = Span::mixed_site())
}
