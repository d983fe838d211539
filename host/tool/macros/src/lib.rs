//! The attribute `#[tool]` for functions of a host. Its documentation is in `cofferdam_tool`, which
//! exports it.
//!
//! The function is emitted unchanged, without the attributes that only this macro understands;
//! lints do not report the size of its `ToolFailure`. The macro adds an empty enum with the same
//! name, in the type namespace, and implements `cofferdam_tool::functions::FunctionTool` for it.
//! All errors are reported together, each at its token.
//!
//! There are two attributes because generated code names the crate that its author depends on:
//! `cofferdam_tool` or the facade `cofferdam`.

mod attribute;
mod docs;
mod expand;
mod function;
#[cfg(test)]
mod tests;
mod types;

use proc_macro::TokenStream;
use quote::{ToTokens as _, quote};

/// Makes a tool of a function. See `cofferdam_tool::functions::tool`.
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    make_tool(&quote!(::cofferdam_tool), attribute.into(), item.into()).into()
}

/// Makes a tool of a function of a program that depends on the facade. See `cofferdam::tool`.
#[proc_macro_attribute]
pub fn facade_tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    make_tool(&quote!(::cofferdam::tool), attribute.into(), item.into()).into()
}

/// Returns the function and the code beside it. `library` is the path of `cofferdam_tool`.
fn make_tool(
    library: &proc_macro2::TokenStream,
    attribute: proc_macro2::TokenStream,
    item: proc_macro2::TokenStream,
) -> proc_macro2::TokenStream {
    let Ok(mut function) = syn::parse2::<syn::ItemFn>(item.clone()) else {
        let error =
            syn::Error::new_spanned(first_keyword(item.clone()), "`#[tool]` goes on a function");
        let error = error.into_compile_error();
        return quote!(#error #item);
    };
    let tool = function::read(attribute, &mut function);
    let generated = match tool {
        Ok(tool) => expand::expand(library, &tool),
        Err(error) => error.into_compile_error(),
    };
    let function = function.into_token_stream();
    quote! {
        #[allow(clippy::result_large_err, reason = "a tool returns a `ToolFailure` once per call")]
        #function
        #generated
    }
}

/// Returns the first keyword of an item, at which errors are reported instead of at the whole item.
fn first_keyword(item: proc_macro2::TokenStream) -> Option<proc_macro2::TokenTree> {
    item.into_iter().find(|token| matches!(token, proc_macro2::TokenTree::Ident(_)))
}
