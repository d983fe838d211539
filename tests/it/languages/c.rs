//! Functions that only C has.

use cofferdam_files::Quota;

use super::{C, cases};

#[tokio::test]
async fn stdio_reads_formatted_and_gives_characters_back() {
    for case in cases(C, Quota::default()).await {
        case.check(&[
            ("open w+ /data/numbers", "0"),
            ("put 0 40\t2\nrest", "done"),
            ("seek 0 0 start", "0"),
            ("scan 0", "42"),
            ("seek 0 5 start", "5"),
            ("peek 0", "r at 5"),
            ("get 0 9", "rest"),
        ])
        .await;
        assert_eq!(case.shown().await, "numbers=40\t2\nrest", "{}", case.name);
    }
}

#[tokio::test]
async fn appending_streams_read_from_where_they_are_and_write_to_the_end() {
    for case in cases(C, Quota::default()).await {
        case.check(&[
            ("open w /data/a", "0"),
            ("put 0 one", "done"),
            ("close 0", "done"),
            ("open a+ /data/a", "1"),
            ("get 1 2", "on"),
            ("seek 1 0 start", "0"),
            ("put 1 -two", "done"),
            ("seek 1 2 start", "2"),
            ("get 1 99", "e-two"),
        ])
        .await;
        assert_eq!(case.shown().await, "a=one-two", "{}", case.name);
    }
}

#[tokio::test]
async fn a_directory_opens_for_reading_and_is_removed_like_a_file() {
    for case in cases(C, Quota::default()).await {
        case.check(&[
            ("make /data/d", "done"),
            ("open r /data/d", "0"),
            ("get 0 1", "EBADF"),
            ("remove /data/d", "done"),
            ("remove /data/d", "ENOENT"),
            ("list /", "ENOTCAPABLE"),
            ("open r /etc/passwd", "ENOTCAPABLE"),
            ("open r ../../etc/passwd", "ENOTCAPABLE"),
        ])
        .await;
    }
}
