//! The attribute `#[tool]`. It is documented where users use it, in the crate `cofferdam`.
//!
//! The function stays as it was written, without the attributes that only this macro understands.
//! Beside it the macro puts an empty enum of the same name, which lives in the namespace of types,
//! and implements `cofferdam_sdk::Tool` for it. Everything that can be wrong is reported at the
//! token that is wrong, and all of it at once.

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

/// Points at the keyword and not at the whole of a long item.
fn first_token(item: proc_macro2::TokenStream) -> Option<proc_macro2::TokenTree> {
    item.into_iter().find(|token| matches!(token, proc_macro2::TokenTree::Ident(_)))
}
