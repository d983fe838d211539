//! Generates the code beside the function. It names items of `cofferdam_sdk` by absolute path, and
//! its variables have their own scope (`Span::mixed_site`), so that the author's code cannot change
//! its meaning.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Expr, ExprLit, Lit, ReturnType};

use crate::attribute::Default;
use crate::function::{Parameter, ToolFunction};

pub(crate) fn expand(tool: &ToolFunction) -> TokenStream {
    let ToolFunction { ident, visibility, conditions, name, description, .. } = tool;
    let defaults =
        tool.parameters.iter().enumerate().map(|(index, it)| default_function(index, it));
    let options = options(tool);
    let properties = tool.parameters.iter().enumerate().map(|(index, it)| property(index, it));
    let output = output_schema(tool);
    let body = body(tool);
    quote_spanned! {Span::mixed_site()=>
        #(#conditions)*
        #[doc(hidden)]
        #[allow(non_camel_case_types, reason = "has the name of the function that it stands for")]
        #visibility enum #ident {}

        #(#conditions)*
        const _: () = {
            #(#defaults)*

            #[automatically_derived]
            impl ::cofferdam_sdk::Tool for #ident {
                const NAME: &'static str = #name;

                fn definition() -> ::cofferdam_sdk::Definition {
                    let mut schema = ::cofferdam_sdk::__private::ObjectSchema::new();
                    #(#properties)*
                    let mut definition = ::cofferdam_sdk::Definition::new(Self::NAME, #description, schema.finish());
                    #options
                    #output
                    definition
                }

                #body
            }
        };
    }
}

/// Generates the function that returns the default of a parameter, for the schema and for calls in
/// which the argument is missing.
fn default_function(index: usize, parameter: &Parameter) -> TokenStream {
    let (function, ty) = (default_ident(index), &parameter.ty);
    let value = match &parameter.default {
        None => return TokenStream::new(),
        Some(Default::OfType) => {
            quote_spanned!(at(ty.span())=> <#ty as ::core::default::Default>::default())
        }
        Some(Default::Value(expression)) => match &**expression {
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

fn property(index: usize, parameter: &Parameter) -> TokenStream {
    let Parameter { name, ty, default, .. } = parameter;
    let description = parameter.description.as_deref().unwrap_or_default();
    let function = default_ident(index);
    match default {
        None => quote_spanned!(at(ty.span())=> schema.property::<#ty>(#name, #description);),
        Some(_) => {
            quote_spanned!(at(ty.span())=> schema.defaulted::<#ty>(#name, #description, #function());)
        }
    }
}

fn options(tool: &ToolFunction) -> TokenStream {
    let title = tool.options.title.iter();
    let group = tool.options.group.iter();
    let hints = tool.options.hints.iter().map(|(hint, value)| {
        quote_spanned!(Span::mixed_site()=> definition.annotations.#hint = ::core::option::Option::Some(#value);)
    });
    quote_spanned! {Span::mixed_site()=>
        #(definition.title = ::core::option::Option::Some(#title);)*
        #(#hints)*
        #(definition.input_schema["x-group"] = ::core::convert::Into::into(#group);)*
    }
}

fn output_schema(tool: &ToolFunction) -> TokenStream {
    if !tool.options.output_schema {
        return TokenStream::new();
    }
    let ty = match &tool.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => quote!(#ty),
    };
    quote_spanned! {at(output_span(tool))=>
        #[allow(unused_imports, reason = "depends on the return type")]
        use ::cofferdam_sdk::__private::PlainSchema as _;
        definition.output_schema =
            ::core::option::Option::Some(::cofferdam_sdk::__private::Returns::<#ty>::new().schema());
    }
}

fn body(tool: &ToolFunction) -> TokenStream {
    let ident = &tool.ident;
    let locals: Vec<Ident> = (0..tool.parameters.len())
        .map(|index| Ident::new(&format!("argument_{index}"), Span::mixed_site()))
        .collect();
    let decoded = tool.parameters.iter().enumerate().zip(&locals).map(|((index, parameter), local)| {
        let Parameter { name, ty, default, .. } = parameter;
        let function = default_ident(index);
        match default {
            None => quote_spanned!(at(ty.span())=> let #local = arguments.take::<#ty>(#name)?;),
            Some(_) => {
                quote_spanned!(at(ty.span())=> let #local = arguments.take_or::<#ty>(#name, #function)?;)
            }
        }
    });
    let call = quote!(#ident(#(#locals),*));
    let contents = quote_spanned! {at(output_span(tool))=>
        ::cofferdam_sdk::__private::Value(::cofferdam_sdk::__private::ReturnValue(#call).outcome()?).contents()
    };
    quote_spanned! {Span::mixed_site()=>
        #[allow(unused_mut, unused_variables, reason = "there are tools without parameters")]
        fn call(
            mut arguments: ::cofferdam_sdk::Arguments,
        ) -> ::core::result::Result<::std::vec::Vec<::cofferdam_sdk::Content>, ::cofferdam_sdk::ToolFailure> {
            #[allow(unused_imports, reason = "depends on the return type")]
            use ::cofferdam_sdk::__private::{JsonContents as _, PlainOutcome as _};
            #(#decoded)*
            #contents
        }
    }
}

/// Returns the span of the return type, at which errors about the output are reported.
fn output_span(tool: &ToolFunction) -> Span {
    match &tool.output {
        ReturnType::Default => tool.ident.span(),
        ReturnType::Type(_, ty) => ty.span(),
    }
}

/// Returns a span that reports errors at `span` and resolves names in this file.
fn at(span: Span) -> Span {
    span.resolved_at(Span::mixed_site())
}

fn default_ident(index: usize) -> Ident {
    format_ident!("default_{index}", span = Span::mixed_site())
}
