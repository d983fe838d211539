//! What a remote tool is called here (`MCP-9`, `MCP-10`).

/// What a prefix loses at its end, and a name at its start.
const SEPARATORS: [char; 3] = ['_', '.', '-'];

/// The name with `-` for every character that a name cannot hold (`MCP-9`).
#[must_use]
pub fn local_name(remote: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || SEPARATORS.contains(&c);
    remote.chars().map(|c| if fits(c) { c } else { '-' }).collect()
}

/// The name with the prefix of its server (`MCP-10`). A prefix of which nothing is left is none.
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
