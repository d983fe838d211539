//! Exports several tools as one component.

use crate::{Arguments, Content, Definition, Tool, ToolFailure};

/// Exports tools as a component. Use it once per crate, with the paths of the tools:
///
/// ```
/// mod text {
///     /// The text backwards.
///     #[cofferdam_sdk::tool]
///     pub fn reverse(text: String) -> String {
///         text.chars().rev().collect()
///     }
/// }
///
/// cofferdam_sdk::plugin!(text::reverse);
/// # fn main() {}
/// ```
///
/// With `; manifest = "plugin.toml"` at the end, the macro embeds the file of that name, next to
/// `Cargo.toml`, in the component. It declares which files, hosts, secrets and limits the tools
/// need.
///
/// The crate is a `cdylib` and is built with `cargo build --release --target wasm32-wasip2`. On
/// other targets the macro only checks the tools and exports nothing, so that `cargo test` works.
#[macro_export]
macro_rules! plugin {
    () => {
        compile_error!("a plugin has at least one tool: `plugin!(word_count)`");
    };
    ($($tool:path),+; manifest = $manifest:literal) => {
        $crate::plugin!($($tool),+);

        #[cfg(target_arch = "wasm32")]
        const _: () = {
            const TEXT: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $manifest));

            #[allow(unsafe_code, reason = "a section of this name is read by the host and by \
                nothing else")]
            #[used]
            #[unsafe(link_section = "cofferdam:manifest")]
            static MANIFEST: [u8; TEXT.len()] =
                *include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $manifest));
        };
    };
    ($($tool:path),+ $(,)?) => {
        const _: () = {
            #[allow(dead_code, reason = "only a component is asked for its tools")]
            struct Plugin;

            impl $crate::__private::Plugin for Plugin {
                /// The tools, in the order of the macro's arguments.
                const TOOLS: &'static [$crate::__private::Entry] =
                    &[$($crate::__private::Entry::of::<$tool>()),+];
            }

            if let Some(problem) =
                $crate::__private::problem_of(<Plugin as $crate::__private::Plugin>::TOOLS)
            {
                panic!("{}", problem);
            }

            #[cfg(target_arch = "wasm32")]
            $crate::__private::bindings::export!(Plugin with_types_in $crate::__private::bindings);
        };
    };
}

/// Tools that `plugin!` exports.
pub trait Plugin {
    /// The tools, in the order of the macro's arguments.
    const TOOLS: &'static [Entry];
}

/// Name and functions of a [`Tool`].
#[derive(Debug)]
pub struct Entry {
    pub(crate) name: &'static str,
    #[cfg_attr(not(target_arch = "wasm32"), expect(dead_code, reason = "a component asks"))]
    pub(crate) definition: fn() -> Definition,
    call: fn(Arguments) -> Result<Vec<Content>, ToolFailure>,
}

impl Entry {
    /// Creates the entry of a tool.
    #[must_use]
    pub const fn of<T: Tool>() -> Self {
        Self { name: T::NAME, definition: T::definition, call: T::call }
    }
}

/// Runs the tool called `name`.
#[cfg_attr(not(any(target_arch = "wasm32", test)), expect(dead_code, reason = "a component calls"))]
pub(crate) fn call(
    tools: &[Entry],
    name: &str,
    arguments: &str,
) -> Result<Vec<Content>, ToolFailure> {
    let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
        return Err(ToolFailure::new(format!("this plugin has no tool `{name}`")).permanent());
    };
    (tool.call)(Arguments::parse(tool.name, arguments)?)
}

/// Returns the reason for which a host would reject the plugin: more than 128 tools, or two names
/// that are equal apart from case.
#[must_use]
pub const fn problem_of(tools: &[Entry]) -> Option<&'static str> {
    if tools.len() > 128 {
        return Some("a plugin has at most 128 tools");
    }
    let mut rest = tools;
    while let [first, others @ ..] = rest {
        let mut others = others;
        while let [other, remaining @ ..] = others {
            if first.name.eq_ignore_ascii_case(other.name) {
                return Some("two tools of this plugin have the same name");
            }
            others = remaining;
        }
        rest = match rest {
            [_, rest @ ..] => rest,
            [] => rest,
        };
    }
    None
}

#[cfg(test)]
mod tests;
