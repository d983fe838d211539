//! Tool names of exported functions.

use std::collections::HashMap;

/// Converts a kebab-case name to snake case. Upper case is preserved: `get-URL` becomes `get_URL`.
pub(super) fn snake(kebab: &str) -> String {
    kebab.replace('-', "_")
}

/// Returns the name of an interface without its package and version: `clock` for
/// `my:tools/clock@1.0.0`.
pub(super) fn interface(export: &str) -> &str {
    let path = export.split_once('@').map_or(export, |(path, _version)| path);
    path.rsplit_once('/').map_or(path, |(_package, interface)| interface)
}

/// Returns the tool names of functions. Each function is given as the export that contains it
/// (`None` at the root) and its own name.
///
/// A function of an interface gets no prefix if no other function has the same name, ignoring case.
pub(super) fn tools(functions: &[(Option<&str>, &str)]) -> Vec<String> {
    let mut uses: HashMap<String, u32> = HashMap::new();
    for (_, name) in functions {
        *uses.entry(name.to_ascii_lowercase()).or_default() += 1;
    }
    let is_shared = |name: &str| uses.get(&name.to_ascii_lowercase()).is_some_and(|uses| *uses > 1);
    let tool = |(export, name): &(Option<&str>, &str)| match export {
        Some(export) if is_shared(name) => format!("{}_{}", snake(interface(export)), snake(name)),
        _ => snake(name),
    };
    functions.iter().map(tool).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_appears_where_it_is_needed() {
        let functions = [
            (None, "now"),
            (Some("my:tools/clock@1.0.0"), "get-time"),
            (Some("my:tools/clock@1.0.0"), "now"),
            (Some("sun-dial"), "now"),
            (Some("my:tools/zones"), "get-URL"),
        ];
        assert_eq!(tools(&functions), ["now", "get_time", "clock_now", "sun_dial_now", "get_URL"]);
    }

    #[test]
    fn interfaces_have_a_short_name() {
        assert_eq!(interface("my:tools/clock@1.0.0-rc.1+a/b"), "clock");
        assert_eq!(interface("my:tools/clock"), "clock");
        assert_eq!(interface("clock"), "clock");
    }
}
