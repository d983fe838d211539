//! Todo list of a session (`LOOP-62`).

use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::ToolDefinition;
use cofferdam_tool::declaration::DeclarationError;
use cofferdam_tool::label::StatedLabels;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::announcement;
use super::tools::{SessionFunctions, SessionTools, compiled, declare};
use crate::{AfterRun, BeforeRun, BoxError, ContextProvider, Session};

/// Source id, and key of the list in the session's state.
const SOURCE_ID: &str = "todos";
/// Maximum number of items. A longer list is a document, not a list of what to do next.
const ITEMS_MAX: usize = 200;
/// Longest title and longest reason, in characters.
const TITLE_CHARS_MAX: usize = 300;
/// Longest description, in characters.
const DESCRIPTION_CHARS_MAX: usize = 2000;
/// Name of the tool that adds items.
const ADD: &str = "todos_add";
/// Title of the announcement.
const HEADING: &str = "### Current todo list";
/// Instructions for the model.
const INSTRUCTIONS: &str = "You have a todo list for this conversation. For a task of several \
steps, add the steps with `todos_add` first, and complete each with `todos_complete` when it is \
done. Remove items that are no longer needed.";

/// Gives the model a todo list, which is part of the session's state. Without a session, the list
/// lasts for the run.
///
/// ```
/// use cofferdam_agent::{Agent, ScriptedClient, Session, TodoList};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// {"calls":[{"tool":"todos_add","arguments":{"todos":[{"title":"Measure"},{"title":"Cut"}]}}]}
/// {"calls":[{"tool":"todos_complete","arguments":{"items":[{"id":1,"reason":"30 cm"}]}}]}
/// {"text":"Measured."}
/// "#;
/// let model = ScriptedClient::read("script", script.as_bytes())?;
/// let agent = Agent::builder(model).context_provider(TodoList::new()?).build()?;
/// let session = Session::new();
/// agent.run("Make a shelf.").session(&session).await?;
/// let open: Vec<_> = TodoList::items(&session).into_iter().filter(|item| !item.is_complete).collect();
/// assert_eq!(open[0].title, "Cut");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct TodoList {
    definitions: Arc<[Arc<ToolDefinition>]>,
}

/// Item of a [`TodoList`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoItem {
    /// Number of the item, from 1. Numbers are not used again.
    pub id: u64,
    /// Task, in one line.
    pub title: String,
    /// Details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// True if the item is done.
    pub is_complete: bool,
}

/// List in the session's state.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredList {
    items: Vec<TodoItem>,
    /// Number of items that were ever added.
    added: u64,
}

#[derive(Deserialize)]
struct NewItem {
    title: String,
    description: Option<String>,
}

impl TodoList {
    /// Creates the provider.
    ///
    /// # Errors
    /// The declaration of a tool is invalid. A test checks that this does not happen.
    pub fn new() -> Result<Self, DeclarationError> {
        let item = json!({
            "type": "object",
            "properties": {
                "title": {"type": "string", "description": "What to do, in one line."},
                "description": {"type": "string", "description": "Details."},
            },
            "required": ["title"],
        });
        let done = json!({
            "type": "object",
            "properties": {
                "id": {"type": "integer"},
                "reason": {"type": "string", "description": "How it was done."},
            },
            "required": ["id", "reason"],
        });
        let ids = json!({"ids": {"type": "array", "items": {"type": "integer"}}});
        let none = json!({});
        let definitions = compiled(&[
            declare(
                "todos_add",
                "Adds items to the todo list and returns the list.",
                &json!({"todos": {"type": "array", "items": item}}),
                &["todos"],
                false,
            ),
            declare(
                "todos_complete",
                "Marks items as done and returns how many were open.",
                &json!({"items": {"type": "array", "items": done}}),
                &["items"],
                false,
            ),
            declare("todos_remove", "Removes items.", &ids, &["ids"], false),
            declare("todos_get_remaining", "Returns the open items.", &none, &[], false),
            declare("todos_get_all", "Returns all items.", &none, &[], false),
        ])?;
        Ok(Self { definitions })
    }

    /// Returns the items of a session in order.
    #[must_use]
    pub fn items(session: &Session) -> Vec<TodoItem> {
        stored(&session.part(SOURCE_ID)).items
    }

    /// Replaces the items of a session. The next run tells the model.
    pub fn set_items(session: &Session, items: Vec<TodoItem>) {
        session.update_part(SOURCE_ID, |state| {
            let highest = items.iter().map(|item| item.id).max().unwrap_or_default();
            let added = stored(state).added.max(highest);
            store(state, StoredList { items, added });
        });
    }
}

