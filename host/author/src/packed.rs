//! Files that are a part of the crate: see `build.rs`.

use crate::Language;

include!(concat!(env!("OUT_DIR"), "/packed.rs"));

/// The files of the SDK that projects in a language use.
pub(crate) fn sdk(language: Language) -> &'static [(&'static str, &'static [u8])] {
    match language {
        Language::Rust => SDK_RUST,
        Language::Python => SDK_PYTHON,
        Language::JavaScript | Language::TypeScript => SDK_JAVASCRIPT,
        Language::Go => SDK_GO,
        Language::C | Language::Cpp => SDK_C,
    }
}

/// The workspace that a copy of the Rust SDK stands in.
pub(crate) const RUST_SDK_WORKSPACE: &str = include_str!("../templates/sdk-workspace.toml");
