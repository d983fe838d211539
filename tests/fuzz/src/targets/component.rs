//! Any bytes as a component: the screen refuses them or describes them, and the result does not
//! depend on the run.

use cofferdam_engine::screen::ScreenLimits;
use cofferdam_engine::testing::screen;

/// Screens the bytes, and bytes that start like a component.
pub(crate) fn check(bytes: &[u8]) {
    let limits = ScreenLimits::default();
    assert_eq!(
        screen(bytes, &limits),
        screen(bytes, &limits),
        "the same bytes have the same result"
    );
    if !bytes.starts_with(b"\0asm") {
        let _ = screen(&[b"\0asm\x0d\0\x01\0", bytes].concat(), &limits);
    }
}
