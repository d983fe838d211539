//! List of skills, and the instructions about them for a model (`SKILL-12`).

use super::skill::{Skill, named};
use super::xml::{escaped, list};

/// Text before and after the list of skills.
const BEFORE: &str = "\
Skills are folders of instructions, reference files and scripts for tasks of some kind. These are \
there:";
const AFTER: &str = "\
When a task is of such a kind, call `load_skill` with the name of the skill first, and do as it \
says where that serves the task. \
Of what it lists, read files with `read_skill_resource` and run scripts with `run_skill_script`, \
under the names exactly as they \
are listed. Load what the task needs and nothing else.";

/// Skills sorted by name. No two names differ only in case.
#[derive(Debug, Clone, Default)]
pub struct SkillList {
    skills: Vec<Skill>,
}

impl SkillList {
    /// Creates a list with the first skill of each name (`SKILL-7`).
    #[must_use]
    pub fn new(skills: impl IntoIterator<Item = Skill>) -> Self {
        let mut list = Self::default();
        for skill in skills {
            if list.find(skill.name()).is_none() {
                list.skills.push(skill);
            }
        }
        list.skills.sort_by(|left, right| left.name().cmp(right.name()));
        list
    }

    /// Returns the skills, sorted by name.
    #[must_use]
    pub fn skills(&self) -> &[Skill] {
        &self.skills
    }

    /// Returns whether the list is empty. If so, a model gets no instructions and no tools
    /// (`SKILL-11`).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// Returns the skill with this name, ignoring case (`SKILL-14`).
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Skill> {
        let name = named(name, self.skills.iter().map(Skill::name))?;
        self.skills.iter().find(|skill| skill.name() == name)
    }

    /// Returns `<available_skills>` with escaped names and descriptions.
    #[must_use]
    pub fn advertised(&self) -> String {
        let entry = |skill: &Skill| {
            let (name, description) = (escaped(skill.name()), escaped(skill.description()));
            format!(
                "  <skill>\n    <name>{name}</name>\n    \
                 <description>{description}</description>\n  </skill>"
            )
        };
        list("available_skills", &self.skills.iter().map(entry).collect::<Vec<_>>())
    }

    /// Returns the instructions for a model, which accompany the descriptions of the tools.
    #[must_use]
    pub fn instructions(&self) -> String {
        format!("{BEFORE}\n{}\n{AFTER}", self.advertised())
    }
}
