//! Runs one target under libFuzzer. `cargo xtask fuzz` builds it with coverage and starts it.
#![no_main]
#![expect(clippy::expect_used, reason = "a wrong start ends the program")]

use std::panic;
use std::sync::OnceLock;

use cofferdam_fuzz::{TARGET_VARIABLE, Target};
use libfuzzer_sys::fuzz_target;

static TARGET: OnceLock<&Target> = OnceLock::new();

fuzz_target!(
    init: {
        let name = std::env::var(TARGET_VARIABLE).expect("`cargo xtask fuzz` names a target");
        TARGET.get_or_init(|| cofferdam_fuzz::find(&name).expect("the target exists"));
        // libFuzzer's hook ends the program at each panic. Panics that the host catches are not
        // findings.
        let _ = panic::take_hook();
    },
    |bytes: &[u8]| {
        if let Some(target) = TARGET.get() {
            (target.check)(bytes);
        }
    }
);