#[async_trait]
impl ContextProvider for TodoList {
    fn source_id(&self) -> &str {
        SOURCE_ID
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    async fn before_run(&self, run: &mut BeforeRun<'_>) -> Result<(), BoxError> {
        run.add_instructions(INSTRUCTIONS);
        let items = stored(run.state).items;
        announcement::announce(run, &described(&items), items.is_empty());
        let session = run.session.cloned().unwrap_or_default();
        SessionTools::new(SOURCE_ID, &self.definitions, TodoFunctions, session).add_to(run);
        Ok(())
    }

    async fn after_run(&self, run: &mut AfterRun<'_>) -> Result<(), BoxError> {
        let description = described(&stored(run.state).items);
        announcement::note(run, &description);
        Ok(())
    }
}

/// Returns the list as the model reads it.
fn described(items: &[TodoItem]) -> String {
    let mut text = HEADING.to_owned();
    if items.is_empty() {
        text.push_str("\n- none yet");
    }
    for TodoItem { id, title, description, is_complete } in items {
        let state = if *is_complete { "done" } else { "open" };
        // Writing to a string cannot fail.
        let _ = write!(text, "\n- {id} [{state}] {title}");
        if let Some(description) = description {
            let _ = write!(text, ": {description}");
        }
    }
    text
}

fn stored(state: &Value) -> StoredList {
    StoredList::deserialize(state).unwrap_or_default()
}

/// Writes the list to the state, which has other keys too.
fn store(state: &mut Value, list: StoredList) {
    if let Ok(Value::Object(list)) = serde_json::to_value(list) {
        announcement::set_members(state, list);
    }
}

struct TodoFunctions;

#[async_trait]
impl SessionFunctions for TodoFunctions {
    async fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        session: &Session,
    ) -> Result<Value, String> {
        session.update_part(SOURCE_ID, |state| {
            let mut list = stored(state);
            let result = match tool {
                ADD => list.add(arguments)?,
                "todos_complete" => list.complete(arguments)?,
                "todos_remove" => list.remove(arguments)?,
                "todos_get_remaining" => {
                    json!(list.items.iter().filter(|item| !item.is_complete).collect::<Vec<_>>())
                }
                _ => json!(list.items),
            };
            store(state, list);
            Ok(result)
        })
    }

    /// The list is part of the conversation, so it discloses nothing. It keeps no labels, so no
    /// untrusted data may be added to it: the model would read it as trusted later.
    fn labels(&self, tool: &str) -> StatedLabels {
        StatedLabels { accepts_untrusted: Some(tool != ADD), ..StatedLabels::default() }
    }
}

impl StoredList {
    fn add(&mut self, arguments: &Map<String, Value>) -> Result<Value, String> {
        let todos: Vec<NewItem> = list(arguments, "todos")?;
        if todos.is_empty() {
            return Err("todos must contain at least one item.".to_owned());
        }
        if self.items.len().saturating_add(todos.len()) > ITEMS_MAX {
            return Err(format!(
                "The list has {} of at most {ITEMS_MAX} items; remove some first.",
                self.items.len()
            ));
        }
        let mut items = Vec::new();
        for NewItem { title, description } in todos {
            let title = line("title", &title, TITLE_CHARS_MAX)?;
            let description = match description.filter(|text| !text.trim().is_empty()) {
                Some(text) => Some(line("description", &text, DESCRIPTION_CHARS_MAX)?),
                None => None,
            };
            self.added = self.added.saturating_add(1);
            items.push(TodoItem { id: self.added, title, description, is_complete: false });
        }
        self.items.extend(items);
        Ok(json!(self.items))
    }

    fn complete(&mut self, arguments: &Map<String, Value>) -> Result<Value, String> {
        #[derive(Deserialize)]
        struct Completion {
            id: u64,
            reason: String,
        }
        let completed: Vec<Completion> = list(arguments, "items")?;
        if completed.is_empty() {
            return Err("items must contain at least one entry.".to_owned());
        }
        for Completion { reason, .. } in &completed {
            line("reason", reason, TITLE_CHARS_MAX)?;
        }
        let mut count = 0_u64;
        for Completion { id, .. } in completed {
            let open = self.items.iter_mut().find(|item| item.id == id && !item.is_complete);
            if let Some(item) = open {
                item.is_complete = true;
                count = count.saturating_add(1);
            }
        }
        Ok(json!({"completed": count}))
    }

    fn remove(&mut self, arguments: &Map<String, Value>) -> Result<Value, String> {
        let ids: Vec<u64> = list(arguments, "ids")?;
        if ids.is_empty() {
            return Err("ids must contain at least one todo ID.".to_owned());
        }
        let before = self.items.len();
        self.items.retain(|item| !ids.contains(&item.id));
        Ok(json!({"removed": before.saturating_sub(self.items.len())}))
    }
}

/// Reads a list of the arguments. Their schema does not say that ids are positive.
fn list<T: for<'a> Deserialize<'a>>(
    arguments: &Map<String, Value>,
    name: &str,
) -> Result<Vec<T>, String> {
    let value = arguments.get(name).cloned().unwrap_or_default();
    serde_json::from_value(value).map_err(|_| format!("{name} has an invalid entry."))
}

/// Returns a string as one line, or an error if it is blank or too long.
fn line(name: &str, text: &str, chars_max: usize) -> Result<String, String> {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() {
        return Err(format!("{name} must not be blank."));
    }
    if line.chars().count() > chars_max {
        return Err(format!("{name} must have at most {chars_max} characters."));
    }
    Ok(line)
}
