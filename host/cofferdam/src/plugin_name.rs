//! Names of plugins.

use std::path::Path;

use cofferdam_tool::{InvalidName, PluginName};

/// Longest name of a plugin, in characters.
const NAME_CHARS_MAX: usize = 64;

/// Returns the name of a plugin without a name of its own: that of its file, without the ending and
/// with `_` in place of characters that are not allowed.
///
/// # Errors
/// When nothing is left.
pub fn plugin_name(component: &Path) -> Result<PluginName, InvalidName> {
    let stem = component.file_stem().unwrap_or_default().to_string_lossy();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name: String =
        stem.chars().map(|c| if fits(c) { c } else { '_' }).take(NAME_CHARS_MAX).collect();
    PluginName::new(name)
}
