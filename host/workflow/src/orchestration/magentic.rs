//! Magentic orchestration: a planner plans and supervises the work of the other agents.
//!
//! The planner writes down the known facts and a plan. After each turn it assesses the state of the
//! work in the progress ledger and selects the next speaker with an instruction. If the work stalls
//! for too long, it rewrites facts and plan, and the conversation starts again. When the request is
//! satisfied or a limit is reached, it writes the final answer.

mod ledger;
mod prompts;

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_agent::{AgentRun, BoxError, Message};
use serde::{Deserialize, Serialize};

use self::ledger::ProgressLedger;
use super::super::agent::separate_turn;
use super::super::builder::WorkflowBuilder;
use super::super::conversation;
use super::super::step::Step;
use super::hub::{self, HubLogic};
use super::{Intermediate, InvalidOrchestration, Orchestration, OrchestrationResult, Pattern};

/// Id of the planner.
const PLANNER: &str = "magentic:planner";
/// Maximum number of times that the planner is asked for its ledger, when it is invalid.
const ATTEMPTS_MAX: u32 = 3;

/// Limits of a [`Magentic`] orchestration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MagenticLimits {
    /// Maximum number of turns of all participants together. The default is 20.
    pub rounds_max: u64,
    /// Maximum number of stalled rounds before the planner makes a new plan; a round with progress
    /// reduces their number by one. The default is 3.
    pub stalls_max: u64,
    /// Maximum number of new plans. The default is 2.
    pub resets_max: u64,
}

impl Default for MagenticLimits {
    fn default() -> Self {
        Self { rounds_max: 20, stalls_max: 3, resets_max: 2 }
    }
}

/// Magentic orchestration: a planner (the manager in the literature) plans and supervises the work
/// of the other agents. The output is its final answer.
pub type Magentic = Orchestration<MagenticPattern>;

/// Pattern of [`Magentic`].
pub struct MagenticPattern {
    planner: Arc<dyn AgentRun>,
    descriptions: Vec<(String, String)>,
    limits: MagenticLimits,
}

impl Magentic {
    /// Creates the orchestration of these agents and a planner.
    pub fn new(
        agents: impl IntoIterator<Item: Into<Arc<dyn AgentRun>>>,
        planner: impl Into<Arc<dyn AgentRun>>,
    ) -> Self {
        Self::of(
            agents,
            MagenticPattern {
                planner: planner.into(),
                descriptions: Vec::new(),
                limits: MagenticLimits::default(),
            },
        )
    }

    /// Describes a participant to the planner.
    pub fn describe(mut self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.pattern.descriptions.push((name.into(), description.into()));
        self
    }

    /// Sets the limits of the work.
    pub fn limits(mut self, limits: MagenticLimits) -> Self {
        self.pattern.limits = limits;
        self
    }
}

impl Pattern for MagenticPattern {
    const NAME: &'static str = "magentic";
    const NAMES_SPEAKERS: bool = true;

    fn graph(
        &self,
        builder: WorkflowBuilder,
        names: &[String],
    ) -> OrchestrationResult<WorkflowBuilder> {
        if self.limits.rounds_max == 0 {
            return Err(InvalidOrchestration::ZeroLimit { limit: "rounds_max" });
        }
        if let Some((name, _)) = self.descriptions.iter().find(|(name, _)| !names.contains(name)) {
            return Err(InvalidOrchestration::Unknown {
                name: name.clone(),
                known: names.to_vec(),
            });
        }
        let team = names.iter().map(|name| {
            let described = self.descriptions.iter().rev().find(|(described, _)| described == name);
            format!("- {name}: {}", described.map_or("an agent", |(_, description)| description))
        });
        let (agent, team) = (Arc::clone(&self.planner), team.collect::<Vec<_>>().join("\n"));
        let planner = Planner { agent, team, participants: names.to_vec(), limits: self.limits };
        Ok(hub::graph(
            builder,
            planner,
            self.limits.rounds_max.saturating_mul(2).saturating_add(2),
            names,
        ))
    }
}

impl Intermediate for MagenticPattern {}

/// Central executor: plans, supervises, and writes the final answer.
struct Planner {
    agent: Arc<dyn AgentRun>,
    team: String,
    participants: Vec<String>,
    limits: MagenticLimits,
}

