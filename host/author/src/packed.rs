//! Files that `build.rs` packs into the crate.

use crate::Language;

include!(concat!(env!("OUT_DIR"), "/packed.rs"));

/// Returns the files of the SDK for a language.
pub(crate) fn sdk(language: Language) -> &'static [(&'static str, &'static [u8])] {
    match language {
        Language::Rust => SDK_RUST,
        Language::Python => SDK_PYTHON,
        Language::JavaScript | Language::TypeScript => SDK_JAVASCRIPT,
        Language::Go => SDK_GO,
        Language::C | Language::Cpp => SDK_C,
        Language::Zig => SDK_ZIG,
    }
}

/// `Cargo.toml` of the workspace around a copy of the Rust SDK.
pub(crate) const RUST_SDK_WORKSPACE: &str = include_str!("../templates/sdk-workspace.toml");
