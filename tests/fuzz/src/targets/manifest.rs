//! Any string as the manifest of a plugin, and any bytes as the component around it.

use cofferdam_engine::manifest::{EmbedError, embed_manifest};

/// The smallest component.
const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

/// Embeds the bytes as a manifest, and a manifest into the bytes.
pub(crate) fn check(bytes: &[u8]) {
    let _ = embed_manifest(bytes, "");
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match embed_manifest(COMPONENT, text) {
        Ok(component) => {
            let again = embed_manifest(&component, text);
            assert_eq!(again, Err(EmbedError::Present), "an embedded manifest is found again");
        }
        Err(error) => {
            assert_eq!(error.to_string().lines().count(), 1, "a message is one line: {error:?}")
        }
    }
}
