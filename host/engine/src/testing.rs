//! The screen for fuzz targets, which takes bytes without an engine.

use crate::screen;
use crate::screen::{ScreenError, ScreenLimits};

/// Screens `bytes` and returns the names of their imports.
///
/// # Errors
/// The reason why the bytes are refused.
pub fn screen(bytes: &[u8], limits: &ScreenLimits) -> Result<Vec<String>, ScreenError> {
    screen::screen(bytes, limits).map(|screened| screened.imports)
}
