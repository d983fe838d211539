//! Rules of each dialect.

/// Treatment of a `$ref` that has other keywords beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Siblings {
    /// Siblings stay beside the reference, as 2020-12 allows.
    Beside,
    /// The reference goes into an `allOf`, because draft-07 ignores keywords beside `$ref`.
    InAllOf,
    /// The reference goes into an `anyOf` of one, because strict modes have no `allOf`.
    InAnyOf,
}

/// Rules of a conversion.
#[derive(Debug)]
pub(super) struct Rules {
    /// True if targets of references are copied where they are used, unless they contain
    /// themselves.
    pub(super) inlines: bool,
    /// True if combinators at the top level are merged into its properties. Otherwise they are
    /// dropped.
    pub(super) merges_top_level: bool,
    pub(super) siblings: Siblings,
    /// True if `allOf` is merged into the schema around it, at every level.
    pub(super) flattens: bool,
    /// True if every object is closed, every schema has a type, and so on, as strict modes require.
    pub(super) is_strict: bool,
    /// True if every property is in `required`, and optional ones accept null.
    pub(super) requires_all: bool,
    /// True if a schema may contain itself.
    pub(super) recursion: bool,
    /// Largest `minItems`, if it is limited.
    pub(super) min_items_max: Option<u64>,
    /// Supported keywords; `None` for all of 2020-12.
    pub(super) keywords: Option<&'static [&'static str]>,
    /// Supported formats; `None` for any.
    pub(super) formats: Option<&'static [&'static str]>,
    /// True if number formats, which validators do not know, become bounds.
    pub(super) bounds_numbers: bool,
}

/// 2020-12 with a plain top level: the form that the OpenAI and Anthropic APIs accept without
/// strict mode.
pub(super) const LOOSE: Rules = Rules {
    inlines: false,
    merges_top_level: true,
    siblings: Siblings::Beside,
    flattens: false,
    is_strict: false,
    requires_all: false,
    recursion: true,
    min_items_max: None,
    keywords: None,
    formats: None,
    bounds_numbers: false,
};

/// Formats that validators of JSON Schema know. Validators warn about others, or reject the schema.
pub(super) const JSON_SCHEMA_FORMATS: &[&str] = &[
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// [`LOOSE`] for schemas whose top level is too large to be merged.
pub(super) const LOOSE_BARE: Rules = Rules { merges_top_level: false, ..LOOSE };

/// The common part of draft-07 and 2020-12.
pub(super) const PORTABLE: Rules = Rules {
    inlines: true,
    siblings: Siblings::InAllOf,
    keywords: Some(&[
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "contains",
        "default",
        "else",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "if",
        "items",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "not",
        "oneOf",
        "pattern",
        "patternProperties",
        "properties",
        "propertyNames",
        "required",
        "then",
        "type",
        "uniqueItems",
    ]),
    formats: Some(JSON_SCHEMA_FORMATS),
    bounds_numbers: true,
    ..LOOSE
};

/// [`PORTABLE`] for schemas that become too large when references are resolved.
pub(super) const PORTABLE_BY_REFERENCE: Rules = Rules { inlines: false, ..PORTABLE };

/// [`PORTABLE_BY_REFERENCE`] for schemas whose top level is too large to be merged.
pub(super) const PORTABLE_BARE: Rules = Rules { merges_top_level: false, ..PORTABLE_BY_REFERENCE };

/// <https://platform.openai.com/docs/guides/structured-outputs#supported-schemas>
pub(super) const OPENAI_STRICT: Rules = Rules {
    siblings: Siblings::InAnyOf,
    flattens: true,
    is_strict: true,
    requires_all: true,
    keywords: Some(&[
        "additionalProperties",
        "anyOf",
        "const",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "items",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
        "multipleOf",
        "pattern",
        "properties",
        "required",
        "type",
    ]),
    formats: Some(&[
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "uuid",
    ]),
    ..LOOSE
};

/// The form that Anthropic's SDK sends in strict mode.
pub(super) const ANTHROPIC: Rules = Rules {
    siblings: Siblings::InAnyOf,
    flattens: true,
    is_strict: true,
    recursion: false,
    min_items_max: Some(1),
    keywords: Some(&[
        "additionalProperties",
        "anyOf",
        "const",
        "enum",
        "format",
        "items",
        "minItems",
        "properties",
        "required",
        "type",
    ]),
    formats: Some(&[
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "uri",
        "ipv4",
        "ipv6",
        "uuid",
    ]),
    ..LOOSE
};

impl Rules {
    pub(super) fn supports(&self, keyword: &str) -> bool {
        self.keywords.is_none_or(|keywords| keywords.contains(&keyword))
    }

    pub(super) fn knows_format(&self, format: &str) -> bool {
        self.formats.is_none_or(|formats| formats.contains(&format))
    }
}
