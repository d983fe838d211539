//! Skills: folders of instructions, reference files and scripts that a model opens when a task
//! needs them.
//!
//! A skill is a directory with a `SKILL.md` in any file store ([`SkillRoot`]), or a part of the
//! program ([`ProgramSkill`]). A model is told names and descriptions, and has three tools: it
//! loads a skill, reads its files, runs its scripts ([`SkillTools`]). [`Skills`] puts both around
//! an agent's runs.
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
//! What holds:
//!
//! * **A skill is untrusted.** Its content is text for a model and decides nothing: `allowed-tools`
//!   grants nothing (`SKILL-22`), and all three tools need approval until the program frees them
//!   (`SKILL-13`).
//! * **No process of the host is started.** A script runs in whatever the program adds as a
//!   [`ScriptRunner`]; [`ComponentScripts`] runs WebAssembly components, with the folder of their
//!   own skill to read and nothing else (`SKILL-20`).
//! * **Check and use are one step.** A file is opened by the store at each use, links are never
//!   followed (`SKILL-10`).
//! * **Everything is bounded** ([`SkillLimits`]). What is too much is left out and told
//!   ([`SkippedEntry`]); it is never an error of a run (`SKILL-6`).
//!
//! The behaviour is fixed by numbered rules, cited as `SKILL-7`.

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

pub use components::{ComponentScripts, LoadComponent, Passes, SCRIPT_FOLDER, ScriptInterface};
pub use discover::{Discovery, SkillRoot, SkipReason, SkippedEntry, discover};
pub use file::FileSkill;
pub use front_matter::FrontMatter;
pub use limits::SkillLimits;
pub use listing::SkillList;
pub use program::ProgramSkill;
pub use provider::{Skills, SkillsBuilder};
pub use rules::{InvalidSkill, check_compatibility, check_description, check_name};
pub use runner::{ScriptFile, ScriptRunner};
pub use skill::Skill;
pub use tools::{SkillTool, SkillTools};

/// The file that makes a directory a skill (`SKILL-1`).
pub const SKILL_FILE: &str = "SKILL.md";
