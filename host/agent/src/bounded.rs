//! Loops over runs whose context does not grow (`LOOP-64`).

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::approvals::{allow_always, open_requests, standing_rules};
use crate::{
    AgentRequest, AgentRun, BoxError, Delta, IntoMessages as _, Message, MessageContent, Response,
    RunError, RunStream, Session, TokenUsage, Update,
};

/// Part of a session's state that holds a loop which waits for approvals.
const PART: &str = "bounded_loop";

/// Default maximum number of iterations.
const ITERATIONS_MAX: u32 = 10;
/// Maximum number of notes that an iteration sees; older ones are left out.
const NOTES_MAX: usize = 20;
/// Longest note, in characters.
const NOTE_CHARS_MAX: usize = 2000;
/// Default message after the notes.
const NEXT: &str = "Continue working on the task. If it is complete, say so.";

/// Runs an agent on a task again and again until a condition says that it is done.
///
/// Each iteration begins with a new session, the original input and notes about the earlier
/// iterations, so a long task needs no more context than a short one. What the work has produced
/// must be where tools find it again, such as in files. A loop is an [`AgentRun`] itself. The
/// session of its request holds what lasts longer than an iteration: a loop that waits for
/// approvals, standing approvals, and what a guard has recorded. It holds no conversation.
///
/// ```
/// use cofferdam_agent::{
///     Agent, AgentRequest, AgentRun, BoundedLoop, LoopDecision, Response, ScriptedClient,
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = br#"
/// {"text":"Chapter 1 is translated."}
/// {"text":"Chapter 2 is translated. DONE"}
/// "#;
/// let agent = Agent::builder(ScriptedClient::read("script", script.as_slice())?).build()?;
/// let is_done = |response: &Response, _| match response.text().contains("DONE") {
///     true => LoopDecision::Done,
///     false => LoopDecision::Continue { note: response.text() },
/// };
/// let translator = BoundedLoop::new(agent, is_done).max_iterations(20);
/// let response = translator.run(AgentRequest::new("Translate the book.")).await?;
/// assert_eq!(response.text(), "Chapter 2 is translated. DONE");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct BoundedLoop {
    agent: Arc<dyn AgentRun>,
    condition: Arc<dyn LoopCondition>,
    max_iterations: u32,
    next: String,
}

/// Decides after each iteration whether the loop goes on. A closure is a condition too.
#[async_trait]
pub trait LoopCondition: Send + Sync {
    /// Judges the response of an iteration, which are counted from 0.
    ///
    /// # Errors
    /// Any; it ends the loop.
    async fn decide(&self, response: &Response, iteration: u32) -> Result<LoopDecision, BoxError>;
}

/// Decision of a [`LoopCondition`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoopDecision {
    /// The task is done.
    Done,
    /// Another iteration follows, which sees this note: what was done, or what is missing. At most
    /// 2,000 characters of it are passed on.
    Continue {
        /// The note; none if it is blank.
        note: String,
    },
}

#[async_trait]
impl<F> LoopCondition for F
where
    F: Fn(&Response, u32) -> LoopDecision + Send + Sync,
{
    async fn decide(&self, response: &Response, iteration: u32) -> Result<LoopDecision, BoxError> {
        Ok(self(response, iteration))
    }
}

/// State of a loop between two runs of its agent.
#[derive(Serialize, Deserialize)]
struct LoopState {
    /// Messages with which each iteration begins.
    input: Vec<Arc<Message>>,
    /// Number of completed iterations.
    iterations: u32,
    /// Notes by the number of the iteration.
    notes: VecDeque<(u32, String)>,
    /// Session of the current iteration.
    session: Session,
}

impl LoopState {
    /// Returns the loop that waits for the answers of a request, or else a new one. Any other
    /// request abandons a loop that waits.
    fn resume(request: &AgentRequest) -> Self {
        let waiting = request.session.as_ref().map(|session| {
            let part = session.part(PART);
            session.set_part(PART, Value::Null);
            part
        });
        let is_answer =
            |content: &MessageContent| matches!(content, MessageContent::ApprovalAnswer(_));
        let mut contents = request.messages.iter().flat_map(|message| &message.contents);
        let waiting = waiting.filter(|_| contents.any(is_answer));
        waiting.and_then(|part| serde_json::from_value(part).ok()).unwrap_or_else(|| Self {
            input: request.messages.clone(),
            iterations: 0,
            notes: VecDeque::new(),
            session: Session::new(),
        })
    }

    /// Stores the loop until its approvals are answered.
    fn wait(&self, session: &Session) {
        // Serializing cannot fail. If it did, the answers would not find the loop.
        session.set_part(PART, serde_json::to_value(self).unwrap_or(Value::Null));
    }
}

/// A loop during a run of its agent. If the run ends while approvals are open, also by an error or
/// because it is dropped, the loop waits for them: no call of theirs has started.
struct WaitingLoop<'l> {
    state: &'l LoopState,
    outer: &'l Session,
}

impl Drop for WaitingLoop<'_> {
    fn drop(&mut self) {
        if !open_requests(&self.state.session).is_empty() {
            self.state.wait(self.outer);
        }
    }
}

impl BoundedLoop {
    /// Creates a loop of at most 10 iterations.
    pub fn new(
        agent: impl Into<Arc<dyn AgentRun>>,
        condition: impl LoopCondition + 'static,
    ) -> Self {
        Self {
            agent: agent.into(),
            condition: Arc::new(condition),
            max_iterations: ITERATIONS_MAX,
            next: NEXT.to_owned(),
        }
    }

    /// Sets the maximum number of iterations; 0 acts like 1. The last response counts even if the
    /// condition never says that the task is done.
    #[must_use]
    pub fn max_iterations(mut self, max_iterations: u32) -> Self {
        self.max_iterations = max_iterations;
        self
    }

