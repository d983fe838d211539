//! Local names of remote tools (`MCP-9`, `MCP-10`).

/// Characters that are trimmed from the end of a prefix and the start of a name.
const SEPARATORS: [char; 3] = ['_', '.', '-'];

/// Returns the name with `-` instead of every character that a name cannot contain (`MCP-9`).
#[must_use]
pub fn local_name(remote: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || SEPARATORS.contains(&c);
    remote.chars().map(|c| if fits(c) { c } else { '-' }).collect()
}

/// Returns the name with the prefix of its server (`MCP-10`). A prefix that is empty after trimming
/// is ignored.
#[must_use]
pub fn prefixed_name(remote: &str, prefix: Option<&str>) -> String {
    let name = local_name(remote);
    let prefix = local_name(prefix.unwrap_or_default());
    let prefix = prefix.trim_end_matches(SEPARATORS);
    if prefix.is_empty() {
        return name;
    }
    match name.trim_start_matches(SEPARATORS) {
        "" => prefix.to_owned(),
        name => format!("{prefix}_{name}"),
    }
}
