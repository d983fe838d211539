//! Structural screen for fuzz targets, without an engine.

use crate::screen;
use crate::screen::{ScreenError, ScreenLimits};

/// Screens `bytes` and returns the names of the component's imports.
///
/// # Errors
/// The reason why the bytes are rejected.
pub fn screen(bytes: &[u8], limits: &ScreenLimits) -> Result<Vec<String>, ScreenError> {
    screen::screen(bytes, limits).map(|screened| screened.imports)
}
