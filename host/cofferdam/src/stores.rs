//! File stores and names of plugins.

use std::path::Path;
use std::sync::Arc;

use cofferdam_files::{DirectoryOptions, DirectoryStore, FileStore, NameRules, OpenDirectoryError, Quota};
use cofferdam_tool::{FileAccess, InvalidName, PluginName};

/// Longest name of a plugin, in characters.
const NAME_CHARS_MAX: usize = 64;

/// Opens a directory of the host as a store. It may hold names that are valid on this system only.
///
/// # Errors
/// When the path is not a directory that can be opened.
pub fn open_directory(
    directory: &Path,
    access: FileAccess,
    quota: Quota,
) -> Result<Arc<dyn FileStore>, OpenDirectoryError> {
    let is_read_only = access == FileAccess::ReadOnly;
    let names = NameRules::Native;
    let options = DirectoryOptions { is_read_only, quota, names, ..DirectoryOptions::default() };
    Ok(Arc::new(DirectoryStore::open_ambient(directory, options)?))
}

/// Returns the name of a plugin without a name of its own: that of its file, without the ending and with `_` in place of characters
/// that are not allowed.
///
/// # Errors
/// When nothing is left.
pub fn plugin_name(component: &Path) -> Result<PluginName, InvalidName> {
    let stem = component.file_stem().unwrap_or_default().to_string_lossy();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name: String = stem.chars().map(|c| if fits(c) { c } else { '_' }).take(NAME_CHARS_MAX).collect();
    PluginName::new(name)
}
