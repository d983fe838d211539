//! Lets a running tool ask the operator at the terminal, and shows what it logs.
//!
//! A form is asked field by field. Input is decoded like the arguments of a model: `2` becomes a
//! number if the schema declares a number, and an empty line stands for the default. If the schema
//! rejects the answers, the form is asked again.

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::ask::{AskError, Asker, LogLevel, LogSink, Question, QuestionKind};
use cofferdam_tool::invoke::{Progress, ProgressSink};
use cofferdam_tool::prompt::{FirstAnswer, OperatorPrompt, PendingPrompts, PromptKind};
use cofferdam_tool::{CallContext, DecodeOptions, InputSchema};
use serde_json::{Map, Value, json};

use crate::commands::chat::short;
use crate::inspector::{self, PromptedCall};
use crate::{ask, print, progress};
use cofferdam_terminal::InputKind;

/// Caller of the tools of a conversation, as pages show it.
const CALLER: &str = "the model of this conversation";
/// Maximum number of times that a form is asked while its answers are invalid.
const ATTEMPTS_MAX: u32 = 3;

/// The terminal, which shows what tools report.
struct Terminal;

/// The operator at the terminal and on the pages of an inspector, who fills in forms.
#[derive(Clone)]
struct OperatorAsker {
    prompts: Option<PendingPrompts>,
    /// Tool that asks, if it is known, and its arguments as JSON.
    tool: String,
    arguments: String,
}

/// Adds the operator at the terminal to `context`, if there is one, and sinks that show what tools
/// log and their progress.
pub(crate) fn attended(context: CallContext) -> CallContext {
    CallContext { asker: asker(None), log: Some(log()), progress: Some(progress()), ..context }
}

/// Returns the operator, or `None` if there is neither a terminal nor a page to ask at.
pub(crate) fn asker(prompts: Option<&PendingPrompts>) -> Option<Arc<dyn Asker>> {
    let (tool, arguments) = (String::new(), String::new());
    let operator = OperatorAsker { prompts: prompts.cloned(), tool, arguments };
    inspector::is_possible(prompts).then(|| Arc::new(operator) as Arc<dyn Asker>)
}

/// Returns the sink that shows log messages of tools.
pub(crate) fn log() -> Arc<dyn LogSink> {
    Arc::new(Terminal)
}

/// Returns the sink that shows the progress of tools.
pub(crate) fn progress() -> Arc<dyn ProgressSink> {
    Arc::new(Terminal)
}

impl ProgressSink for Terminal {
    fn report(&self, _call_id: &str, progress: Progress) {
        let Progress { done, total, message } = progress;
        let share = total.filter(|total| *total > 0.0).map(|total| done / total);
        let total = total.map(|total| format!(" of {total}")).unwrap_or_default();
        let message = message.map(|message| format!(": {}", short(&message))).unwrap_or_default();
        let label = format!("{done}{total}{message}");
        if !progress::show(&label, share) {
            print::note(&format!("  {label}"));
        }
    }
}

impl LogSink for Terminal {
    fn log(&self, _call_id: &str, level: LogLevel, message: &str) {
        print::note(&format!("{} of the tool: {}", word(level), one_line(message)));
    }
}

fn word(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Notice => "notice",
        LogLevel::Warning => "warning",
        LogLevel::Error => "error",
        LogLevel::Critical => "critical",
        LogLevel::Alert => "alert",
        LogLevel::Emergency => "emergency",
    }
}

#[async_trait]
impl Asker for OperatorAsker {
    fn can_ask(&self, kind: QuestionKind) -> bool {
        kind == QuestionKind::Elicitation
    }

    async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Value>, AskError> {
        if let Some(other) = questions.iter().find(|question| !self.can_ask(question.kind)) {
            return Err(AskError::Unsupported(other.kind));
        }
        let line = async |prompt: String, reads: InputKind| match reads {
            InputKind::Choice => ask::choice_later(&prompt).await,
            _ => ask::ask_async(&prompt).await,
        };
        let mut answers = Vec::new();
        for question in &questions {
            let at_terminal = fill_in(&question.parameters, &line);
            let pages = self.prompts.as_ref().map(|prompts| (prompts, self.prompt(question)));
            answers.push(match inspector::first_answer(pages, at_terminal).await {
                Some(FirstAnswer::Operator(answer)) => answer.into_elicitation(),
                Some(FirstAnswer::Elsewhere(answer)) => answer?,
                None => return Err(AskError::Failed("there was no answer".to_owned())),
            });
        }
        Ok(answers)
    }

    fn for_call(&self, tool: &str, arguments: &str) -> Option<Arc<dyn Asker>> {
        let (tool, arguments) = (tool.to_owned(), arguments.to_owned());
        self.prompts.is_some().then(|| Arc::new(Self { tool, arguments, ..self.clone() }) as _)
    }
}

impl OperatorAsker {
    /// Returns the prompt of a question for the pages.
    fn prompt(&self, question: &Question) -> OperatorPrompt {
        let message = question.parameters.get("message").and_then(Value::as_str);
        let call = PromptedCall {
            tool: &self.tool,
            arguments: &self.arguments,
            caller: CALLER,
            session: None,
        };
        call.form(PromptKind::form(question), message.unwrap_or_default())
    }
}

