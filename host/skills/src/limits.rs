//! Limits on content that untrusted authors write.

/// Limits on skills, all inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkillLimits {
    /// Maximum number of skills that discovery returns. Each request to a model lists all of them.
    pub skills_max: usize,
    /// Maximum number of directories that are searched under one root.
    pub directories_max: usize,
    /// Maximum bytes of a `SKILL.md`.
    pub skill_bytes_max: u64,
    /// Maximum number of resources of one skill.
    pub resources_max: usize,
    /// Maximum bytes of a resource.
    pub resource_bytes_max: u64,
    /// Maximum number of scripts of one skill, including those without a runner.
    pub scripts_max: usize,
}

impl Default for SkillLimits {
    fn default() -> Self {
        Self {
            // 256 descriptions of maximum length are 256 KiB in each request to a model.
            skills_max: 256,
            // Enough for two levels with hundreds of groups.
            directories_max: 4096,
            // The format recommends fewer than 500 lines; the largest published files have about 60
            // KiB.
            skill_bytes_max: 1 << 20,
            resources_max: 1024,
            // Default maximum for results of plugins.
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
