//! Builds the documentation as a book with mdBook. Tests check the links and run the commands of
//! the pages.

use crate::packages::text;
use crate::run::{command, root, section};
use crate::tools;

/// Builds the book into `target/book`.
pub(crate) fn build() -> anyhow::Result<()> {
    let Some(program) = tools::find("mdbook")? else { return Ok(()) };
    section("the documentation as a book");
    command(text(&program)?, &["build"]).run(&root())
}
