//! Reasons of `ARG-39`, in one list so that their wording can be read together.

use crate::InvalidName;

/// Reason why a declaration is rejected, as the end of a sentence without its full stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Reason {
    #[error("{0}")]
    Name(#[from] InvalidName),
    #[error("the tool cannot be told from '{other}'")]
    NameTaken { other: String },
    #[error("the group is not a name of 1 to 64 characters from A-Z a-z 0-9 _ . -")]
    Group,
    #[error("the description is longer than {bytes_max} bytes")]
    DescriptionTooLong { bytes_max: usize },

    #[error("the schema is longer than {bytes_max} bytes")]
    TooLong { bytes_max: usize },
    #[error("the schema is nested deeper than {levels_max} levels")]
    TooDeep { levels_max: usize },
    #[error("the schema has more than {nodes_max} nodes when every `$ref` is followed")]
    TooManyNodes { nodes_max: usize },
    #[error("more than {steps_max} schemas apply to one value")]
    TooManyInPlace { steps_max: usize },
    #[error("its defaults take too much work to complete")]
    TooMuchWork,
    #[error("the text is not JSON, see byte {offset}")]
    NotJson { offset: usize },
    #[error("the key '{key}' occurs twice")]
    RepeatedKey { key: String },
    #[error("the number is out of range")]
    NumberRange,

    #[error("the top level must be an object schema")]
    NotAnObject,
    #[error("the value must be {expected}")]
    KeywordShape { expected: &'static str },
    #[error("the keyword is not supported")]
    Unsupported,
    #[error("`$id` is supported at the top level only")]
    NestedId,
    #[error("a parameter name must not be empty")]
    EmptyParameterName,
    #[error("there is no type '{found}'")]
    UnknownType { found: String },
    #[error("'{name}' is listed twice")]
    ListedTwice { name: String },
    #[error("'{name}' is not a declared property")]
    UndeclaredRequired { name: String },
    #[error("there must be at least one member")]
    EmptyEnum,
    #[error("the members must differ")]
    DuplicateMember,
    #[error("the schema's own `type` rejects the member {member}")]
    MemberType { member: String },
    #[error("the lower bound is above `{upper}`")]
    Bounds { upper: &'static str },
    #[error("the value must be greater than 0")]
    NotPositive,
    #[error("the pattern is not supported: {problem}")]
    Pattern { problem: String },

    #[error("references to other documents are not followed")]
    RemoteReference,
    #[error("there is nothing at '{target}'")]
    DanglingReference { target: String },
    #[error("the references form a cycle")]
    ReferenceCycle,

    #[error("the default does not decode by its own schema: {problem}")]
    Default { problem: String },
}
