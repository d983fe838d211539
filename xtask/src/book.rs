//! Builds the documentation as a book with mdBook. Tests check the links and run the commands of
//! the pages.

use std::process::Command;

use crate::packages::text;
use crate::run::{command, root, section};

/// Version of mdBook.
const VERSION: &str = "0.5.4";
const TOOLS: &str = "target/tools";

/// Builds the book into `target/book`. Installs mdBook into `target/tools` if it is missing.
pub(crate) fn build() -> anyhow::Result<()> {
    let tools = root().join(TOOLS);
    let program = tools.join("bin/mdbook");
    let version = Command::new(&program).arg("--version").output();
    let is_installed = version
        .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim().ends_with(VERSION));
    if !is_installed {
        section(&format!("installing mdBook {VERSION} into {TOOLS}"));
        let mut install = vec!["install", "mdbook", "--version", VERSION, "--locked", "--quiet"];
        // Without optimizations, building takes a third of the time, and a book still takes seconds.
        install.extend(["--no-default-features", "--debug", "--root", text(&tools)?]);
        command("cargo", &install).run(&root())?;
    }
    section("the documentation as a book");
    command(text(&program)?, &["build"]).run(&root())
}
