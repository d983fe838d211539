//! `[about]`: what a client may show of a plugin.

use serde::Deserialize;
use toml::Spanned;

/// Most icons.
const ICONS_MAX: usize = 8;
/// Longest address of an icon, in bytes. With `data:` the picture is in it.
const ICON_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AboutTable {
    /// Addresses of pictures. The host never fetches one.
    icons: Vec<Spanned<String>>,
}

impl AboutTable {
    /// The icons, or where something is wrong and what.
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
