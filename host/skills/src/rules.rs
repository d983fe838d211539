//! Rules for skills, and the errors of breaking them (`SKILL-1` to `SKILL-6`).

/// Longest name in characters (`SKILL-2`).
const NAME_CHARS_MAX: usize = 64;
/// Longest description in characters (`SKILL-3`).
const DESCRIPTION_CHARS_MAX: usize = 1024;
/// Longest `compatibility` in characters (`SKILL-3`).
const COMPATIBILITY_CHARS_MAX: usize = 500;
/// Maximum characters of an author's text that are quoted in a message. The texts of `SKILL-2` and
/// `SKILL-3` are fixed and quote a name as it is.
const QUOTED_CHARS_MAX: usize = 100;

/// Error returned for an invalid skill. The texts are for the author; those of `SKILL-2` and
/// `SKILL-3` are fixed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSkill {
    /// The file is not UTF-8.
    #[error("`SKILL.md` is not UTF-8 text")]
    NotText,
    /// The first line is something else than `---` (`SKILL-1`).
    #[error("`SKILL.md` does not begin with a line `---`")]
    NoFrontMatter,
    /// There is no second line `---` (`SKILL-1`).
    #[error("the front matter of `SKILL.md` has no line `---` at its end")]
    Unclosed,
    /// The front matter is not YAML.
    #[error("line {line} of `SKILL.md` is not YAML: {reason}")]
    Yaml {
        /// Counted from 1, in the file.
        line: usize,
        /// Message of the parser.
        reason: String,
    },
    /// The front matter is a text or a list.
    #[error("the front matter of `SKILL.md` is not a map of fields")]
    NotAMap,
    /// A key stands twice in one map (`SKILL-5`).
    #[error("line {line} of `SKILL.md`: the key `{key}` is there twice")]
    DuplicateKey {
        /// Counted from 1, in the file.
        line: usize,
        /// The key.
        key: String,
    },
    /// A tag that is not one of YAML's own (`SKILL-5`).
    #[error("line {line} of `SKILL.md`: the tag `{tag}` is not allowed")]
    Tag {
        /// Counted from 1, in the file.
        line: usize,
        /// The tag as it is written.
        tag: String,
    },
    /// An alias for what contains it, or for nothing.
    #[error("line {line} of `SKILL.md`: the alias stands for nothing that is complete before it")]
    Alias {
        /// Counted from 1, in the file.
        line: usize,
    },
    /// Aliases make the front matter too large (`SKILL-5`).
    #[error("aliases make the front matter of `SKILL.md` larger than {bytes_max} bytes")]
    AliasedTooMuch {
        /// The limit.
        bytes_max: usize,
    },
    /// A list or map where a text is due (`SKILL-5`).
    #[error("the field `{field}` of `SKILL.md` is not a string")]
    NotAText {
        /// The field.
        field: &'static str,
    },
    /// There is no name (`SKILL-2`).
    #[error("Skill name cannot be empty.")]
    NoName,
    /// The name breaks a rule (`SKILL-2`).
    #[error(
        "Invalid skill name '{name}': Must be {NAME_CHARS_MAX} characters or fewer, using only lowercase letters, numbers, \
         and hyphens, and must not start or end with a hyphen or contain consecutive hyphens."
    )]
    Name {
        /// The name.
        name: String,
    },
    /// The name is not the one of the directory (`SKILL-2`).
    #[error("the skill `{name}` is in a directory called `{directory}`")]
    OtherDirectory {
        /// The name in the front matter.
        name: String,
        /// The directory's name.
        directory: String,
    },
    /// There is no description (`SKILL-3`).
    #[error("Skill description cannot be empty.")]
    NoDescription,
    /// The description is too long (`SKILL-3`).
    #[error(
        "Skill '{name}' has an invalid description: Must be {DESCRIPTION_CHARS_MAX} characters or \
         fewer."
    )]
    Description {
        /// The skill.
        name: String,
    },
    /// `compatibility` is too long (`SKILL-3`).
    #[error("Skill compatibility must be {COMPATIBILITY_CHARS_MAX} characters or fewer.")]
    Compatibility,
    /// Two resources or two scripts of a skill of the program have one name.
    #[error("`{name}` is there twice")]
    Twice {
        /// The name.
        name: String,
    },
    /// A script of the program cannot be declared.
    #[error(transparent)]
    Script(#[from] cofferdam_tool::declaration::DeclarationError),
}

