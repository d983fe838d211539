//! Any string as a `SKILL.md`: it is refused, or its front matter follows the rules for names and
//! descriptions.

use cofferdam_skills::{FrontMatter, check_description, check_name};

/// Parses the string as the skill of a directory with its own name, and of another one.
pub(crate) fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let name = text.lines().find_map(|line| line.strip_prefix("name:")).unwrap_or_default().trim();
    if let Ok(skill) = FrontMatter::parse(text, name) {
        assert_eq!(skill.name, name, "a skill has the name of its directory");
        assert!(
            check_name(&skill.name).is_ok() && check_description(name, &skill.description).is_ok()
        );
        assert!(FrontMatter::parse(text, "another").is_err() || name == "another");
    }
}
