//! `_meta` of a request (`MCP-7`, `MCP-8`).

use serde_json::{Map, Value};

/// Error for invalid `_meta` of the host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetaError {
    /// The value is not a map.
    #[error("MCP tool metadata provided via _meta must be a map.")]
    NotAMap,
    /// A key is invalid.
    #[error("Invalid MCP _meta key name: '{0}'.")]
    Key(String),
}

/// Merges the metadata of the host, of the trace and of the tool's listing; later sources override
/// earlier ones. Returns `None` if there is no source.
///
/// # Errors
/// If the host's metadata is not a map or contains an invalid key.
pub fn joined_meta(
    host: Option<&Value>,
    trace: Option<&Map<String, Value>>,
    listing: Option<&Map<String, Value>>,
) -> Result<Option<Map<String, Value>>, MetaError> {
    let host = host.map(|meta| meta.as_object().ok_or(MetaError::NotAMap)).transpose()?;
    if let Some(key) = host.into_iter().flat_map(Map::keys).find(|key| !is_key(key)) {
        return Err(MetaError::Key(key.clone()));
    }
    let sources: Vec<_> = [host, trace, listing].into_iter().flatten().collect();
    if sources.is_empty() {
        return Ok(None);
    }
    let entries = sources.into_iter().flatten();
    Ok(Some(entries.map(|(key, value)| (key.clone(), value.clone())).collect()))
}

fn is_key(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    prefix.is_none_or(|prefix| prefix.split('.').all(is_label)) && is_name(name)
}

fn is_label(label: &str) -> bool {
    label.starts_with(|c: char| c.is_ascii_alphabetic())
        && label.ends_with(|c: char| c.is_ascii_alphanumeric())
        && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

fn is_name(name: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(is_inner)
}
