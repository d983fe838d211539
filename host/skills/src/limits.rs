//! Limits on content that untrusted authors write.

/// Limits on skills. A limit is the largest value that still passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkillLimits {
    /// Skills in one list. All of them are in each request to a model.
    pub skills_max: usize,
    /// Directories that are looked into under one root.
    pub directories_max: usize,
    /// Bytes of a `SKILL.md`.
    pub skill_bytes_max: u64,
    /// Resources of one skill.
    pub resources_max: usize,
    /// Bytes of a resource.
    pub resource_bytes_max: u64,
    /// Scripts of one skill, including those without a runner.
    pub scripts_max: usize,
}

impl Default for SkillLimits {
    fn default() -> Self {
        Self {
            // More descriptions than this are more than a model reads with profit: 256 KiB at their
            // longest.
            skills_max: 256,
            // Two levels of a collection with hundreds of groups.
            directories_max: 4096,
            // The format asks for less than 500 lines; the largest that are published have some 60
            // KiB.
            skill_bytes_max: 1 << 20,
            resources_max: 1024,
            // As much as a plugin may return by default.
            resource_bytes_max: 1 << 20,
            scripts_max: 256,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_these() {
        let limits = SkillLimits {
            skills_max: 256,
            directories_max: 4096,
            skill_bytes_max: 1_048_576,
            resources_max: 1024,
            resource_bytes_max: 1_048_576,
            scripts_max: 256,
        };
        assert_eq!(SkillLimits::default(), limits);
    }
}
