//! Sends too much: in results, in the log, in progress.

use std::io::Write as _;

use cofferdam_test_programs::{Blob, Content};
use wasip2::cli::stdout::get_stdout;

use crate::cofferdam::plugin::call;

pub fn attack(name: &str) -> Option<Vec<Content>> {
    match name {
        "half_a_million_empty_texts" => {
            return Some((0..500_000).map(|_| Content::Text(String::new())).collect());
        }
        "two_hundred_thousand_numbers" => {
            return Some((0..200_000).map(|_| Content::Json("0".to_owned())).collect());
        }
        "a_media_type_of_two_mebibytes" => {
            return Some(vec![Content::Blob(Blob {
                media_type: "x".repeat(2 << 20),
                data: vec![],
            })]);
        }
        "json_that_is_86_times_as_large_in_memory" => {
            let objects = r#"{"a":0},"#.repeat(131_000);
            return Some(vec![Content::Json(format!("[{objects}0]"))]);
        }
        "print_for_ever" => loop {
            eprintln!("{}", "x".repeat(4000));
        },
        "print_a_byte_at_a_time" => {
            let mut stdout = std::io::stdout();
            for _ in 0..20_000 {
                let _ = stdout.write_all(b"\n").and_then(|()| stdout.flush());
            }
        }
        "write_more_than_was_allowed" => {
            let stdout = get_stdout();
            let allowed = stdout.check_write().unwrap_or(0);
            let _ = stdout.write(&vec![b'x'; allowed as usize + 1]);
        }
        "write_sixteen_mebibytes_at_once" => {
            let _ = get_stdout().write(&vec![b'x'; 16 << 20]);
        }
        "write_zeroes_without_bound" => {
            let stdout = get_stdout();
            return super::text(format!("{:?}", stdout.write_zeroes(u64::MAX).is_ok()));
        }
        "splice_for_ever" => {
            let stdin = wasip2::cli::stdin::get_stdin();
            let stdout = get_stdout();
            let moved = stdout.blocking_splice(&stdin, u64::MAX);
            return super::text(format!("{:?}", moved.map_err(|_| "closed")));
        }
        "report_progress_without_pause" => {
            for n in 0..200_000 {
                call::progress(f64::from(n), Some(f64::NAN), Some("on the way"));
            }
        }
        "report_progress_of_sixteen_mebibytes" => {
            let message = "x".repeat(16 << 20);
            for _ in 0..3 {
                call::progress(f64::INFINITY, None, Some(&message));
            }
        }
        _ => return None,
    }
    super::text("came back")
}
