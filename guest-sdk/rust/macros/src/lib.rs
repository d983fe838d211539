//! The attribute `#[tool]`. Its documentation is in the crate `cofferdam_sdk`, which exports it.
//!
//! The function is emitted unchanged, without the attributes that only this macro understands. The
//! macro adds an empty enum with the same name, in the type namespace, and implements
//! `cofferdam_sdk::Tool` for it. All errors are reported together, each at its token.

mod attribute;
mod docs;
mod expand;
mod function;
mod types;

use proc_macro::TokenStream;
use quote::{ToTokens as _, quote};

/// Makes a tool of a function. See `cofferdam_sdk::tool`.
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let item = proc_macro2::TokenStream::from(item);
    let Ok(mut function) = syn::parse2::<syn::ItemFn>(item.clone()) else {
        let error =
            syn::Error::new_spanned(first_token(item.clone()), "`#[tool]` goes on a function");
        let error = error.into_compile_error();
        return quote!(#error #item).into();
    };
    let tool = function::read(attribute.into(), &mut function);
    let generated = match tool {
        Ok(tool) => expand::expand(&tool),
        Err(error) => error.into_compile_error(),
    };
    let function = function.into_token_stream();
    quote!(#function #generated).into()
}

/// Returns the first keyword of an item, at which errors are reported instead of at the whole item.
fn first_token(item: proc_macro2::TokenStream) -> Option<proc_macro2::TokenTree> {
    item.into_iter().find(|token| matches!(token, proc_macro2::TokenTree::Ident(_)))
}
