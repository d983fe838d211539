use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

/// Checks which of `names` the pattern matches; names that it must not match have a leading `~`.
fn check(pattern: &str, names: &[&str]) {
    let glob = Glob::new(Some(pattern)).unwrap();
    for name in names {
        let (name, expected) = name.strip_prefix('~').map_or((*name, true), |name| (name, false));
        assert_eq!(glob.matches(name), expected, "{pattern:?} on {name:?}");
    }
}

fn check_refused(pattern: &str, expected: &str) {
    assert_eq!(Glob::new(Some(pattern)).unwrap_err().to_string(), expected);
}

#[test]
fn what_is_compared_is_file_24() {
    for everything in [None, Some(""), Some(" \t")] {
        assert!(Glob::new(everything).unwrap().matches("any/thing"));
    }
    check("a", &["a", "x/a", "~a/x"]);
    check(" a", &["~a", " a"]);
    check("x/a", &["x/a", "~y/x/a", "~a"]);
    check(r"x\*", &["x/a", "~a"]);
    check("/a", &["~a", "~x/a"]);
    check("a/", &["~a", "~a/b"]);
}

#[test]
fn wildcards_stay_within_a_segment() {
    check("a*c", &["ac", "abc", "abbc", "~ab", "~a/c", "x/abc"]);
    check("x/a?c", &["x/abc", "x/aéc", "~x/ac", "~x/a/c"]);
    check("*", &["a", ".hidden", "x/y"]);
    check("x/*", &["x/.a", "~x", "~x/y/z"]);
}

#[test]
fn two_stars_are_a_segment_of_their_own() {
    check("**", &["a", "a/b"]);
    check("a/**", &["a/b", "a/b/c", "~a", "~ab/c"]);
    check("**/a", &["a", "x/a", "x/y/a", "~xa", "~x/ya", "~a/x"]);
    check("a/**/b", &["a/b", "a/x/b", "a/x/y/b", "~ab", "~a/xb", "~a/b/c"]);
    check("a/**/b/**/c", &["a/b/c", "a/b/x/b/c", "~a/c"]);
    check("**/**/a", &["a", "x/a"]);
    check("x/a**b", &["x/ab", "x/acb", "~x/a/b"]);
    check("x/**b", &["x/ab", "x/b", "~x/a/b"]);
    check("x/b**", &["x/ba", "~x/b/a"]);
    check("x/***", &["x/a", "~x/a/b"]);
    check("**/", &["~a", "~a/b"]);
    check("{**,x}/a", &["a", "y/z/a", "x/a"]);
    check("x{/**,y}/a", &["x/a", "x/z/z/a", "xy/a", "~xz/a"]);
}

#[test]
fn sets_are_file_25() {
    check("[ab]", &["a", "b", "~c", "~ab"]);
    check("[a-c]", &["b", "~d", "~-"]);
    check("[a-]", &["a", "-", "~b"]);
    check("[-a]", &["a", "-"]);
    check("[!ab]", &["c", "!", "~a", "~"]);
    check("x/[!a]b", &["x/cb", "~x/ab", "~x//b"]);
    check("[]a]", &["]", "a"]);
    check("[!]a]", &["b", "~]", "~a"]);
    check("[]-a]", &["^", "~b"]);
    check("[^a]", &["a", "^", "~b"]);
    check("[c-a]", &["~a", "~b", "~c"]);
    check("[[]", &["["]);
    check("[*?]", &["*", "?", "~a"]);
    check("x[/]y", &["~x/y", "~xy"]);
}

#[test]
fn an_unclosed_set_or_brace_is_literal() {
    check("[", &["["]);
    check("[a", &["[a"]);
    check("[]", &["[]"]);
    check("[!]", &["[!]"]);
    check("{a", &["{a"]);
    check("{a,b", &["{a,b"]);
    check("{[}]", &["{}"]);
    check("a}", &["a}"]);
    check("{a{b", &["{a{b"]);
}

#[test]
fn braces_are_file_26() {
    check("{a,b}", &["a", "b", "~{a,b}", "~ab"]);
    check("x.{md,t?t,[0-9]*}", &["x.md", "x.txt", "x.7z", "~x.t"]);
    check("a{,b}", &["a", "ab"]);
    check("a{}b", &["ab"]);
    check("{a/b,c}/d", &["a/b/d", "c/d", "~a/d"]);
    check("{[,]a,b}", &[",a", "b", "~[a"]);
    check("{[{]}", &["{"]);
    for nested in ["{a,{b,c}}", "{{a}", "{a{b}"] {
        check_refused(nested, "Invalid glob pattern: braces must not be nested.");
    }
}

#[test]
fn case_and_length_are_file_27() {
    check("É*.MD", &["é.md", "ÉA.Md"]);
    check("[A-Z]", &["q", "~_"]);
    check("i", &["İ", "I"]);
    check("straße", &["~STRASSE"]);
    check(&"é".repeat(256), &[&"É".repeat(256)]);
    check_refused(
        &"é".repeat(257),
        "Glob pattern is too long (257 characters). Maximum supported length is 256 characters.",
    );
}

#[test]
fn no_pattern_takes_long() {
    let name = format!("{}/{}", "a".repeat(200), "a/".repeat(1900));
    let patterns = [
        "*a".repeat(128),
        "**/".repeat(80),
        "{a,aa,*}".repeat(32),
        "{*,**/}".repeat(36),
        "[".repeat(256),
        "{[a".repeat(85),
    ];
    let started = Instant::now();
    for pattern in patterns {
        let glob =
            Glob::new(Some(&format!("{}/", pattern.get(..250).unwrap_or(&pattern)))).unwrap();
        assert!(!glob.matches(&name));
    }
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

/// Slow implementation of the same rules: expands the braces, splits into segments, backtracks.
fn model(pattern: &str, name: &str) -> bool {
    fn expand(pattern: &str) -> Vec<String> {
        let Some((before, rest)) = pattern.split_once('{') else { return vec![pattern.to_owned()] };
        let Some((inside, after)) = rest.split_once('}') else { return vec![pattern.to_owned()] };
        inside.split(',').flat_map(|one| expand(&format!("{before}{one}{after}"))).collect()
    }
    fn segment(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            ([b'*', p @ ..], _) => {
                segment(p, name) || (!name.is_empty() && segment(pattern, &name[1..]))
            }
            ([b'?', p @ ..], [_, n @ ..]) => segment(p, n),
            ([x, p @ ..], [y, n @ ..]) => x == y && segment(p, n),
            _ => false,
        }
    }
    fn path(pattern: &[&str], name: &[&str]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            (["**"], _) => !name.is_empty(),
            (["**", p @ ..], _) => path(p, name) || (!name.is_empty() && path(pattern, &name[1..])),
            ([x, p @ ..], [y, n @ ..]) => segment(x.as_bytes(), y.as_bytes()) && path(p, n),
            _ => false,
        }
    }
    let name = if pattern.contains('/') { name } else { name.rsplit('/').next().unwrap() };
    let name: Vec<&str> = name.split('/').collect();
    expand(pattern).iter().any(|pattern| path(&pattern.split('/').collect::<Vec<_>>(), &name))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn the_machine_agrees_with_the_slow_model(
        pattern in r"(a|b|\*|\*\*|/|/\*\*/|\?|\{(a|\*|/|b){0,3},(a|/|\*\*){0,2}\}){1,6}",
        name in r"[ab]{1,2}(/[ab]{1,2}){0,3}",
    ) {
        prop_assert_eq!(Glob::new(Some(&pattern)).unwrap().matches(&name), model(&pattern, &name));
    }
}
