//! Rules for skills, and the errors for breaking them (`SKILL-1` to `SKILL-6`).

/// Maximum characters of a name (`SKILL-2`).
const NAME_CHARS_MAX: usize = 64;
/// Maximum characters of a description (`SKILL-3`).
const DESCRIPTION_CHARS_MAX: usize = 1024;
/// Maximum characters of `compatibility` (`SKILL-3`).
const COMPATIBILITY_CHARS_MAX: usize = 500;
/// Maximum characters of an author's text that a message quotes. The messages of `SKILL-2` and
/// `SKILL-3` quote names in full.
const QUOTED_CHARS_MAX: usize = 100;

/// Error returned for an invalid skill. The messages are for the author of the skill; those of
/// `SKILL-2` and `SKILL-3` are fixed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSkill {
    /// The file is not UTF-8.
    #[error("`SKILL.md` is not UTF-8 text")]
    NotText,
    /// The first line is not `---` (`SKILL-1`).
    #[error("`SKILL.md` does not begin with a line `---`")]
    NoFrontMatter,
    /// The second line `---` is missing (`SKILL-1`).
    #[error("the front matter of `SKILL.md` has no line `---` at its end")]
    Unclosed,
    /// The front matter is not YAML.
    #[error("line {line} of `SKILL.md` is not YAML: {reason}")]
    Yaml {
        /// Number of the line in the file, from 1.
        line: usize,
        /// Error message of the parser.
        reason: String,
    },
    /// The front matter is a scalar or a list.
    #[error("the front matter of `SKILL.md` is not a map of fields")]
    NotAMap,
    /// A map contains a key twice (`SKILL-5`).
    #[error("line {line} of `SKILL.md`: the key `{key}` occurs twice")]
    DuplicateKey {
        /// Number of the line in the file, from 1.
        line: usize,
        /// Key that occurs twice.
        key: String,
    },
    /// The front matter contains a tag that is not a standard tag of YAML (`SKILL-5`).
    #[error("line {line} of `SKILL.md`: the tag `{tag}` is not allowed")]
    Tag {
        /// Number of the line in the file, from 1.
        line: usize,
        /// The tag as written in the file.
        tag: String,
    },
    /// An alias refers to a node that contains it, or to no node.
    #[error("line {line} of `SKILL.md`: the alias stands for nothing that is complete before it")]
    Alias {
        /// Number of the line in the file, from 1.
        line: usize,
    },
    /// Aliases make the front matter too large (`SKILL-5`).
    #[error("aliases make the front matter of `SKILL.md` larger than {bytes_max} bytes")]
    AliasedTooMuch {
        /// Maximum bytes of the front matter, including the repetitions.
        bytes_max: usize,
    },
    /// A field is a list or a map instead of a string (`SKILL-5`).
    #[error("the field `{field}` of `SKILL.md` is not a string")]
    NotAText {
        /// Name of the field.
        field: &'static str,
    },
    /// The name is missing or blank (`SKILL-2`).
    #[error("Skill name cannot be empty.")]
    NoName,
    /// The name is invalid (`SKILL-2`).
    #[error(
        "Invalid skill name '{name}': Must be {NAME_CHARS_MAX} characters or fewer, using only lowercase letters, numbers, \
         and hyphens, and must not start or end with a hyphen or contain consecutive hyphens."
    )]
    Name {
        /// The invalid name.
        name: String,
    },
    /// The name differs from that of the directory (`SKILL-2`).
    #[error("the skill `{name}` is in a directory called `{directory}`")]
    OtherDirectory {
        /// Name in the front matter.
        name: String,
        /// Name of the directory.
        directory: String,
    },
    /// The description is missing or blank (`SKILL-3`).
    #[error("Skill description cannot be empty.")]
    NoDescription,
    /// The description is too long (`SKILL-3`).
    #[error(
        "Skill '{name}' has an invalid description: Must be {DESCRIPTION_CHARS_MAX} characters or \
         fewer."
    )]
    Description {
        /// Name of the skill.
        name: String,
    },
    /// `compatibility` is too long (`SKILL-3`).
    #[error("Skill compatibility must be {COMPATIBILITY_CHARS_MAX} characters or fewer.")]
    Compatibility,
    /// Two resources or two scripts of an in-program skill have the same name.
    #[error("`{name}` occurs twice")]
    Twice {
        /// Name of both resources or scripts.
        name: String,
    },
    /// The declaration of an in-program script is invalid.
    #[error(transparent)]
    Script(#[from] cofferdam_tool::declaration::DeclarationError),
}

/// Part of `metadata` that is left out because of its form (`SKILL-4`). The skill is valid, so only
/// its author needs to know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataProblem {
    /// The field is a string or a list.
    #[error("the field `metadata` of `SKILL.md` is not a map and is left out")]
    NotAMap,
    /// Entries have a key or a value that is not a string.
    #[error("entries of `metadata` of `SKILL.md` are not strings and are left out: {keys}")]
    NotTexts {
        /// Keys of these entries, shortened.
        keys: String,
    },
}

impl MetadataProblem {
    /// Returns advice for the author.
    #[must_use]
    pub fn suggestion(&self) -> &'static str {
        match self {
            Self::NotAMap => "write `key: value` lines below `metadata:`, indented",
            Self::NotTexts { .. } => {
                "write each value as one string; put a list or a map between quotes"
            }
        }
    }
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

/// Checks a name (`SKILL-2`): at most 64 characters, which form groups of lower-case ASCII letters
/// and digits separated by single hyphens.
///
/// # Errors
/// [`InvalidSkill::NoName`] for a blank name, [`InvalidSkill::Name`] for an invalid one.
pub fn check_name(name: &str) -> Result<(), InvalidSkill> {
    if name.trim().is_empty() {
        return Err(InvalidSkill::NoName);
    }
    let is_group = |group: &str| {
        !group.is_empty()
            && group.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    // The first check ensures that the name is ASCII, so its bytes are characters.
    if name.split('-').all(is_group) && name.len() <= NAME_CHARS_MAX {
        return Ok(());
    }
    Err(InvalidSkill::Name { name: name.to_owned() })
}

/// Checks the description of the skill `name` (`SKILL-3`).
///
/// # Errors
/// [`InvalidSkill::NoDescription`] for a blank description, [`InvalidSkill::Description`] for more
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
/// [`InvalidSkill::Compatibility`] for more than 500 characters.
pub fn check_compatibility(compatibility: &str) -> Result<(), InvalidSkill> {
    if compatibility.chars().nth(COMPATIBILITY_CHARS_MAX).is_some() {
        return Err(InvalidSkill::Compatibility);
    }
    Ok(())
}

/// Returns an author's text for use in a message: escaped into one line and shortened.
pub(super) fn quoted(text: &str) -> String {
    let mut line: String =
        text.chars().take(QUOTED_CHARS_MAX).flat_map(char::escape_debug).collect();
    if text.chars().nth(QUOTED_CHARS_MAX).is_some() {
        line.push('…');
    }
    line
}