/// State of the work.
#[derive(Default, Serialize, Deserialize)]
struct WorkState {
    task: String,
    facts: String,
    plan: String,
    /// Messages since the plan was made.
    said: Vec<Message>,
    rounds: u64,
    stalls: u64,
    resets: u64,
}

impl Planner {
    /// Asks the planner a question, with `said` as the conversation before it.
    async fn ask(
        &self,
        said: &[Message],
        question: String,
        step: &Step,
    ) -> Result<String, BoxError> {
        let mut messages = conversation::as_heard_by(said, PLANNER, true);
        messages.push(Message::user(question));
        Ok(separate_turn(&*self.agent, messages, step).await?.text())
    }

    /// Asks the planner for facts and a plan.
    async fn plan(&self, work: &mut WorkState, step: &Step) -> Result<(), BoxError> {
        let is_first = work.plan.is_empty();
        let facts = match is_first {
            true => prompts::facts(&work.task),
            false => prompts::updated_facts(&work.task, &work.facts),
        };
        work.facts = self.ask(&work.said, facts.clone(), step).await?;
        let mut said = work.said.clone();
        said.push(Message::user(facts));
        said.push(conversation::by(Message::assistant(&work.facts), PLANNER));
        let plan = if is_first { prompts::plan(&self.team) } else { prompts::new_plan(&self.team) };
        work.plan = self.ask(&said, plan, step).await?;
        let begin = prompts::begin(&work.task, &self.team, &work.facts, &work.plan);
        work.said = vec![conversation::by(Message::assistant(begin), PLANNER)];
        work.stalls = 0;
        Ok(())
    }

    /// Asks the planner for the progress ledger.
    async fn ledger(&self, work: &WorkState, step: &Step) -> Result<ProgressLedger, BoxError> {
        let question = prompts::progress(&work.task, &self.team, &self.participants.join(", "));
        let mut wrong = None;
        for _ in 0..ATTEMPTS_MAX {
            let asked = match &wrong {
                Some(wrong) => format!("{question}\n\nYour last answer was of no use: {wrong}"),
                None => question.clone(),
            };
            match ProgressLedger::read(
                &self.ask(&work.said, asked, step).await?,
                &self.participants,
            ) {
                Ok(ledger) => return Ok(ledger),
                Err(error) => wrong = Some(error),
            }
        }
        Err(wrong.map_or_else(|| "the planner was never asked".into(), BoxError::from))
    }

    /// Selects speakers and makes new plans until an agent has a turn, or yields the final answer.
    async fn advance(&self, work: &mut WorkState, step: &Step) -> Result<(), BoxError> {
        while work.rounds < self.limits.rounds_max {
            let ledger = self.ledger(work, step).await?;
            if ledger.is_satisfied {
                break;
            }
            if ledger.is_stalled {
                work.stalls = work.stalls.saturating_add(1);
            } else {
                work.stalls = work.stalls.saturating_sub(1);
            }
            if work.stalls > self.limits.stalls_max {
                if work.resets >= self.limits.resets_max {
                    break;
                }
                work.resets = work.resets.saturating_add(1);
                self.plan(work, step).await?;
                continue;
            }
            work.rounds = work.rounds.saturating_add(1);
            work.said.push(conversation::by(Message::assistant(ledger.instruction), PLANNER));
            return Ok(step.send_to(&ledger.next_speaker, &work.said)?);
        }
        let text = self.ask(&work.said, prompts::answer(&work.task), step).await?;
        Ok(step.output(&vec![conversation::by(Message::assistant(text), PLANNER)])?)
    }
}

#[async_trait]
impl HubLogic for Planner {
    const ID: &'static str = PLANNER;
    type State = WorkState;

    async fn handle_messages(
        &self,
        said: Vec<Message>,
        work: &mut WorkState,
        step: &Step,
    ) -> Result<(), BoxError> {
        if step.sources().is_empty() {
            let texts: Vec<_> = said.iter().map(Message::text).collect();
            work.task = texts.join("\n");
            self.plan(work, step).await?;
        } else {
            work.said.extend(said);
        }
        self.advance(work, step).await
    }
}
