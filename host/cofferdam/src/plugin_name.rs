//! Names of plugins.

use std::path::Path;

use cofferdam_tool::{InvalidName, PluginName};

/// Maximum length of a plugin name, in characters.
const NAME_CHARS_MAX: usize = 64;

/// Name for a path that has no file name, such as `.`, which is no component either.
const NAMELESS: &str = "plugin";

/// Derives the name of a plugin from its file: without the extension, and with `_` instead of
/// characters that are not allowed.
///
/// # Errors
/// Returns an error if the result is invalid.
pub fn plugin_name(component: &Path) -> Result<PluginName, InvalidName> {
    let stem = component.file_stem().map_or(NAMELESS.into(), |stem| stem.to_string_lossy());
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name: String =
        stem.chars().map(|c| if fits(c) { c } else { '_' }).take(NAME_CHARS_MAX).collect();
    PluginName::new(name)
}
