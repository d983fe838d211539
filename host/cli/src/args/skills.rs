//! What can be typed behind `cofferdam skills`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum SkillsCommand {
    /// List the skills in directories
    #[command(after_help = "\
Skills are looked for in a directory and two levels below it. A directory may be a skill itself.

Examples:
  cofferdam skills list ./skills
  cofferdam skills list ./skills ~/.agent/skills --json | jq -r '.skills[].name'")]
    List(SkillsDirectoriesArgs),
    /// Say everything that is wrong with the skills in directories, for their authors
    #[command(after_help = "\
Every SKILL.md is read, every resource is opened, every component script is loaded, without \
grants, and asked for its
interface; none is run. The exit code is 4 if something is invalid.

Examples:
  cofferdam skills check ./skills
  cofferdam skills check ./skills/sales-report --json | jq '.problems[]'")]
    Check(SkillsDirectoriesArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SkillsDirectoriesArgs {
    /// Directories with skills in them
    #[arg(required = true, value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,
    /// Print everything as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
