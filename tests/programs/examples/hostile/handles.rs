//! Hoards all handles that the host gives out.

use std::fs::File;

use cofferdam_test_programs::Content;
use wasip2::cli::{stderr, stdin, stdout};
use wasip2::clocks::monotonic_clock::subscribe_duration;
use wasip2::filesystem::preopens::get_directories;

/// Far more than any limit on handles.
const MANY: usize = 5_000;

pub fn attack(name: &str) -> Option<Vec<Content>> {
    match name {
        "hoard_pollables" => hoard(|| subscribe_duration(u64::MAX)),
        "hoard_output_streams" => hoard(stdout::get_stdout),
        "hoard_error_streams" => hoard(stderr::get_stderr),
        "hoard_input_streams" => hoard(stdin::get_stdin),
        "hoard_files" => hoard(|| File::open("/data/file.txt")),
        "hoard_listings" => hoard(|| std::fs::read_dir("/data")),
        "hoard_directories" => hoard(get_directories),
        _ => return None,
    }
    super::text("came back")
}

fn hoard<T>(take: impl Fn() -> T) {
    let held: Vec<T> = (0..MANY).map(|_| take()).collect();
    std::hint::black_box(&held);
}
