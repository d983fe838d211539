//! `[about]`: what a client may show of a plugin.

use serde::Deserialize;
use toml::Spanned;

/// Maximum number of icons.
const ICONS_MAX: usize = 8;
/// Maximum length of an icon's address, in bytes. A `data:` address contains the image.
const ICON_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AboutTable {
    /// Addresses of icons. The host never fetches them.
    icons: Vec<Spanned<String>>,
}

impl AboutTable {
    /// Returns the icons, or the position and message of an error.
    pub(super) fn icons(self) -> Result<Vec<String>, (usize, String)> {
        if let Some(more) = self.icons.get(ICONS_MAX) {
            return Err((more.span().start, format!("a plugin has at most {ICONS_MAX} icons")));
        }
        for icon in &self.icons {
            let address = icon.get_ref();
            let is_picture = address.starts_with("data:image/") || address.starts_with("https://");
            if !is_picture || address.chars().any(char::is_control) {
                let message = "an icon is an address that begins with `https://` or `data:image/`";
                return Err((icon.span().start, message.to_owned()));
            }
            if address.len() > ICON_BYTES_MAX {
                return Err((
                    icon.span().start,
                    format!("an icon's address has at most {ICON_BYTES_MAX} bytes"),
                ));
            }
        }
        Ok(self.icons.into_iter().map(Spanned::into_inner).collect())
    }
}