/// Asks one form. `line` asks for one line. Returns the result of MCP's `elicitation/create`.
async fn fill_in(
    parameters: &Map<String, Value>,
    line: &impl AsyncFn(String, InputKind) -> String,
) -> Result<Value, AskError> {
    let schema = parameters.get("requestedSchema").unwrap_or(&Value::Null);
    let compiled = InputSchema::compile("form", &schema.to_string())
        .map_err(|error| AskError::Failed(format!("the form cannot be shown: {error}")))?;
    let message = parameters.get("message").and_then(Value::as_str).unwrap_or_default();
    print::note(&print::with_prefix("the tool asks:", message));
    let answer = line("Answer it? [y/N]: ".to_owned(), InputKind::Choice).await;
    if !matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes") {
        return Ok(json!({"action": "decline"}));
    }
    let nothing = Map::new();
    let fields = schema.get("properties").and_then(Value::as_object).unwrap_or(&nothing);
    for _ in 0..ATTEMPTS_MAX {
        let mut typed = Map::new();
        for (name, field) in fields {
            let answer = line(prompt(name, field), InputKind::Text).await;
            typed.extend(read(field, &answer).map(|value| (name.clone(), value)));
        }
        match compiled.decode_value("form", &Value::Object(typed), &DecodeOptions::default()) {
            Ok(form) => return Ok(json!({"action": "accept", "content": form.into_value()})),
            Err(invalid) => {
                for problem in invalid.problems() {
                    print::note(&format!("{}: {}", problem.path, problem.message));
                }
            }
        }
    }
    Ok(json!({"action": "cancel"}))
}

/// Parses the answer for a field. Returns `None` if it is empty.
fn read(field: &Value, typed: &str) -> Option<Value> {
    if typed.is_empty() {
        return None;
    }
    let is_list = field.get("type").and_then(Value::as_str) == Some("array");
    Some(if is_list { typed.split(',').map(str::trim).collect() } else { typed.into() })
}

/// Returns the question for one field, with its choices and its default.
fn prompt(name: &str, field: &Value) -> String {
    let text = |key: &str| field.get(key).and_then(Value::as_str);
    let mut prompt = format!("  {}", one_line(text("title").unwrap_or(name)));
    if let Some(description) = text("description") {
        prompt = format!("{prompt}, {}", one_line(description));
    }
    let choices = choices(field);
    if !choices.is_empty() {
        let several =
            if field.get("items").is_some() { ", several with commas between" } else { "" };
        prompt = format!("{prompt} ({}{several})", one_line(&choices.join(" | ")));
    }
    match field.get("default") {
        None => prompt + ": ",
        Some(Value::String(default)) => format!("{prompt} [{}]: ", one_line(default)),
        Some(default) => format!("{prompt} [{default}]: "),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the choices of a field: each value, with its title if it has one.
fn choices(field: &Value) -> Vec<String> {
    let of = field.get("items").unwrap_or(field);
    let list =
        |key: &str| of.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let plain = list("enum").iter().filter_map(Value::as_str).map(str::to_owned);
    let titled = list("oneOf").iter().chain(list("anyOf")).filter_map(|choice| {
        let value = choice.get("const")?.as_str()?;
        Some(match choice.get("title").and_then(Value::as_str) {
            Some(title) => format!("{value} = {title}"),
            None => value.to_owned(),
        })
    });
    plain.chain(titled).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Fills in a form with these lines. Returns the result and the questions.
    fn filled(schema: Value, lines: &[&str]) -> (Value, Vec<String>) {
        let (asked, mut rest) = (RefCell::new(Vec::new()), RefCell::new(lines.iter()));
        let line = async |prompt: String, _: InputKind| {
            asked.borrow_mut().push(prompt);
            rest.borrow_mut().next().map_or(String::new(), ToString::to_string)
        };
        let parameters = json!({"message": "Who?", "requestedSchema": schema});
        let filling = fill_in(parameters.as_object().unwrap(), &line);
        let answer = futures_util::FutureExt::now_or_never(filling).unwrap().unwrap();
        assert_eq!(rest.get_mut().next(), None, "every line is read");
        (answer, asked.into_inner())
    }

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "title": "Your name", "description": "in full"},
                "age": {"type": "integer", "minimum": 18},
                "news": {"type": "boolean", "default": true},
                "color": {"type": "string", "enum": ["red", "green"]},
                "days": {"type": "array", "items": {"anyOf": [{"const": "mo", "title": "Monday"}, {"const": "tu"}]}},
            },
            "required": ["name"],
        })
    }

    #[test]
    fn a_form_is_asked_field_by_field() {
        let (answer, asked) = filled(schema(), &["y", "Ada", "36", "", "green", "mo, tu"]);
        let content =
            json!({"name": "Ada", "age": 36, "news": true, "color": "green", "days": ["mo", "tu"]});
        assert_eq!(answer, json!({"action": "accept", "content": content}));
        assert_eq!(
            asked[1..],
            [
                "  Your name, in full: ",
                "  age: ",
                "  news [true]: ",
                "  color (red | green): ",
                "  days (mo = Monday | tu, several with commas between): ",
            ]
        );
    }

    #[test]
    fn what_does_not_fit_is_asked_again_and_not_for_ever() {
        let lines = ["yes", "Ada", "17", "", "", "", "Ada", "18", "false", "", ""];
        let (answer, _) = filled(schema(), &lines);
        assert_eq!(answer["content"], json!({"name": "Ada", "age": 18, "news": false}));
        let (answer, asked) = filled(schema(), &["y"]);
        assert_eq!((answer, asked.len()), (json!({"action": "cancel"}), 16));
    }

    #[test]
    fn silence_declines() {
        assert_eq!(filled(schema(), &[]).0, json!({"action": "decline"}));
    }
}
