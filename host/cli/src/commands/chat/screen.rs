//! Output of a turn. The model's text goes to standard output as it arrives; the start and the end
//! of each call go to standard error.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cofferdam::Host;
use cofferdam::models::PlannedRetry;
use cofferdam::text::beginning;
use cofferdam_agent::compaction::CompactionReport;
use cofferdam_agent::middleware::{FunctionContext, FunctionError, FunctionSignal, FunctionValue};
use cofferdam_agent::{
    ChatErrorKind, Delta, FunctionCall, FunctionResult, MessageContent, Middleware, Next,
    ReachedLimit, Role, Update,
};
use cofferdam_engine::Plugin;
use cofferdam_terminal::MarkdownStyler;
use cofferdam_tool::Toolset;
use parking_lot::Mutex;

use crate::{explain, file_changes, print, progress};

/// Maximum number of characters that are shown of a call's arguments and result.
const SHOWN_CHARS_MAX: usize = 160;
/// Maximum number of results that `/show` can show, and maximum bytes of each.
const RESULTS_MAX: usize = 100;
const RESULT_BYTES_MAX: usize = 64 * 1024;

/// Screen of a turn, shared by the reader of the turn and the middleware that sees its calls.
pub(super) struct Screen {
    /// True if the model's text is shown.
    shows_text: bool,
    /// True if Markdown is styled.
    is_styled: bool,
    /// All tools, to detect calls of unknown ones.
    toolset: Toolset,
    /// Notes about sources that may have an unknown tool.
    possible_owners: Vec<String>,
    /// Plugins that calls are of.
    plugins: Vec<Arc<Plugin>>,
    /// Configuration of the command.
    config: Option<PathBuf>,
    state: Mutex<ScreenState>,
    results: Mutex<ShownResults>,
}

#[derive(Default)]
struct ScreenState {
    /// True if standard output is in the middle of a line.
    is_in_line: bool,
    markdown: MarkdownStyler,
    /// Ids and names of the calls of the current reply, by the number of the call in it. They may
    /// arrive separately.
    arriving: HashMap<usize, (String, String)>,
    /// Names of the tools whose results are missing, by call id. A model may use an id twice.
    called: HashMap<String, VecDeque<String>>,
    /// Ids of calls that were shown.
    shown: HashSet<String>,
}

impl ScreenState {
    /// Adds a part of a call of the current reply. The id may arrive after the name.
    fn add_part(&mut self, index: usize, part: &FunctionCall) {
        let (id, name) = self.arriving.entry(index).or_default();
        if !id.is_empty() && !name.is_empty() {
            return;
        }
        for (known, new) in [(&mut *id, &part.call_id), (&mut *name, &part.name)] {
            if known.is_empty() {
                known.clone_from(new);
            }
        }
        if !id.is_empty() && !name.is_empty() {
            self.called.entry(id.clone()).or_default().push_back(name.clone());
        }
    }

    fn add_call(&mut self, call: &FunctionCall) {
        self.called.entry(call.call_id.clone()).or_default().push_back(call.name.clone());
    }

    /// Returns the name of the first call with this id that has no result, and counts it as having
    /// one.
    fn take_name(&mut self, id: &str) -> Option<String> {
        self.called.get_mut(id)?.pop_front()
    }
}

/// Calls with their results, as `/show` prints them; the last one is last.
#[derive(Default)]
struct ShownResults(VecDeque<String>);

impl ShownResults {
    fn push(&mut self, call: &str, result: &str) {
        let start = result.get(..result.floor_char_boundary(RESULT_BYTES_MAX)).unwrap_or(result);
        let cut = if start.len() < result.len() { "\n…" } else { "" };
        if self.0.len() == RESULTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(print::with_prefix(call, &format!("{start}{cut}")));
    }
}

impl Screen {
    pub(super) fn new(shows_text: bool, tools: &Host, config: Option<PathBuf>) -> Self {
        let (toolset, possible_owners) = (tools.toolset().clone(), tools.possible_owners());
        Self {
            shows_text,
            is_styled: print::has_styled_output(),
            toolset,
            possible_owners,
            plugins: tools.plugins().to_vec(),
            config,
            state: Mutex::default(),
            results: Mutex::default(),
        }
    }

    /// Shows that the model is thinking, until its reply begins.
    pub(super) fn wait_for_model(&self) {
        if self.shows_text {
            progress::show("waiting for the model", None);
        }
    }