    /// Sets the request to go on, which follows the notes.
    #[must_use]
    pub fn next_message(mut self, message: impl Into<String>) -> Self {
        self.next = message.into();
        self
    }

    /// Runs the loop. The response has the messages of the last iteration and the usage of all.
    async fn iterate(
        &self,
        request: AgentRequest,
        updates: Option<mpsc::Sender<Update>>,
    ) -> Result<Response, RunError> {
        let outer = request.session.clone();
        // Like an agent, a loop takes one turn of a session at a time.
        let _turn = match &outer {
            Some(session) => Some(session.take_turn().await),
            None => None,
        };
        let mut usage: Option<TokenUsage> = None;
        let mut state = LoopState::resume(&request);
        let mut messages = request.messages.clone();
        loop {
            let session = state.session.clone();
            let once = AgentRequest { messages, session: Some(session), ..request.clone() };
            let response = self.iteration(once, &state, outer.as_ref(), updates.as_ref()).await?;
            if let Some(used) = response.usage {
                *usage.get_or_insert_default() += used;
            }
            let asks = response.approval_requests().next();
            if let Some(tool) = asks.map(|request| request.function_call.name.clone()) {
                let Some(outer) = &outer else {
                    // The answers would have to find the session of the iteration again.
                    let needs = format!("the user has to approve its call of `{tool}`");
                    return Err(RunError::NeedsInput(needs));
                };
                state.wait(outer);
                return Ok(Response { usage, ..response });
            }
            let decision = self.condition.decide(&response, state.iterations).await;
            state.iterations += 1;
            match decision.map_err(RunError::Other)? {
                LoopDecision::Continue { note } if state.iterations < self.max_iterations => {
                    add_note(&mut state.notes, state.iterations, &note);
                }
                decision => {
                    let (agent, iterations) = (self.agent.name(), state.iterations);
                    let is_done = decision == LoopDecision::Done;
                    tracing::info!(agent, iterations, is_done, "a loop has ended");
                    return Ok(Response { usage, ..response });
                }
            }
            if request.context.cancellation.is_cancelled() {
                return Err(RunError::Cancelled);
            }
            let next = Session::new();
            // The notes are content of the iteration.
            self.agent.carry_over(&state.session, &next);
            state.session = next;
            messages = state.input.clone();
            let progress = self.progress(&state.notes);
            if let Some(updates) = &updates {
                // If the reader is gone, the run is about to be dropped.
                let _ = updates.send(update_of(&progress)).await;
            }
            messages.extend(progress.into_messages());
        }
    }

    /// Makes one run. What the guard and the user have decided is the same in the session of the
    /// loop and in that of the iteration.
    async fn iteration(
        &self,
        request: AgentRequest,
        state: &LoopState,
        outer: Option<&Session>,
        updates: Option<&mpsc::Sender<Update>>,
    ) -> Result<Response, RunError> {
        let (Some(outer), Some(session)) = (outer, request.session.clone()) else {
            return self.once(request, updates).await;
        };
        let _waiting = WaitingLoop { state, outer };
        self.agent.carry_over(outer, &session);
        standing_rules(outer).into_iter().for_each(|rule| allow_always(&session, rule));
        let ended = self.once(request, updates).await;
        self.agent.carry_over(&session, outer);
        ended
    }

    async fn once(
        &self,
        request: AgentRequest,
        updates: Option<&mpsc::Sender<Update>>,
    ) -> Result<Response, RunError> {
        let Some(updates) = updates else { return self.agent.run(request).await };
        let mut stream = self.agent.stream(request);
        while let Some(update) = stream.next().await {
            // If the reader is gone, the run is about to be dropped.
            let _ = updates.send(update?).await;
        }
        stream.finish().await
    }

    /// Returns the message with the notes.
    fn progress(&self, notes: &VecDeque<(u32, String)>) -> Message {
        let mut text = String::new();
        if !notes.is_empty() {
            text.push_str("### Progress so far\n");
        }
        for (iteration, note) in notes {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{iteration}. {note}");
        }
        if !notes.is_empty() {
            text.push('\n');
        }
        text.push_str(&self.next);
        Message::user(text)
    }
}

/// Returns the update with a message of the loop, which separates the replies before and after it.
fn update_of(message: &Message) -> Update {
    Update {
        role: Some(message.role),
        deltas: message.contents.iter().cloned().map(Delta::Content).collect(),
        ..Update::default()
    }
}

/// Adds a note and drops the oldest if there are too many.
fn add_note(notes: &mut VecDeque<(u32, String)>, iteration: u32, note: &str) {
    let note = note.trim();
    if note.is_empty() {
        return;
    }
    if notes.len() >= NOTES_MAX {
        notes.pop_front();
    }
    notes.push_back((iteration, note.chars().take(NOTE_CHARS_MAX).collect()));
}

#[async_trait]
impl AgentRun for BoundedLoop {
    fn name(&self) -> &str {
        self.agent.name()
    }

    fn stream(&self, request: AgentRequest) -> RunStream {
        let bounded = self.clone();
        RunStream::of(|updates| async move { bounded.iterate(request, Some(updates)).await })
    }

    async fn run(&self, request: AgentRequest) -> Result<Response, RunError> {
        self.iterate(request, None).await
    }

    fn carry_over(&self, from: &Session, to: &Session) {
        self.agent.carry_over(from, to);
    }
}

impl From<BoundedLoop> for Arc<dyn AgentRun> {
    fn from(bounded: BoundedLoop) -> Self {
        Arc::new(bounded)
    }
}

impl std::fmt::Debug for BoundedLoop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BoundedLoop")
            .field("agent", &self.agent.name())
            .field("max_iterations", &self.max_iterations)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
