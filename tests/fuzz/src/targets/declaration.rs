//! Any string as a declaration: it is refused, or it has a form in every dialect and decodes `{}`.

use cofferdam_tool::schema::Dialect;
use cofferdam_tool::{DecodeOptions, InputSchema};

/// Compiles the string as the parameters of a tool.
pub(crate) fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let one = InputSchema::compile("t", text);
    match InputSchema::compile_or_explain("t", text) {
        Ok(schema) => {
            assert!(one.is_ok());
            for dialect in Dialect::ALL {
                let shown = schema.in_dialect(dialect);
                assert_eq!(shown.schema["type"], "object");
                assert!(shown.schema.to_string().len() < 4 << 20, "{dialect} is out of bounds");
            }
            let _ = schema.decode("t", Some(b"{}"), &DecodeOptions::default());
        }
        Err(refusals) => assert_eq!(one.err().as_ref(), refusals.first()),
    }
}
