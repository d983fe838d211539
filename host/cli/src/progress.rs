//! Progress of long work, in the last line of a terminal. Nothing is drawn elsewhere.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::{Mutex, MutexGuard};

use crate::{ask, print};

/// Bar that is on the screen.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);
/// Positions of a bar from empty to full.
const POSITIONS: u32 = 1000;
/// Time between two frames while nothing is reported.
const FRAME: Duration = Duration::from_millis(100);

/// Shows work with the share of it that is done, from 0 to 1, if that is known. Returns false if
/// nothing can be shown: standard error is not a terminal, or a question is on the screen.
pub(crate) fn show(label: &str, share: Option<f64>) -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    if is_dumb || !std::io::stderr().is_terminal() || ask::is_asking() {
        return false;
    }
    let mut shown = bar();
    let bar = shown.get_or_insert_with(|| {
        let bar = ProgressBar::new(u64::from(POSITIONS));
        bar.enable_steady_tick(FRAME);
        bar
    });
    let template = match share {
        Some(_) => "{bar:24} {percent:>3} %  {wide_msg}",
        None => "{spinner} {elapsed}  {wide_msg}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    if let Some(share) = share {
        bar.set_position(position(share));
    }
    bar.set_message(print::printable(label).replace('\n', " "));
    true
}

/// Removes the bar from the screen.
pub(crate) fn clear() {
    if let Some(bar) = bar().take() {
        bar.finish_and_clear();
    }
}

/// Writes other output above the bar.
pub(crate) fn write_above<T>(write: impl FnOnce() -> T) -> T {
    match &*bar() {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the share is between 0 and 1"
)]
fn position(share: f64) -> u64 {
    // Not a number becomes 0.
    (share.clamp(0.0, 1.0) * f64::from(POSITIONS)) as u64
}

fn bar() -> MutexGuard<'static, Option<ProgressBar>> {
    BAR.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_has_a_position() {
        for (share, expected) in
            [(0.5, 500), (-1.0, 0), (7.0, 1000), (f64::NAN, 0), (f64::INFINITY, 1000)]
        {
            assert_eq!(position(share), expected, "{share}");
        }
    }
}
