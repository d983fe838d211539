//! Shape of a WIT type in JSON. Schema, lowering and lifting are three walks over the same tree, so
//! they cannot disagree about the types.

/// Shape of a value, as a tree: types that are used twice appear twice, within the limits of the
/// code that builds it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ValueShape {
    Bool,
    Integer(Integer),
    Float32,
    Float64,
    Char,
    Text,
    /// Binary data: `list<u8>`.
    Bytes,
    List(Box<ValueShape>),
    Record(Vec<Field>),
    Tuple(Vec<ValueShape>),
    Variant(Vec<VariantCase>),
    Enum(Vec<String>),
    Flags(Vec<String>),
    Option(Box<ValueShape>),
    Result {
        ok: Option<Box<ValueShape>>,
        error: Option<Box<ValueShape>>,
    },
}

/// Integer types, each with its own range.
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

/// Field of a record, or parameter of a function.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    /// Name in WIT.
    pub(crate) name: String,
    /// Name in JSON.
    pub(crate) key: String,
    pub(crate) shape: ValueShape,
}

/// Case of a variant.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VariantCase {
    pub(crate) name: String,
    pub(crate) payload: Option<ValueShape>,
}

impl ValueShape {
    /// Returns true if null is a value of this shape. An option around such a shape wraps its
    /// value, or `none` and `some(none)` would look the same.
    pub(crate) fn accepts_null(&self) -> bool {
        matches!(self, Self::Option(_))
    }
}

/// Returns true if no case has a payload: such a variant is written like an enum.
pub(crate) fn is_flat(cases: &[VariantCase]) -> bool {
    cases.iter().all(|case| case.payload.is_none())
}
