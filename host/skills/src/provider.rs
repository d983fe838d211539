//! Skills around the runs of an agent (`SKILL-11`, `SKILL-13`, `SKILL-23`).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cofferdam_agent::{BeforeRun, BoxError, Clock, ContextProvider, SystemClock};
use cofferdam_tool::ToolDefinition;
use cofferdam_tool::declaration::DeclarationError;
use tokio::sync::Mutex;

use super::skill::Runners;
use super::tools::definitions;
use super::{
    ProgramSkill, ScriptRunner, Skill, SkillLimits, SkillList, SkillRoot, SkillTool, SkillTools,
    SkippedEntry, discover,
};

/// The key of its part of a session's state, which stays empty.
const SOURCE_ID: &str = "skills";

/// Some skills, wherever they are: a [`ContextProvider`] that tells a model of them and adds their
/// tools to each run, if there are any. Clones share everything.
#[derive(Clone)]
pub struct Skills {
    inner: Arc<SkillsState>,
}

struct SkillsState {
    parts: SkillsParts,
    definitions: Arc<[Arc<ToolDefinition>]>,
    /// Held while the list is read: who comes meanwhile waits for it.
    read: Mutex<Option<ListedSkill>>,
}

enum SkillSource {
    Root(SkillRoot),
    Program(Arc<ProgramSkill>),
}

#[derive(Clone)]
struct ListedSkill {
    at: Instant,
    skills: Arc<SkillList>,
    skipped: Arc<[SkippedEntry]>,
}

/// Puts [`Skills`] together.
#[must_use = "nothing is built yet"]
pub struct SkillsBuilder {
    parts: SkillsParts,
}

/// Builder input of [`Skills`].
struct SkillsParts {
    sources: Vec<SkillSource>,
    runners: Runners,
    freed: BTreeSet<SkillTool>,
    limits: SkillLimits,
    refresh_every: Option<Duration>,
    clock: Arc<dyn Clock>,
}

impl Skills {
    /// Without skills yet.
    pub fn builder() -> SkillsBuilder {
        let parts = SkillsParts {
            sources: Vec::new(),
            runners: Runners::default(),
            freed: BTreeSet::new(),
            limits: SkillLimits::default(),
            refresh_every: None,
            clock: Arc::new(SystemClock),
        };
        SkillsBuilder { parts }
    }

    /// The skills that there are. They are discovered on first use, and again when they are older
    /// than the refresh interval, if there is one (`SKILL-23`).
    pub async fn list(&self) -> Arc<SkillList> {
        self.listed().await.skills
    }

    /// Returns the candidates that were skipped when the list was read.
    pub async fn skipped(&self) -> Arc<[SkippedEntry]> {
        self.listed().await.skipped
    }

    /// The tools over the skills that there are now. They stay over these.
    pub async fn tools(&self) -> SkillTools {
        let SkillsState { parts: SkillsParts { runners, freed, .. }, definitions, .. } =
            &*self.inner;
        SkillTools::new(self.list().await, runners.clone(), freed.clone(), Arc::clone(definitions))
    }

    async fn listed(&self) -> ListedSkill {
        let mut read = self.inner.read.lock().await;
        let now = self.inner.parts.clock.now();
        let is_fresh = |listed: &&ListedSkill| {
            let age = now.saturating_duration_since(listed.at);
            self.inner.parts.refresh_every.is_none_or(|every| age < every)
        };
        if let Some(listed) = read.as_ref().filter(is_fresh) {
            return listed.clone();
        }
        let (skills, skipped) = self.inner.parts.look().await;
        let listed = ListedSkill { at: now, skills: Arc::new(skills), skipped: skipped.into() };
        *read = Some(listed.clone());
        listed
    }
}

impl SkillsParts {
    /// Looks for skills, in the order in which they were added.
    async fn look(&self) -> (SkillList, Vec<SkippedEntry>) {
        let roots = self.sources.iter().filter_map(|source| match source {
            SkillSource::Root(root) => Some(root.clone()),
            SkillSource::Program(_) => None,
        });
        let roots: Vec<_> = roots.collect();
        let found = discover(&roots, &self.runners.extensions(), &self.limits).await;
        let mut files = found.skills.into_iter().peekable();
        let (mut skills, mut number) = (Vec::new(), 0_usize);
        for source in &self.sources {
            match source {
                SkillSource::Program(skill) => skills.push(Skill::Program(Arc::clone(skill))),
                SkillSource::Root(_) => {
                    while let Some(skill) = files.next_if(|skill| skill.root() == number) {
                        skills.push(Skill::File(skill));
                    }
                    number = number.saturating_add(1);
                }
            }
        }
        (SkillList::new(skills), found.skipped)
    }
}

impl SkillsBuilder {
    /// Adds the skills under a root, after those that are there.
    pub fn root(mut self, root: SkillRoot) -> Self {
        self.parts.sources.push(SkillSource::Root(root));
        self
    }

    /// Adds a skill of the program, after those that are there.
    pub fn skill(mut self, skill: ProgramSkill) -> Self {
        self.parts.sources.push(SkillSource::Program(Arc::new(skill)));
        self
    }

    /// Adds who runs scripts of some kinds. Of two that take the same ending the first does.
    pub fn runner(mut self, runner: impl ScriptRunner + 'static) -> Self {
        self.parts.runners.push(Arc::new(runner));
        self
    }

    /// Lets a model use some of the tools without asking the user. All of them need approval
    /// otherwise (`SKILL-13`).
    pub fn free(mut self, tools: impl IntoIterator<Item = SkillTool>) -> Self {
        self.parts.freed.extend(tools);
        self
    }

    /// Frees the two tools that only read.
    pub fn free_reading(self) -> Self {
        self.free(SkillTool::READING)
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: SkillLimits) -> Self {
        self.parts.limits = limits;
        self
    }

    /// Looks for skills again when the list is older than this. Without it the list is read once
    /// (`SKILL-23`).
    pub fn refresh_every(mut self, interval: Duration) -> Self {
        self.parts.refresh_every = Some(interval);
        self
    }

    /// Sets the clock.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.parts.clock = Arc::new(clock);
        self
    }

    /// The skills. Nothing is looked for yet.
    ///
    /// # Errors
    /// None of the tools' own declarations is refused by the rules for declarations; that this is
    /// so is tested.
    pub fn build(self) -> Result<Skills, DeclarationError> {
        let inner =
            SkillsState { parts: self.parts, definitions: definitions()?, read: Mutex::default() };
        Ok(Skills { inner: Arc::new(inner) })
    }
}

#[async_trait]
impl ContextProvider for Skills {
    fn source_id(&self) -> &str {
        SOURCE_ID
    }

    /// Adds no instructions: they come with the tools, as those of their source.
    async fn before_run(&self, run: &mut BeforeRun<'_>) -> Result<(), BoxError> {
        let tools = self.tools().await;
        if !tools.skills().is_empty() {
            run.add_tools(Arc::new(tools));
        }
        Ok(())
    }
}

impl fmt::Debug for Skills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Skills")
            .field("sources", &self.inner.parts.sources.len())
            .finish_non_exhaustive()
    }
}
