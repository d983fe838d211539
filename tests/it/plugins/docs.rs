//! The pages for authors: every command in them runs as written and prints the output on the page.
//!
//! In a block marked `console`, a line that begins with `$ ` is a command, and the lines below it
//! are parts of its output; `…` matches anything. A block below a line that ends in a file name in
//! backticks and a colon is the content of that file. All commands of a page run in one shell that
//! starts in an empty directory.

use std::fs;
use std::path::Path;
use std::process::Command;

use cofferdam_tests::{binary, root};

use super::{built, run};

/// Action of a reader of a page.
#[derive(Debug)]
enum Act {
    Types { command: String, expects: Vec<String> },
    Writes { file: String, text: String },
}

fn acts(page: &str) -> Vec<Act> {
    let mut acts = Vec::new();
    let mut lines = page.lines();
    let mut file = None;
    while let Some(line) = lines.next() {
        if let Some(kind) = line.strip_prefix("```") {
            let block: Vec<_> =
                lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
            if kind == "console" {
                for line in block {
                    match (line.strip_prefix("$ "), acts.last_mut()) {
                        (Some(command), _) => {
                            acts.push(Act::Types {
                                command: command.to_owned(),
                                expects: Vec::new(),
                            });
                        }
                        (None, Some(Act::Types { expects, .. })) => expects.push(line.to_owned()),
                        (None, _) => panic!("output without a command: {line}"),
                    }
                }
            } else if let Some(file) = file.take() {
                acts.push(Act::Writes { file, text: block.join("\n") + "\n" });
            }
        } else if !line.trim().is_empty() {
            let named = line.strip_suffix("`:").and_then(|line| line.rsplit('`').next());
            file = named.map(str::to_owned);
        }
    }
    acts
}

/// Returns whether the parts between `…` occur in `printed`, in order.
fn is_printed(expected: &str, printed: &str) -> bool {
    let mut rest = printed;
    expected.split('…').map(str::trim).all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

fn follow(page: &str) {
    let text = fs::read_to_string(root().join("docs/authors").join(format!("{page}.md"))).unwrap();
    let acts = acts(&text);
    assert!(acts.len() >= 6, "{page}.md has hardly any commands: {acts:?}");
    let root = tempfile::tempdir().unwrap();
    let folder = binary();
    let folder = folder.parent().unwrap().to_str().unwrap();
    // Directory of the shell after each command.
    let mut here = root.path().to_owned();
    for act in acts {
        match act {
            Act::Writes { file, text } => {
                let file = here.join(file);
                assert!(
                    file.parent().is_some_and(Path::is_dir),
                    "{page}: {} has no folder",
                    file.display()
                );
                fs::write(file, text).unwrap();
            }
            Act::Types { command, expects } => {
                let script = format!(
                    "export PATH=\"{folder}:$PATH\"\n{command}\ncode=$?\npwd > '{0}/.here'\nexit \
                     $code",
                    root.path().display()
                );
                let ended = run(Command::new("bash").args(["-c", &script]).current_dir(&here));
                let printed = ended.stdout + &ended.stderr;
                assert!(
                    ended.code <= 1,
                    "{page}: `{command}` ended with {}: {printed}",
                    ended.code
                );
                for expected in expects {
                    assert!(
                        is_printed(&expected, &printed),
                        "{page}: `{command}` should print\n{expected}\nand printed\n{printed}"
                    );
                }
                here = fs::read_to_string(root.path().join(".here")).unwrap().trim().into();
            }
        }
    }
}

macro_rules! pages {
    ($($page:ident),+) => {$(
        #[test]
        fn $page() {
            if built(concat!("conformance_", stringify!($page))).is_some() {
                follow(stringify!($page));
            }
        }
    )+};
}

pages!(rust, python, javascript, go, c, cpp, zig);
