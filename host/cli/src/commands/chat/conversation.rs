//! A conversation, with prompts from the terminal or a pipe.

use std::path::Path;

use cofferdam_agent::{
    Message, Mode, PlanMode, Scope, Session, TodoItem, TodoList, forbid_again, standing_rules,
};
use cofferdam_tool::Toolset;

use super::turn::{Conversation, TurnEnd};
use crate::exit::{ConsentError, Exit, UsageError};
use crate::{ask, lines, print};
use cofferdam_terminal::{Input, InputKind, is_interactive, read_line};

const PROMPT: &str = "you> ";

const HELP: &str = "\
/tools         List the tools of the model
/show [N]      Show the result of the last call, or of the call N calls back
/model [NAME]  Show the model, or continue with another one
/attach [FILE] Send a text, an image, a PDF or audio with the next prompt, or no file after all
/todos         Show the todo list of the model
/mode [MODE]   Show the mode, or change it: plan or execute
/pin TEXT      Keep TEXT in front of the model, however long the conversation becomes
/rules         List the standing approvals
/forget        Revoke the standing approvals
/labels        Show the labels of the conversation: its integrity, and who may read it
/usage         Show the tokens used
/clear         Start a new conversation
/quit          Exit; Ctrl-D does the same
A prompt may be pasted with several lines; a line that ends in \\ continues on the next one.
The up and down keys show earlier prompts. Ctrl-C stops a turn.";

/// Takes turns until the input ends or the user quits. Without a terminal, it also ends after the
/// first turn whose outcome is not [`TurnEnd::Answered`]. `save` stores the session after each turn
/// and each command that changes it.
pub(super) async fn run(
    talk: &mut Conversation,
    toolset: &Toolset,
    is_saved: bool,
    save: impl Fn(&Session) -> anyhow::Result<()>,
) -> anyhow::Result<Exit> {
    let is_person = is_interactive();
    if is_person && !ask::is_possible() {
        let message =
            format!("a conversation asks for prompts, and {}; pass PROMPT", ask::why_impossible());
        return Err(ConsentError(message).into());
    }
    let mut interrupted = false;
    loop {
        let text = match read(talk, is_person).await? {
            Input::Line(text) => text,
            // A second Ctrl-C in a row ends the conversation.
            Input::Interrupted if interrupted || !is_person => return Ok(Exit::Interrupted),
            Input::Interrupted => {
                print::note("Ctrl-C once more ends the conversation");
                interrupted = true;
                continue;
            }
            Input::End => return Ok(Exit::Ok),
        };
        interrupted = false;
        match text.trim() {
            "" => {}
            "/quit" | "/exit" => return Ok(Exit::Ok),
            command if command.starts_with('/') => {
                let before = talk.session.change_count();
                run_command(command, talk, toolset, is_saved);
                // A revoked approval must not come back in the next process.
                if talk.session.change_count() != before {
                    save(&talk.session)?;
                }
            }
            _ => {
                let end = talk.turn(&text).await?;
                save(&talk.session)?;
                // No user is there to react to the outcome.
                if !is_person && !matches!(end, TurnEnd::Answered) {
                    return Ok(super::exit_of(&end));
                }
                note_unsent(talk);
            }
        }
    }
}

async fn read(talk: &mut Conversation, is_person: bool) -> Result<Input, UsageError> {
    let line = async {
        match is_person {
            true => Ok(read_line(PROMPT, InputKind::Prompt).await),
            false => line_of_pipe().await,
        }
    };
    tokio::select! {
        typed = line => typed,
        () = talk.interrupts.next() => Ok(Input::Interrupted),
    }
}

/// Reads a prompt from a pipe. A line that ends in `\` continues on the next one.
async fn line_of_pipe() -> Result<Input, UsageError> {
    let mut text = String::new();
    while let Some(line) = lines::next().await? {
        match line.strip_suffix('\\') {
            Some(line) => text = text + line + "\n",
            None => return Ok(Input::Line(text + &line)),
        }
    }
    Ok(Input::End)
}

