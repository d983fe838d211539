//! `cofferdam completions` and `cofferdam man`: files for shells and manuals, generated from the
//! command line's own definition.

use std::path::Path;

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::exit::Exit;
use crate::print;

pub(crate) fn completions(args: &CompletionsArgs) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "cofferdam", &mut script);
    print::unescaped(&script)?;
    Ok(Exit::Ok)
}

pub(crate) fn man(args: &ManArgs) -> anyhow::Result<Exit> {
    match &args.dir {
        Some(directory) => write_pages(directory)?,
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            print::unescaped(&page)?;
        }
    }
    Ok(Exit::Ok)
}

/// Writes a page for each command.
fn write_pages(directory: &Path) -> anyhow::Result<()> {
    let unwritable = || format!("{} cannot be written", directory.display());
    std::fs::create_dir_all(directory).with_context(unwritable)?;
    clap_mangen::generate_to(Cli::command(), directory).with_context(unwritable)?;
    print::note(&format!(
        "the pages are in {0}; read one with: man {0}/cofferdam.1",
        directory.display()
    ));
    Ok(())
}
