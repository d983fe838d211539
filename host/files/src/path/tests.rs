use super::*;

fn check_file(text: &str, expected: Result<&str, &str>) {
    let found =
        StorePath::file(text).map(|path| path.to_string()).map_err(|error| error.to_string());
    assert_eq!(found.as_deref().map_err(String::as_str), expected, "{text:?}");
}

fn check_directory(text: &str, expected: Result<&str, &str>) {
    let found =
        StorePath::directory(text).map(|path| path.to_string()).map_err(|error| error.to_string());
    assert_eq!(found.as_deref().map_err(String::as_str), expected, "{text:?}");
}

/// Checks that the file path `text` is refused with `reason`, and quoted unchanged.
fn check_refused(text: &str, reason: &str) {
    check_file(text, Err(&format!("Invalid path: '{text}'. {reason}")));
}

const RELATIVE: &str = r"Paths must be relative and must not start with '/', '\', or a drive root.";
const DOTS: &str = "Paths must not contain '.' or '..' segments.";
const TRAILING: &str = "Path segments must not end with a dot or a space.";

#[test]
fn normalisation_is_file_1() {
    check_file(r" a\\b//c/\d.txt ", Ok("a/b/c/d.txt"));
    check_file("\u{3000}a b\u{85}", Ok("a b"));
    check_file("d/ a", Ok("d/ a"));
}

#[test]
fn blank_and_trailing_separators_are_file_2() {
    for blank in ["", " ", "\t\n"] {
        check_file(blank, Err("A file path must not be empty or whitespace-only."));
    }
    for trailing in ["a/", r"a\", "/", "..//", "c:/"] {
        check_refused(trailing, "A file path must not end with a path separator.");
    }
}

#[test]
fn absolute_paths_are_file_3() {
    for text in ["/a", r"\a", r"\\server\share", "c:", "c:x", "é:/x", "字:x", "/../a", "c:/.."] {
        check_refused(text, RELATIVE);
    }
    // A digit, a mark, a letter-like number and two letters are not a drive.
    for text in ["1:x", "\u{301}:x", "Ⅷ:x", "Ⓐ:x", "ab:x"] {
        check_refused(text, "Paths must not contain ':'.");
    }
}

#[test]
fn dot_segments_are_file_4() {
    for text in [".", "..", "a/..", r"a\.\b", "a\u{1}/..", "con/.."] {
        check_file(text, Err(&format!("Invalid path: '{}'. {DOTS}", quoted(text))));
    }
    check_file("..a/b..c/.d", Ok("..a/b..c/.d"));
}

#[test]
fn length_controls_and_colons_are_file_5_in_this_order() {
    let long = vec!["a".repeat(200); 21].join("/");
    let cut = format!("{}…", "a".repeat(200));
    let too_long = format!("Invalid path: '{cut}'. A path must not be longer than 4096 bytes.");
    check_file(&long, Err(&too_long));
    check_file(&format!("{long}\u{1}:"), Err(&too_long));
    let longest =
        format!("{}/{}", vec!["a".repeat(200); 20].join("/"), "a".repeat(4096 - 20 * 201));
    check_file(&longest, Ok(&longest));
    check_file(
        "a\u{1f}:",
        Err(r"Invalid path: 'a\u001f:'. Paths must not contain control characters."),
    );
    check_file("a\u{9b}b", Ok("a\u{9b}b"));
    check_refused("con/ab:c", "Paths must not contain ':'.");
}

#[test]
fn segments_are_file_6_from_the_left() {
    for text in ["a.", "a. ./b", "a/b./con", "con.", "...", "a /b"] {
        check_refused(text, TRAILING);
    }
    check_refused("con/b.", "'con' is a reserved device name.");
    for device in [
        "CON",
        "Prn.txt",
        "aux.a.b",
        "nul",
        "conin$",
        "CONOUT$.x",
        "com1",
        "LPT9",
        "COM².log",
        "nul .txt",
    ] {
        check_refused(device, &format!("'{device}' is a reserved device name."));
    }
    for name in ["com0", "com10", "com", "lpt⁴", "conin", "xcon", "con-1", "com١"] {
        check_file(name, Ok(name));
    }
    let long = "é".repeat(128);
    check_refused(
        &format!("{long}/.~cofferdam"),
        "A path segment must not be longer than 255 bytes.",
    );
    check_refused("a/.~cofferdam.tmp", "'.~cofferdam.tmp' is a reserved name.");
    check_file(".~COFFERDAM", Ok(".~COFFERDAM"));
}

#[test]
fn directories_are_file_7() {
    for (text, path) in [("", ""), (" \t", ""), ("d/", "d"), (r"d/\/ ", "d"), (r"a\b\", "a/b")] {
        check_directory(text, Ok(path));
    }
    for text in ["/", r"\", "a:", "//"] {
        check_directory(text, Err(&format!("Invalid path: '{text}'. {RELATIVE}")));
    }
    check_directory("./", Err(&format!("Invalid path: './'. {DOTS}")));
}

#[test]
fn quotations_are_escaped_and_cut_as_in_file_9() {
    check_file(
        " a\nb\rc\td\0e ",
        Err(r"Invalid path: 'a\nb\rc\td\u0000e'. Paths must not contain control characters."),
    );
    assert_eq!(quoted(&"é".repeat(200)), "é".repeat(200));
    assert_eq!(quoted(&"é".repeat(201)), format!("{}…", "é".repeat(200)));
    assert_eq!(quoted("'\u{7f}'\u{80}"), "'\\u007f'\u{80}");
}

#[test]
fn children_are_paths_that_a_text_can_denote() {
    let root = StorePath::ROOT;
    let directory = root.child("d").unwrap();
    assert_eq!(directory.child(" a").unwrap().as_str(), "d/ a");
    for name in
        ["", " a", "a ", ".", "..", "a/b", r"a\b", "a:b", "CON", "a.", ".~cofferdam-1", "a\n"]
    {
        assert!(root.child(name).is_err(), "{name:?}");
    }
    assert!(directory.child("a\u{3000}").is_err());
    assert!(directory.child("").is_err());
}

#[test]
fn parts_of_a_path() {
    let path = StorePath::file("a/b/c").unwrap();
    let names = |paths: Vec<StorePath>| paths.iter().map(StorePath::to_string).collect::<Vec<_>>();
    assert_eq!(names(path.ancestors().collect()), ["a/b", "a"]);
    assert_eq!((path.depth(), path.name()), (3, "c"));
    assert_eq!(path.split(), Some((StorePath::file("a/b").unwrap(), "c")));
    assert_eq!(path.below(&StorePath::file("a").unwrap()), Some("b/c"));
    assert_eq!(path.below(&StorePath::ROOT), Some("a/b/c"));
    assert_eq!(StorePath::file("ab").unwrap().below(&StorePath::file("a").unwrap()), None);
    assert_eq!(
        (StorePath::ROOT.depth(), StorePath::ROOT.name(), StorePath::ROOT.split()),
        (0, "", None)
    );
}