    /// Shows an update of the turn.
    pub(super) fn update(&self, update: &Update) -> anyhow::Result<()> {
        // The next reply numbers its calls from the beginning.
        if update.role == Some(Role::Tool) {
            self.state.lock().arriving.clear();
        }
        for delta in &update.deltas {
            match delta {
                // The loop's own messages, such as a request to correct an answer.
                Delta::Text(_) | Delta::Content(MessageContent::Text(_))
                    if update.role == Some(Role::User) =>
                {
                    self.end_line()?;
                }
                Delta::Text(text) => self.text(text)?,
                Delta::Call { index, call } => self.state.lock().add_part(*index, call),
                Delta::Content(MessageContent::Text(text)) => {
                    self.end_line()?;
                    self.text(&text.text)?;
                }
                Delta::Content(MessageContent::FunctionCall(call)) => self.note_call(call),
                Delta::Content(MessageContent::FunctionResult(result)) => {
                    self.result(result)?;
                    self.wait_for_model();
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Ends the current line of the model's text, if there is one.
    pub(super) fn end_line(&self) -> anyhow::Result<()> {
        progress::clear();
        let mut state = self.state.lock();
        let end = state.markdown.finish();
        if !end.is_empty() {
            print::unescaped(end.as_bytes())?;
        }
        if std::mem::take(&mut state.is_in_line) { print::more("\n") } else { Ok(()) }
    }

    /// Ends the output of the turn.
    pub(super) fn end_turn(&self) -> anyhow::Result<()> {
        self.end_line()?;
        *self.state.lock() = ScreenState::default();
        Ok(())
    }

    fn text(&self, text: &str) -> anyhow::Result<()> {
        if !self.shows_text || text.is_empty() {
            return Ok(());
        }
        progress::clear();
        let mut state = self.state.lock();
        state.is_in_line = !text.ends_with('\n');
        if !self.is_styled {
            return print::more(text);
        }
        let text = state.markdown.push(&print::printable(text));
        print::unescaped(text.as_bytes())
    }

    /// Remembers the name of a call for its result.
    pub(super) fn note_call(&self, call: &FunctionCall) {
        self.state.lock().add_call(call);
    }

    /// Shows the result of a call that was not run, and was therefore not shown yet: its tool does
    /// not exist, or the user denied it.
    fn result(&self, result: &FunctionResult) -> anyhow::Result<()> {
        let name = {
            let mut state = self.state.lock();
            let name = state.take_name(&result.call_id);
            // Each call has one result. A model may reuse the id for a later call.
            if state.shown.remove(&result.call_id) {
                return Ok(());
            }
            name
        };
        self.end_line()?;
        print::note(&format!("> {}", short(name.as_deref().unwrap_or("a call"))));
        print::note(&format!("  not run: {}", short(&result.result)));
        if name.is_some_and(|name| self.toolset.definition(&name).is_err()) {
            self.possible_owners.iter().for_each(|owner| print::note(owner));
        }
        Ok(())
    }

    /// Says that a request to the model failed and is sent again.
    pub(super) fn retry(&self, planned: &PlannedRetry<'_>) {
        let what = match planned.error.kind {
            ChatErrorKind::Overloaded => {
                "the provider limits the rate of requests or is overloaded"
            }
            ChatErrorKind::Connection => "the provider cannot be reached",
            _ => "the provider failed",
        };
        let _ = self.end_line();
        print::note(&format!(
            "{what}; retry {} of {} in {}",
            planned.number,
            planned.retries_max,
            print::time(planned.pause)
        ));
    }

    /// Says that the model has to answer without tools.
    pub(super) fn limit(&self, reached: ReachedLimit) {
        let why = match reached {
            ReachedLimit::Iterations => "the limit of --max-iterations is reached",
            ReachedLimit::FunctionCalls => "the limit of calls is reached",
            ReachedLimit::Duration => "the time limit is reached",
            ReachedLimit::ConsecutiveErrors => "too many rounds of calls failed in a row",
            _ => "a limit is reached",
        };
        let _ = self.end_line();
        print::note(&format!("{why}; the model has to answer without tools"));
    }

    /// Announces that the conversation was shortened for the model.
    pub(super) fn compacted(&self, report: &CompactionReport) {
        let _ = self.end_line();
        let how = if report.is_summarized { "summarized" } else { "shortened" };
        print::note(&format!(
            "the older part of the conversation was {how} for the model: about {} tokens are now {}",
            report.tokens_before, report.tokens_after
        ));
    }

    /// Returns the number of results that can be shown.
    pub(super) fn result_count(&self) -> usize {
        self.results.lock().0.len()
    }

    /// Returns a call with its result; 1 is the last call.
    pub(super) fn earlier_result(&self, back: usize) -> Option<String> {
        let results = self.results.lock();
        let index = results.0.len().checked_sub(back)?;
        results.0.get(index).cloned()
    }

    fn started(&self, call_id: &str, name: &str, arguments: &str) {
        self.state.lock().shown.insert(call_id.to_owned());
        // Text of the model comes before its calls. A closed standard output is reported with the
        // next text.
        let _ = self.end_line();
        print::note(format!("> {name} {}", short(arguments)).trim_end());
    }
}

/// Shows when each call starts and how it ends. It runs inside the conversion of failures, so it
/// sees the true outcome.
pub(super) struct ShowCalls(pub(super) std::sync::Arc<Screen>);

#[async_trait]
impl Middleware<FunctionContext> for ShowCalls {
    async fn process(
        &self,
        context: &mut FunctionContext,
        next: Next<'_, FunctionContext>,
    ) -> Result<(), FunctionSignal> {
        // Lets the reader of the turn print the model's text first.
        tokio::task::yield_now().await;
        self.0.started(&context.call_id, context.tool.name.as_str(), &context.arguments.to_text());
        let started = Instant::now();
        let ended = next.run(context).await;
        progress::clear();
        let end = describe_outcome(&ended, context.result.as_ref());
        print::note(&format!("  {end}, {}", time(started.elapsed())));
        let arguments = context.arguments.to_text();
        let call = format!("{} {arguments}", context.tool.name);
        let result = context.result.as_ref().map_or(end, |value| value.text().to_string());
        let results = &self.0.results;
        results.lock().push(&call, &result);
        if let Some(record) = &context.record {
            if record.is_dry_run && !record.files.is_empty() {
                file_changes::show(record);
            }
            record.store_failures.iter().for_each(|failure| print::note(&format!("  {failure}")));
            explain::denials(record, &self.0.plugins, self.0.config.as_deref());
        }
        ended
    }
}

/// Returns the outcome of a call in a few words, with the reason of a failure.
pub(crate) fn describe_outcome(
    ended: &Result<(), FunctionSignal>,
    result: Option<&FunctionValue>,
) -> String {
    match ended {
        Ok(()) => value(result),
        Err(signal) => signalled(signal),
    }
}

fn value(value: Option<&FunctionValue>) -> String {
    let bytes = value.map_or(0, |value| value.text().len());
    let word = if matches!(value, Some(FunctionValue::Error(_))) { "error" } else { "ok" };
    format!("{word}, {}", print::bytes(u64::try_from(bytes).unwrap_or(u64::MAX)))
}

fn signalled(signal: &FunctionSignal) -> String {
    match signal {
        FunctionSignal::Cancelled => "stopped".to_owned(),
        FunctionSignal::Terminate(Some(FunctionValue::Error(_))) => {
            "error, and the turn ends".to_owned()
        }
        FunctionSignal::Terminate(_) => "ok, and the turn ends".to_owned(),
        FunctionSignal::FailClosed(error) => {
            format!("the turn ends: {}", short(&error.to_string()))
        }
        FunctionSignal::Error(FunctionError::Failure(failure)) => {
            format!("the tool reported a failure: {}", short(&failure.message))
        }
        FunctionSignal::Error(FunctionError::Tool(error)) => short(&error.to_string()),
        FunctionSignal::Error(FunctionError::InvalidArguments(invalid)) => {
            format!("not run: {}", short(&invalid.to_string()))
        }
        FunctionSignal::Error(other) => format!("failed: {}", short(&other.to_string())),
    }
}

fn time(time: Duration) -> String {
    match time.as_millis() {
        millis @ 0..10_000 => format!("{millis} ms"),
        millis => format!("{} s", millis / 1000),
    }
}

/// Returns the beginning of a string, in one line.
pub(crate) fn short(text: &str) -> String {
    beginning(&text.replace(['\n', '\t'], " "), SHOWN_CHARS_MAX).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(short("a\nb\tc"), "a b c");
        let long = "é".repeat(SHOWN_CHARS_MAX + 1);
        assert_eq!(short(&long), format!("{}…", "é".repeat(SHOWN_CHARS_MAX)));
        assert_eq!(short(&"é".repeat(SHOWN_CHARS_MAX)).chars().count(), SHOWN_CHARS_MAX);
    }

    #[test]
    fn times_have_units() {
        assert_eq!(time(Duration::from_micros(1500)), "1 ms");
        assert_eq!(time(Duration::from_secs(75)), "75 s");
    }
}
