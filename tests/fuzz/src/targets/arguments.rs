//! Any string as the arguments of tools: decoding ends, and a decoded value decodes by the same
//! schema.

use std::sync::LazyLock;

use cofferdam_tool::{DecodeOptions, InputSchema};

const SCHEMAS: [&str; 4] = [
    r#"{"properties":{"s":{"type":"string","pattern":"^[a-z]*$"},"i":{"type":"integer","default":1},"n":{"type":"number"}},"required":["s"]}"#,
    r##"{"properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"anyOf":[{"type":"object","properties":{"n":{"$ref":"#/$defs/n"},"d":{"type":"string","format":"duration"}}},{"type":"array","items":{"$ref":"#/$defs/n"}},{"type":"boolean"}]}}}"##,
    r#"{"additionalProperties":{"type":["integer","string"],"format":"date-time"},"properties":{"t":{"type":"string","format":"time"}}}"#,
    r#"{"properties":{"e":{"enum":["A","b",null]},"u":{"type":"string","format":"uuid"},"p":{"type":"array","prefixItems":[{"type":"integer","format":"int8"}],"uniqueItems":true}},"additionalProperties":false}"#,
];

static COMPILED: LazyLock<Vec<InputSchema>> = LazyLock::new(|| {
    SCHEMAS
        .iter()
        .map(|text| InputSchema::compile("t", text).expect("the schemas are constants"))
        .collect()
});

/// Decodes `text` with each schema, tolerantly and strictly.
pub(crate) fn check(text: &[u8]) {
    for schema in COMPILED.iter() {
        let tolerant = schema.decode("t", Some(text), &DecodeOptions::default());
        let strict = DecodeOptions { strict: true, ..DecodeOptions::default() };
        let strict = schema.decode("t", Some(text), &strict);
        assert!(tolerant.is_ok() || strict.is_err(), "strictness only refuses more");
        if let Ok(arguments) = tolerant {
            let again =
                schema.decode("t", Some(arguments.to_json().as_bytes()), &DecodeOptions::default());
            assert!(again.is_ok(), "a decoded value decodes");
        }
    }
}
