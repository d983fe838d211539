//! Flags of `cofferdam skills`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum SkillsCommand {
    /// List the skills in directories
    #[command(after_help = "\
Searches each directory and two levels below it. A directory may be a skill itself.

Examples:
  cofferdam skills list ./skills
  cofferdam skills list ./skills ~/.agent/skills --json | jq -r '.skills[].name'")]
    List(SkillsDirectoriesArgs),
    /// Report everything that is wrong with the skills in directories
    #[command(after_help = "\
Reads every SKILL.md, opens every resource, and loads every component script without grants; runs
none. The exit code is 4 if something is invalid.

Examples:
  cofferdam skills check ./skills
  cofferdam skills check ./skills/sales-report --json | jq '.problems[]'")]
    Check(SkillsDirectoriesArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SkillsDirectoriesArgs {
    /// Directories of skills
    #[arg(required = true, value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
