//! Runs the tests of SDKs and sample tools in other languages, with the test tools of these
//! languages. Skips languages whose toolchain is missing.

use anyhow::Context;

use crate::packages::text;
use crate::run::{command, root, section};
use crate::toolchains::{Toolchain, path};

/// Test command of one language.
struct Tests {
    toolchain: Toolchain,
    folder: &'static str,
    command: &'static [&'static str],
}

const UNITTEST: &[&str] = &[
    "python3",
    "-m",
    "unittest",
    "discover",
    "--start-directory",
    "tests",
    "--top-level-directory",
    ".",
];

const TESTS: &[Tests] = &[
    Tests { toolchain: Toolchain::Python, folder: "guest-sdk/python", command: UNITTEST },
    Tests { toolchain: Toolchain::Python, folder: "guest-sdk/code/python", command: UNITTEST },
    Tests {
        toolchain: Toolchain::Node,
        folder: "guest-sdk/javascript",
        command: &["node", "--test"],
    },
    Tests {
        toolchain: Toolchain::Node,
        folder: "sample-tools/javascript/jsonata",
        command: &["npm", "test", "--silent"],
    },
    Tests {
        toolchain: Toolchain::Node,
        folder: "sample-tools/javascript/template",
        command: &["npm", "test", "--silent"],
    },
    Tests {
        toolchain: Toolchain::Node,
        folder: "sample-tools/javascript/template",
        command: &["npm", "run", "check", "--silent"],
    },
    Tests { toolchain: Toolchain::Go, folder: "guest-sdk/go", command: &["go", "test", "./..."] },
    Tests {
        toolchain: Toolchain::Go,
        folder: "sample-tools/go/archive",
        command: &["go", "test", "./..."],
    },
    Tests {
        toolchain: Toolchain::Go,
        folder: "sample-tools/go/inspect",
        command: &["go", "test", "./..."],
    },
    Tests { toolchain: Toolchain::Clang, folder: "guest-sdk/c/tests", command: &["make"] },
    Tests {
        toolchain: Toolchain::Zig,
        folder: "guest-sdk/zig/tests",
        command: &["python-zig", "build", "test"],
    },
    Tests {
        toolchain: Toolchain::Clang,
        folder: "sample-tools/cpp/image",
        command: &["make", "test"],
    },
];

/// Runs all test commands whose toolchain is installed.
pub(crate) fn test() -> anyhow::Result<()> {
    let path = path();
    let path = path.to_str().context("the PATH is not UTF-8")?;
    let sdk = root().join("guest-sdk/python");
    let sdk = text(&sdk)?;
    for tests in TESTS {
        if !tests.toolchain.is_installed() {
            continue;
        }
        section(&format!("testing {} with {}", tests.folder, tests.command.join(" ")));
        let (program, arguments) =
            tests.command.split_first().context("a command has a program")?;
        command(program, arguments)
            .env("PATH", path)
            // Of the interpreter of programs, which is written with the SDK.
            .env("PYTHONPATH", sdk)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .run(&root().join(tests.folder))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_of_tests_is_there() {
        for tests in TESTS {
            assert!(root().join(tests.folder).is_dir(), "{}", tests.folder);
        }
    }
}
