//! Runs recorded conversations again: the recorded model answers instead of a provider, and calls
//! of plugins run again in their recorded worlds.
//!
//! Each turn begins with the recorded messages, so that a difference in one turn does not spoil the
//! next. A call that runs as recorded returns what the model got then; one that differs returns
//! what it returns now. Results of tools that are no plugin's, of calls that were denied, and of
//! calls without a recording come from the log.

mod recorded;
mod run;

use std::collections::BTreeSet;
use std::sync::Arc;

use cofferdam_agent::{Agent, Approvals, ChatErrorKind, LoopSettings, RunError};
use cofferdam_record::{EventList, Log, LogDamage};
use cofferdam_tool::Toolset;
use serde::Serialize;

use self::recorded::RecordedTurn;
use self::run::{RecordedReplies, RecordedResults, TurnReplay};
use super::{ReplayDifference, ReplayPlugins, compare};
use crate::error::Context as _;
use crate::{Error, Result};

/// Conversation of a session, as a log has it.
pub struct RecordedConversation {
    session: String,
    turns: Vec<Arc<RecordedTurn>>,
    replies: usize,
    /// Number of replies whose messages were not stored, or were pruned.
    replies_missing: usize,
    is_redacted: bool,
    /// Damage of the segments that the replies were looked for in.
    damage: LogDamage,
}

/// Result of replaying a conversation.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct ConversationReport {
    /// Session of the conversation.
    pub session: String,
    /// Number of turns.
    pub turns: usize,
    /// Number of replies of the model.
    pub replies: usize,
    /// Number of replies of the session that could not be replayed, because the log does not have
    /// their messages.
    pub replies_missing: usize,
    /// Number of calls that ran again.
    pub calls: usize,
    /// Number of calls whose results came from the log.
    pub calls_from_log: usize,
    /// Differences to the recorded conversation, in its order.
    pub differences: Vec<ConversationDifference>,
    /// Calls that could not run again: id in the log, and reason. Their results came from the log.
    pub failed: Vec<(String, String)>,
    /// Reasons why the replay may differ although it gets the same inputs.
    pub gaps: BTreeSet<String>,
    /// Number of calls that ran in a component other than the recorded one.
    pub calls_in_other_components: usize,
    /// Sentences about parts of the log that cannot be read: replies and calls of the session may
    /// be missing.
    pub losses: Vec<String>,
}

/// Difference in a turn of a conversation.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ConversationDifference {
    /// Number of the turn, from 1.
    pub turn: usize,
    /// Number of the call in the turn, from 1; `None` if the difference concerns the turn.
    pub call: Option<usize>,
    /// Tool that was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Id of the call in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The difference.
    #[serde(flatten)]
    pub difference: ReplayDifference,
}

impl ConversationReport {
    /// Returns whether all of the conversation ran again, every call ended as recorded, and the
    /// model got the same messages.
    #[must_use]
    pub fn is_identical(&self) -> bool {
        self.differences.is_empty() && self.is_complete()
    }

    /// Returns whether every call that was to run did, and no part of the log was unreadable.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty() && self.losses.is_empty()
    }
}

impl RecordedConversation {
    /// Reads the conversation of a session. Returns `None` if the log has no replies of models in
    /// this session.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read.
    pub fn read(log: &Log, session: &str) -> Result<Option<Self>> {
        let EventList { events, damage, .. } =
            log.events(None).context("the log cannot be read")?;
        let is_reply = |event: &cofferdam_record::LogEvent| {
            matches!(event, cofferdam_record::LogEvent::Model { .. })
                && event.session() == Some(session)
        };
        let mut events: Vec<_> = events.into_iter().filter(|one| is_reply(&one.event)).collect();
        if events.is_empty() {
            return Ok(None);
        }
        events.sort_by_key(|event| event.at);
        let mut conversation = Self {
            session: session.to_owned(),
            turns: Vec::new(),
            replies: 0,
            replies_missing: 0,
            is_redacted: false,
            damage,
        };
        let mut turns = Vec::new();
        for event in &events {
            let exchange = log.exchange(event).context("the conversation cannot be read")?;
            match exchange {
                None => conversation.replies_missing += 1,
                Some(exchange) => {
                    conversation.replies += 1;
                    conversation.is_redacted |= exchange.is_redacted;
                    recorded::add(exchange, event.at, &mut turns)?;
                }
            }
        }
        conversation.turns = turns.into_iter().map(Arc::new).collect();
        Ok(Some(conversation))
    }

    /// Returns the number of replies that can be replayed.
    #[must_use]
    pub fn replies(&self) -> usize {
        self.replies
    }

    /// Returns the number of replies whose messages the log does not have.
    #[must_use]
    pub fn replies_missing(&self) -> usize {
        self.replies_missing
    }

    /// Runs the conversation again. With `plugin`, only calls of this plugin run; all others are
    /// answered from the log.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read.
    pub async fn replay(
        &self,
        log: &Log,
        plugins: ReplayPlugins,
        plugin: Option<&str>,
    ) -> Result<ConversationReport> {
        let replay = TurnReplay::new(log, plugins, plugin, &self.session)?;
        let replay = Arc::new(replay);
        for (index, turn) in self.turns.iter().enumerate() {
            replay.progress().begin(index + 1);
            self.run(turn, &replay).await?;
        }
        let mut report = replay.progress().report();
        report.session.clone_from(&self.session);
        report.turns = self.turns.len();
        report.losses = self.damage.losses();
        for loss in replay.damage().losses() {
            if !report.losses.contains(&loss) {
                report.losses.push(loss);
            }
        }
        (report.replies, report.replies_missing) = (self.replies, self.replies_missing);
        if self.is_redacted {
            report.gaps.insert("secrets were removed from the conversation".to_owned());
        }
        Ok(report)
    }

    async fn run(&self, turn: &Arc<RecordedTurn>, replay: &Arc<TurnReplay>) -> Result<()> {
        let replies = RecordedReplies::new(Arc::clone(turn), Arc::clone(replay.progress()));
        let requests = replies.requests();
        let mut toolset = Toolset::new();
        let results = RecordedResults::new(Arc::clone(turn), Arc::clone(replay));
        toolset.add(Arc::new(results)).map_err(|error| Error::invalid(error.to_string()))?;
        // The recorded run has ended by itself: nothing else is to end the replay.
        let settings = LoopSettings {
            max_iterations: u32::MAX,
            max_function_calls: None,
            max_duration: None,
            max_consecutive_errors: u32::MAX,
            allow_concurrent_invocation: false,
            ..LoopSettings::default()
        };
        let agent = Agent::builder(replies)
            .name("replay")
            .tools(toolset)
            .settings(settings)
            .approvals(Approvals::default())
            .tool_search(None)
            .build();
        let agent = agent.map_err(|error| Error::invalid(error.to_string()))?;
        match agent.run(turn.input.clone()).await {
            Ok(_) => {}
            // The recorded run was interrupted behind its last reply.
            Err(RunError::Chat(error)) if error.kind == ChatErrorKind::ScriptEnded => {}
            Err(error) => return Err(Error::failed(format!("the replay has ended: {error}"))),
        }
        let (recorded, replayed) = (turn.steps.len(), requests.count().min(turn.steps.len()));
        if recorded != replayed {
            replay.progress().add(None, compare::model_requests(recorded, replayed));
        }
        Ok(())
    }
}
