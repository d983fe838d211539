//! A WIT type as far as JSON is concerned. Schema, lowering and lifting are three walks over the
//! same tree, so they cannot disagree about which types there are.

/// The form of a value. A tree: what is used twice is written twice, within the limits of the one
/// who builds it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    Bool,
    Integer(Integer),
    Float32,
    Float64,
    Char,
    Text,
    /// `list<u8>`
    Bytes,
    List(Box<Shape>),
    Record(Vec<Field>),
    Tuple(Vec<Shape>),
    Variant(Vec<Case>),
    Enum(Vec<String>),
    Flags(Vec<String>),
    Option(Box<Shape>),
    Result {
        ok: Option<Box<Shape>>,
        error: Option<Box<Shape>>,
    },
}

/// The integer types, each with a range of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Integer {
    S8,
    U8,
    S16,
    U16,
    S32,
    U32,
    S64,
    U64,
}

/// A field of a record, or a parameter of a function.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    /// The name in WIT.
    pub(crate) name: String,
    /// The name in JSON.
    pub(crate) key: String,
    pub(crate) shape: Shape,
}

/// A case of a variant.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) payload: Option<Shape>,
}

impl Shape {
    /// Returns true if null is a value of this form. An option around such a form wraps its value,
    /// or `none` and `some(none)` would look the same.
    pub(crate) fn accepts_null(&self) -> bool {
        matches!(self, Self::Option(_))
    }
}

/// Returns true if no case has a value: such a variant is written like an enum.
pub(crate) fn is_flat(cases: &[Case]) -> bool {
    cases.iter().all(|case| case.payload.is_none())
}
