//! Skills: directories of instructions, resources and scripts that a model loads when a task needs
//! them.
//!
//! A skill is a directory with a `SKILL.md` in any file store ([`SkillRoot`]), or part of the
//! embedding program ([`ProgramSkill`]). A model sees the names and descriptions of the skills, and
//! has three tools: to load a skill, to read its resources, and to run its scripts
//! ([`SkillTools`]). [`Skills`] adds both to the runs of an agent.
//!
//! ```
//! use cofferdam_agent::{Agent, ScriptedClient};
//! use cofferdam_skills::{ProgramSkill, Skills};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let tides = ProgramSkill::new("tides", "Use it for questions about tides.", "Read `table.md` first.")?
//!     .resource("table.md", "High water: 06:12")?;
//! let skills = Skills::builder().skill(tides).free_reading().build()?;
//!
//! let script = r#"
//! {"calls":[{"tool":"load_skill","arguments":{"skill_name":"tides"}}]}
//! {"text":"At twelve past six."}
//! "#;
//! let model = ScriptedClient::read("script", script.as_bytes())?;
//! let agent = Agent::builder(model).context_provider(skills).build()?;
//! let response = agent.run("When is high water?").await?;
//! let loaded = response.messages.iter().flat_map(|message| message.results()).next().unwrap();
//! assert!(loaded.result.contains("Read `table.md` first."));
//! # Ok(())
//! # }
//! ```
//!
//! Security:
//!
//! * **A skill is untrusted.** Its content is text for a model and has no effect on permissions:
//!   `allowed-tools` grants nothing (`SKILL-22`), and all three tools need approval unless the
//!   embedding program lifts the requirement (`SKILL-13`).
//! * **No host process is started.** A script runs in a [`ScriptRunner`] that the embedding program
//!   adds. [`ComponentScripts`] runs WebAssembly components; by default they can read the directory
//!   of their own skill and nothing else (`SKILL-20`).
//! * **Check and use are one step.** The store opens a file at each use and never follows links
//!   (`SKILL-10`).
//! * **Everything is bounded** ([`SkillLimits`]). Anything over a limit is skipped and reported as
//!   a [`SkippedEntry`]; it is never an error of a run (`SKILL-6`).
//!
//! Numbers such as `SKILL-7` refer to the rules for skills in the documentation.

mod components;
mod discover;
mod file;
mod front_matter;
mod limits;
mod listing;
mod program;
mod provider;
mod rules;
mod runner;
mod skill;
mod tools;
mod xml;
mod yaml;

pub use components::{
    ArgumentMode, ComponentScripts, LoadComponent, SCRIPT_FOLDER, ScriptInterface,
};
pub use discover::{Discovery, SkillRoot, SkipReason, SkippedEntry, discover};
pub use file::FileSkill;
pub use front_matter::FrontMatter;
pub use limits::SkillLimits;
pub use listing::SkillList;
pub use program::ProgramSkill;
pub use provider::{Skills, SkillsBuilder};
pub use rules::{
    InvalidSkill, MetadataProblem, check_compatibility, check_description, check_name,
};
pub use runner::{ScriptFile, ScriptRunner};
pub use skill::Skill;
pub use tools::{SkillTool, SkillTools};

/// Name of the file that makes a directory a skill (`SKILL-1`).
pub const SKILL_FILE: &str = "SKILL.md";