fn run_command(command: &str, talk: &mut Conversation, toolset: &Toolset, is_saved: bool) {
    let (command, argument) = command.split_once(' ').unwrap_or((command, ""));
    let argument = argument.trim();
    match command {
        "/show" => show_result(argument, talk),
        "/model" if argument.is_empty() => print::note(&talk.model),
        "/model" => match talk.change_model(argument) {
            Ok(()) => print::note(&format!("the model is now {}", talk.model)),
            Err(error) => print::error(&error),
        },
        "/attach" if argument.is_empty() && talk.attached.is_empty() => {
            print::note("write which file: /attach FILE");
        }
        "/attach" if argument.is_empty() => {
            talk.attached.clear();
            print::note("no file is sent with the next prompt");
        }
        "/attach" => match cofferdam::attachment(Path::new(argument)) {
            Ok(content) => {
                talk.attached.push(content);
                print::note("the model gets the file with the next prompt");
            }
            Err(error) => print::error(&error.into()),
        },
        "/todos" => show_todos(&talk.session),
        "/mode" => change_mode(argument, talk),
        "/pin" if argument.is_empty() => print::note("write what to keep: /pin TEXT"),
        "/pin" => {
            talk.pinned.push(Message::user(argument).pinned());
            print::note("the model gets this with the next prompt and keeps it");
        }
        "/help" => print::note(HELP),
        "/tools" => show_tools(toolset),
        "/rules" => show_rules(&talk.session),
        "/labels" if talk.decisions.is_none() => {
            print::note("labels are off; start the chat with --labels")
        }
        "/labels" => crate::commands::labels::show(&talk.session),
        "/forget" => {
            for rule in standing_rules(&talk.session) {
                forbid_again(&talk.session, &rule);
            }
            print::note("all standing approvals are revoked");
        }
        "/usage" => {
            print::note(&super::turn::tokens(&talk.used));
        }
        "/clear" if is_saved => {
            print::note("this session is saved; start another one with --session NAME");
        }
        "/clear" => {
            talk.session = Session::new();
            print::note("this is a new conversation, without standing approvals");
        }
        other => print::note(&format!("unknown command {other}\n{HELP}")),
    }
}

/// Says that the model has not received what was to be sent with the prompt.
fn note_unsent(talk: &Conversation) {
    if !talk.attached.is_empty() {
        print::note(
            "the attached files are sent again with the next prompt; /attach without a file drops \
             them",
        );
    }
    if !talk.pinned.is_empty() {
        print::note("the pinned facts are sent again with the next prompt");
    }
}

/// Shows the result of an earlier call; `typed` counts back from the last one, which is 1.
fn show_result(typed: &str, talk: &Conversation) {
    let back = if typed.is_empty() { Ok(1) } else { typed.parse() };
    match back.ok().and_then(|back| talk.screen.earlier_result(back)) {
        Some(result) => print::note(&result),
        None => print::note(&format!(
            "there is no such call; {} can be shown",
            print::counted(talk.screen.result_count(), "result")
        )),
    }
}

fn show_tools(toolset: &Toolset) {
    if toolset.definitions().len() == 0 {
        print::note("there are no tools besides those of memory files, todos and plan mode");
    }
    for definition in toolset.definitions() {
        let asks = if toolset.needs_approval(definition.name.as_str()) { "  (asks)" } else { "" };
        let description = definition.description.lines().next().unwrap_or_default();
        print::note(&format!("{}{asks}  {}", definition.name, super::screen::short(description)));
    }
}

fn show_todos(session: &Session) {
    let items = TodoList::items(session);
    if items.is_empty() {
        print::note("there are no todos; the model writes them if the chat has --todos");
    }
    for TodoItem { id, title, is_complete, .. } in items {
        let mark = if is_complete { "x" } else { " " };
        print::note(&format!("[{mark}] {id} {title}"));
    }
}

fn change_mode(typed: &str, talk: &Conversation) {
    let Some(plan_mode) = talk.agents.plan_mode() else {
        return print::note("there is no plan mode; start the chat with --plan");
    };
    match typed {
        "" => print::note(plan_mode.of(&talk.session).as_str()),
        _ => match typed.parse::<Mode>() {
            Ok(mode) => {
                PlanMode::set(&talk.session, mode);
                print::note(&format!("the mode is now {}", mode.as_str()));
            }
            Err(error) => print::note(&error.to_string()),
        },
    }
}

fn show_rules(session: &Session) {
    let rules = standing_rules(session);
    if rules.is_empty() {
        print::note("there are no standing approvals");
    }
    for rule in rules {
        match rule {
            Scope::Tool { name, origin } => {
                print::note(&format!("every call of `{name}` ({origin})"))
            }
            Scope::Exactly { name, origin, arguments } => {
                print::note(&format!("`{name}` with {arguments} ({origin})"));
            }
            Scope::Matching { name, origin, arguments } => {
                let patterns = serde_json::to_string(&arguments).unwrap_or_default();
                print::note(&format!("`{name}` with arguments like {patterns} ({origin})"));
            }
        }
    }
}
