//! Skills for the runs of an agent (`SKILL-11`, `SKILL-13`, `SKILL-23`).

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

/// Key of the provider's part of a session's state, which stays empty.
const SOURCE_ID: &str = "skills";

/// Collection of skills. As a [`ContextProvider`] it adds the skill tools and their instructions to
/// each run, unless there are no skills. Clones share state.
#[derive(Clone)]
pub struct Skills {
    inner: Arc<SkillsState>,
}

struct SkillsState {
    parts: SkillsParts,
    definitions: Arc<[Arc<ToolDefinition>]>,
    /// Cached list. The lock is held while the list is read, so concurrent callers wait for it.
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

/// Builder of [`Skills`].
#[must_use = "nothing is built yet"]
pub struct SkillsBuilder {
    parts: SkillsParts,
}

/// Settings of [`Skills`].
struct SkillsParts {
    sources: Vec<SkillSource>,
    runners: Runners,
    freed: BTreeSet<SkillTool>,
    limits: SkillLimits,
    refresh_every: Option<Duration>,
    clock: Arc<dyn Clock>,
}

impl Skills {
    /// Returns a builder without skills.
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

    /// Returns the current skills. They are discovered at the first use, and again when the list is
    /// older than the refresh interval, if one is set (`SKILL-23`).
    pub async fn list(&self) -> Arc<SkillList> {
        self.listed().await.skills
    }

    /// Returns the directories that discovery skipped for the current list.
    pub async fn skipped(&self) -> Arc<[SkippedEntry]> {
        self.listed().await.skipped
    }

    /// Returns the tools for the current skills. A later refresh does not change them.
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
        let (skills, skipped) = self.inner.parts.discover_all().await;
        let listed = ListedSkill { at: now, skills: Arc::new(skills), skipped: skipped.into() };
        *read = Some(listed.clone());
        listed
    }
}

impl SkillsParts {
    /// Discovers the skills, and returns them in the order in which their sources were added.
    async fn discover_all(&self) -> (SkillList, Vec<SkippedEntry>) {
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
    /// Adds the skills under a root, after the existing ones.
    pub fn root(mut self, root: SkillRoot) -> Self {
        self.parts.sources.push(SkillSource::Root(root));
        self
    }

    /// Adds an in-program skill, after the existing ones.
    pub fn skill(mut self, skill: ProgramSkill) -> Self {
        self.parts.sources.push(SkillSource::Program(Arc::new(skill)));
        self
    }

    /// Adds a runner of scripts. If two runners have the same extension, the first one runs its
    /// scripts.
    pub fn runner(mut self, runner: impl ScriptRunner + 'static) -> Self {
        self.parts.runners.push(Arc::new(runner));
        self
    }

    /// Lifts the approval requirement for some of the tools. All other tools need approval
    /// (`SKILL-13`).
    pub fn without_approval(mut self, tools: impl IntoIterator<Item = SkillTool>) -> Self {
        self.parts.freed.extend(tools);
        self
    }

    /// Lifts the approval requirement for the two tools that only read.
    pub fn free_reading(self) -> Self {
        self.without_approval(SkillTool::READING)
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: SkillLimits) -> Self {
        self.parts.limits = limits;
        self
    }

    /// Sets the refresh interval: the age at which the list of skills is read again. By default the
    /// list is read once (`SKILL-23`).
    pub fn refresh_every(mut self, interval: Duration) -> Self {
        self.parts.refresh_every = Some(interval);
        self
    }

    /// Sets the clock.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.parts.clock = Arc::new(clock);
        self
    }

    /// Builds the provider, without discovering skills.
    ///
    /// # Errors
    /// The declaration of a tool is invalid. A test checks that this does not happen.
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

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.inner.definitions)
    }

    /// Adds no instructions of its own, because the tools carry them.
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
