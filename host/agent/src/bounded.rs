//! Loops over runs whose context does not grow (`LOOP-64`).

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use tokio::sync::mpsc;

use crate::{
    AgentRequest, AgentRun, BoxError, IntoMessages as _, Message, Response, RunError, RunStream,
    Session, TokenUsage, Update,
};

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
/// must be where tools find it again, such as in files. A loop is an [`AgentRun`] itself. It does
/// not use the session of its request.
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
    /// 2,000 characters of it are kept.
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
        let mut usage: Option<TokenUsage> = None;
        let mut notes = VecDeque::new();
        let mut iteration = 0;
        loop {
            let mut messages = request.messages.clone();
            if iteration > 0 {
                messages.extend(self.progress(&notes).into_messages());
            }
            let once = AgentRequest { messages, session: Some(Session::new()), ..request.clone() };
            let response = self.once(once, updates.as_ref()).await?;
            if let Some(used) = response.usage {
                *usage.get_or_insert_default() += used;
            }
            if let Some(request) = response.approval_requests().next() {
                // The session of the iteration ends with it.
                let name = &request.function_call.name;
                let needs = format!("the user has to approve its call of `{name}`");
                return Err(RunError::NeedsInput(needs));
            }
            let decision = self.condition.decide(&response, iteration).await;
            iteration += 1;
            match decision.map_err(RunError::Other)? {
                LoopDecision::Continue { note } if iteration < self.max_iterations => {
                    add_note(&mut notes, iteration, &note);
                }
                decision => {
                    let (agent, is_done) = (self.agent.name(), decision == LoopDecision::Done);
                    tracing::info!(agent, iterations = iteration, is_done, "a loop has ended");
                    return Ok(Response { usage, ..response });
                }
            }
            if request.context.cancellation.is_cancelled() {
                return Err(RunError::Cancelled);
            }
        }
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
mod tests {
    use super::*;
    use crate::{
        Agent, ApprovalMode, Approvals, MessageContent, Reply, Role, RunContext, ScriptedClient,
    };

    fn model(replies: u32) -> ScriptedClient {
        let reply = |number| Reply {
            usage: Some(TokenUsage { total: 10, ..TokenUsage::default() }),
            ..Reply::text(format!("reply {number}"))
        };
        ScriptedClient::new((0..replies).map(reply)).recording()
    }

    fn bounded(model: &ScriptedClient) -> BoundedLoop {
        let agent = Agent::builder(model.clone()).name("worker").build().unwrap();
        let condition = |response: &Response, _| match response.text() == "reply 24" {
            true => LoopDecision::Done,
            false => LoopDecision::Continue { note: format!(" did {} ", response.text()) },
        };
        BoundedLoop::new(agent, condition)
    }

    #[tokio::test]
    async fn each_iteration_sees_the_input_and_bounded_notes_only() {
        let model = model(30);
        let looped = bounded(&model).max_iterations(100).next_message("Go on.");
        let session = Session::with_id("s");
        let request = AgentRequest::new("task").session(&session);
        let response = looped.run(request).await.unwrap();
        assert_eq!((response.text().as_str(), response.usage.unwrap().total), ("reply 24", 250));
        assert_eq!(response.messages.len(), 1);
        let requests = model.requests();
        let texts = |index: usize| -> Vec<String> {
            requests[index].messages.iter().map(|message| message.text()).collect()
        };
        assert_eq!(texts(0), ["task"]);
        let second = "### Progress so far\n1. did reply 0\n2. did reply 1\n\nGo on.";
        assert_eq!(texts(2), ["task", second]);
        assert_eq!(texts(24).len(), 2);
        assert!(
            texts(24)[1].starts_with("### Progress so far\n5. did reply 4\n"),
            "{:?}",
            texts(24)
        );
        assert_eq!(session, Session::with_id("s"));
    }

    #[tokio::test]
    async fn the_number_of_iterations_is_limited() {
        for (limit, made) in [(None, 10), (Some(3), 3), (Some(0), 1)] {
            let model = model(30);
            let looped = bounded(&model);
            let looped = match limit {
                Some(limit) => looped.max_iterations(limit),
                None => looped,
            };
            let response = looped.stream(AgentRequest::new("task")).finish().await.unwrap();
            assert_eq!(response.text(), format!("reply {}", made - 1));
            assert_eq!(model.requests().len(), made);
        }
    }

    #[test]
    fn notes_are_cut_and_blank_ones_left_out() {
        let mut notes = VecDeque::new();
        add_note(&mut notes, 1, " \n");
        add_note(&mut notes, 2, &"ä".repeat(3000));
        assert_eq!((notes.len(), notes[0].1.chars().count()), (1, 2000));
        assert_eq!(bounded(&model(0)).progress(&VecDeque::new()).text(), NEXT);
    }

    #[tokio::test]
    async fn a_loop_ends_when_it_is_canceled_or_needs_an_approval() {
        let model = model(30);
        let context = RunContext::default();
        let cancellation = context.cancellation.clone();
        let agent = Agent::builder(model.clone()).build().unwrap();
        let looped = BoundedLoop::new(agent, move |_: &Response, _| {
            cancellation.cancel();
            LoopDecision::Continue { note: String::new() }
        });
        let ended = looped.run(AgentRequest::new("task").context(context)).await;
        assert!(matches!(ended, Err(RunError::Cancelled)), "{ended:?}");
        assert_eq!(model.requests().len(), 1);

        let call = MessageContent::call("1", "todos_get_all", "{}");
        let reply =
            Reply { messages: vec![Message::new(Role::Assistant, vec![call])], ..Reply::default() };
        let agent = Agent::builder(ScriptedClient::new([reply]))
            .approvals(Approvals::by_default(ApprovalMode::Always))
            .context_provider(crate::TodoList::new().unwrap())
            .build()
            .unwrap();
        let looped = BoundedLoop::new(agent, |_: &Response, _: u32| LoopDecision::Done);
        let ended = looped.run(AgentRequest::new("task")).await.unwrap_err();
        assert_eq!(ended.to_string(), "the user has to approve its call of `todos_get_all`");
    }
}