impl InvalidSkill {
    /// Returns advice for the author.
    #[must_use]
    pub fn suggestion(&self) -> &'static str {
        match self {
            Self::NotText => "save the file as UTF-8",
            Self::NoFrontMatter => {
                "begin the file with a line `---`, the fields `name` and `description`, and a \
                 line `---`"
            }
            Self::Unclosed => {
                "end the front matter with a line of its own that is `---`, not indented and not \
                 `...`"
            }
            Self::Yaml { .. } => {
                "write `key: value` lines; put a value with `: ` or ` #` in it between double \
                 quotes"
            }
            Self::NotAMap => "write `key: value` lines",
            Self::DuplicateKey { .. } | Self::Twice { .. } => "keep one of the two",
            Self::Tag { .. } => "leave the tag out, or put the value between double quotes",
            Self::Alias { .. } | Self::AliasedTooMuch { .. } => {
                "write the value out instead of the alias"
            }
            Self::NotAText { .. } => {
                "write a string; `allowed-tools` is one string with spaces between the tools"
            }
            Self::NoName => "add `name: ` with the name of the directory",
            Self::Name { .. } => "rename the directory and the skill, such as `sales-report`",
            Self::OtherDirectory { .. } => {
                "give the directory the name of the skill, or the skill that of the directory"
            }
            Self::NoDescription => {
                "add `description: ` with what the skill does and when to use it"
            }
            Self::Description { .. } => {
                "shorten the description, and move the rest below the front matter"
            }
            Self::Compatibility => "shorten `compatibility`",
            Self::Script(_) => "correct the declaration",
        }
    }
}

/// Checks a name (`SKILL-2`): groups of lower-case ASCII letters and digits with single hyphens
/// between them, 64 characters at most.
///
/// # Errors
/// [`InvalidSkill::NoName`] for a blank one, [`InvalidSkill::Name`].
pub fn check_name(name: &str) -> Result<(), InvalidSkill> {
    if name.trim().is_empty() {
        return Err(InvalidSkill::NoName);
    }
    let is_group = |group: &str| {
        !group.is_empty()
            && group.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    // All of it is ASCII by then, so that bytes are characters.
    if name.split('-').all(is_group) && name.len() <= NAME_CHARS_MAX {
        return Ok(());
    }
    Err(InvalidSkill::Name { name: name.to_owned() })
}

/// Checks the description of the skill `name` (`SKILL-3`).
///
/// # Errors
/// [`InvalidSkill::NoDescription`] for a blank one, [`InvalidSkill::Description`] for one of more
/// than 1024 characters.
pub fn check_description(name: &str, description: &str) -> Result<(), InvalidSkill> {
    if description.trim().is_empty() {
        Err(InvalidSkill::NoDescription)
    } else if description.chars().nth(DESCRIPTION_CHARS_MAX).is_some() {
        Err(InvalidSkill::Description { name: name.to_owned() })
    } else {
        Ok(())
    }
}

/// Checks `compatibility` (`SKILL-3`).
///
/// # Errors
/// [`InvalidSkill::Compatibility`] for one of more than 500 characters.
pub fn check_compatibility(compatibility: &str) -> Result<(), InvalidSkill> {
    if compatibility.chars().nth(COMPATIBILITY_CHARS_MAX).is_some() {
        return Err(InvalidSkill::Compatibility);
    }
    Ok(())
}

/// Returns a part of a message that an author has written: one line, of readable length.
pub(super) fn quoted(text: &str) -> String {
    let mut line: String =
        text.chars().take(QUOTED_CHARS_MAX).flat_map(char::escape_debug).collect();
    if text.chars().nth(QUOTED_CHARS_MAX).is_some() {
        line.push('…');
    }
    line
}
