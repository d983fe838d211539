//! Workflows in YAML: the form of the file, and the positions of mistakes in it.

mod bounded;
mod condition;
mod output;
mod settings;

use std::fmt;

use cofferdam_agent::ApprovalRule;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
pub use serde_saphyr::{Location, Spanned};

pub use self::bounded::BoundedDefinition;
pub use self::settings::{InvalidRequestSetting, RequestSettings};

/// Maximum number of parser events that aliases may repeat.
const REPEATED_EVENTS_MAX: usize = 10_000;

/// Content of a workflow file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WorkflowDefinition {
    /// Name of the workflow. The default is the name of the file.
    pub name: Option<String>,
    /// Description for readers of the file, and for clients to which the workflow is a tool.
    pub description: Option<String>,
    /// Agents by id.
    #[serde(default)]
    pub agents: OrderedMap<AgentDefinition>,
    /// Questions to users by id.
    #[serde(default)]
    pub people: OrderedMap<PersonDefinition>,
    /// Pattern of the agents, instead of edges.
    pub orchestration: Option<Spanned<Orchestration>>,
    /// Id of the node that receives the input.
    pub start: Option<Spanned<String>>,
    /// Edges of the graph.
    #[serde(default)]
    pub edges: Vec<Spanned<EdgeDefinition>>,
    /// Nodes whose yields are the output of the workflow.
    pub output_from: Option<NameList>,
    /// Nodes whose yields are intermediate output.
    pub intermediate_output_from: Option<NameList>,
    /// Maximum number of supersteps.
    pub max_iterations: Option<Spanned<u64>>,
}

/// Agent of a workflow file, or of a file of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AgentDefinition {
    /// Name of an agent that has a file of its own. The default is the name of the file.
    pub name: Option<String>,
    /// File that defines the agent, relative to the workflow file. No other key can be set then.
    pub file: Option<Spanned<String>>,
    /// Model, in the form of `--model`. The path of a script is relative to the workflow file.
    pub model: Option<Spanned<String>>,
    /// Instructions as a string, or `@FILE` relative to the workflow file.
    pub instructions: Option<Spanned<String>>,
    /// Prompt file relative to the workflow file: its template has the instructions, and it has
    /// settings of requests (`CHOICE-10`).
    pub prompt_file: Option<Spanned<String>>,
    /// Arguments of the prompt file, by variable.
    #[serde(default)]
    pub prompt_args: OrderedMap<String>,
    /// Description for other agents.
    pub description: Option<String>,
    /// Names of its tools. `all` means all tools that the command line provides.
    pub tools: Option<Spanned<NameList>>,
    /// Use of `run_code`, whose programs call the tools of the agent.
    pub code: Option<Spanned<AgentCode>>,
    /// Names of its skills, of those that the command line and the configuration provide. By
    /// default it has all of them if it has their tools.
    pub skills: Option<Spanned<NameList>>,
    /// Form of its answers.
    pub output: Option<Spanned<OutputDefinition>>,
    /// Maximum number of rounds of tool calls in one turn.
    pub max_tool_rounds: Option<std::num::NonZeroU32>,
    /// Settings of the loop, by the names of `LOOP-9` with `-` for `_`.
    #[serde(rename = "loop")]
    pub loop_settings: Option<Spanned<Map<String, Value>>>,
    /// Choice of functions, in the form of `CHOICE-1`.
    pub choice: Option<Spanned<Value>>,
    /// Options of requests to the model.
    pub settings: Option<RequestSettings>,
    /// Loop over runs of the agent that begin afresh.
    pub bounded: Option<Spanned<BoundedDefinition>>,
    /// Rules that allow, ask about or deny calls.
    #[serde(default)]
    pub approvals: Vec<Spanned<ApprovalRule>>,
    /// Store of its memory files.
    pub memory_files: Option<Spanned<MemoryDefinition>>,
    /// True if it has a todo list.
    pub todos: Option<bool>,
    /// True if its conversations begin in the plan mode.
    pub plan_mode: Option<bool>,
}

/// Store of an agent's memory files.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "the name of a store, or false")]
pub enum MemoryDefinition {
    /// Name of a store of the configuration.
    Store(String),
    /// `false` for an agent without memory files.
    Switch(bool),
}

/// Tools that the model of an agent has with `run_code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentCode {
    /// `run_code` and the tools of the agent.
    Both,
    /// Only `run_code`.
    Only,
}

/// Form of an agent's answers.
#[derive(Debug, Clone, PartialEq)]
pub enum OutputDefinition {
    /// JSON Schema of an object.
    Schema(Value),
    /// Path of a JSON file with the schema, relative to the workflow file. Written as `@FILE`.
    File(String),
}

/// Node that asks the user a question.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PersonDefinition {
    /// Question. The user sees the incoming message below it.
    pub prompt: String,
    /// Message that the node sends.
    #[serde(default)]
    pub passes: UserForwards,
}

/// Message that a node sends when the user has answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UserForwards {
    /// The answer of the user.
    #[default]
    Answer,
    /// The incoming message if the answer is yes; otherwise nothing.
    Message,
}

/// Pattern of the agents and its settings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OrchestrationDefinition {
    /// Kind of the pattern.
    pub kind: OrchestrationKind,
    /// Participants in order. The default is all agents.
    pub participants: Option<Vec<String>>,
    /// True if an agent receives only the answer of the previous one, without the conversation.
    #[serde(default)]
    pub chain_only_responses: bool,
    /// True if answers of participants are intermediate output.
    #[serde(default)]
    pub intermediate: bool,
    /// Maximum number of rounds.
    pub max_rounds: Option<u64>,
    /// Maximum number of rounds without progress before a new plan is made.
    pub max_stalls: Option<u64>,
    /// Maximum number of new plans of the planner.
    pub max_resets: Option<u64>,
    /// Agent that selects the next speaker. By default all agents speak in turn.
    pub selector: Option<String>,
    /// Agent that plans.
    pub planner: Option<String>,
    /// Agents that each agent may hand off to, by its id.
    #[serde(default)]
    pub routes: OrderedMap<Vec<String>>,
}

/// Kind of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrchestrationKind {
    /// One agent after the other.
    Sequential,
    /// All agents at once.
    Concurrent,
    /// A conversation in which one agent speaks at a time.
    GroupChat,
    /// Agents that pass the conversation to each other.
    Handoff,
    /// A planner that assigns work to the other agents.
    Magentic,
}

/// Value of `orchestration`: the name of a pattern, as in `orchestration: sequential`, or a map
/// with `kind`.
#[derive(Debug)]
pub struct Orchestration(pub OrchestrationDefinition);

/// Edges, in exactly one of the forms that the documentation lists.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EdgeDefinition {
    /// Nodes to connect one after another.
    pub chain: Option<Vec<String>>,
    /// Source of the edge; several sources form a fan-in.
    pub from: Option<NameList>,
    /// Target of the edge.
    pub to: Option<NameList>,
    /// Condition on the message.
    pub when: Option<TextCondition>,
    /// Cases; a message takes the first one that holds.
    pub switch: Option<Vec<SwitchCase>>,
    /// Cases; a message takes every one that holds.
    pub select: Option<Vec<SwitchCase>>,
}

/// Case of `switch` or `select`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SwitchCase {
    /// Condition on the message.
    pub when: Option<TextCondition>,
    /// Target if the condition holds.
    pub to: Option<String>,
    /// Target if no other case holds.
    pub otherwise: Option<String>,
}

/// Condition on a string, or on a field of a structured answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TextCondition {
    /// Name of the field that is tested instead of the whole message; names of fields within
    /// fields are separated by dots. The condition does not hold for a message without the field.
    pub field: Option<String>,
    /// Substring that the string contains.
    pub contains: Option<String>,
    /// String that equals the tested one, apart from white space at both ends. A field that is not
    /// a string is tested as JSON, and numbers are equal by value.
    pub equals: Option<String>,
    /// Regular expression that matches the string.
    pub matches: Option<String>,
    /// Condition that does not hold.
    pub not: Option<Box<TextCondition>>,
    /// True if the case of letters is ignored.
    #[serde(default)]
    pub ignore_case: bool,
}

/// One name, or a list of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameList {
    /// A name or a keyword.
    Word(String),
    /// Names.
    List(Vec<String>),
}

/// Map that preserves the order of the file.
#[derive(Debug)]
pub struct OrderedMap<T>(pub Vec<(String, T)>);

/// Error returned for an invalid workflow file.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct InvalidDefinition {
    /// Position of the mistake, if it is known.
    pub at: Option<Location>,
    /// Description of the mistake, in one line and without the position.
    pub message: String,
}

impl WorkflowDefinition {
    /// Parses YAML and checks its form. Names that agents, users and edges refer to are checked
    /// when the workflow is built.
    ///
    /// # Errors
    /// The first position at which `text` is invalid.
    pub fn parse(text: &str) -> Result<Self, InvalidDefinition> {
        parse(text)
    }
}

impl AgentDefinition {
    /// Returns whether the agent is defined here only by the name of a file.
    #[must_use]
    pub fn is_only_a_file(&self) -> bool {
        let Self { name, file, model, instructions, description, tools, max_tool_rounds, .. } =
            self;
        let Self {
            code, skills, output, loop_settings, choice, settings, bounded, approvals, ..
        } = self;
        let Self { memory_files, todos, plan_mode, prompt_file, prompt_args, .. } = self;
        file.is_some()
            && name.is_none()
            && model.is_none()
            && instructions.is_none()
            && description.is_none()
            && tools.is_none()
            && code.is_none()
            && skills.is_none()
            && output.is_none()
            && max_tool_rounds.is_none()
            && loop_settings.is_none()
            && choice.is_none()
            && settings.is_none()
            && bounded.is_none()
            && approvals.is_empty()
            && memory_files.is_none()
            && todos.is_none()
            && plan_mode.is_none()
            && prompt_file.is_none()
            && prompt_args.0.is_empty()
    }

    /// Parses YAML and checks its form. Names that it refers to are checked when the agent is
    /// built.
    ///
    /// # Errors
    /// The first position at which `text` is invalid.
    pub fn parse(text: &str) -> Result<Self, InvalidDefinition> {
        parse(text)
    }
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, InvalidDefinition> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_documents: 1 },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: REPEATED_EVENTS_MAX },
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| InvalidDefinition {
        at: error.location(),
        message: match &error {
            // The library's message names an option of this function's call.
            serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => {
                format!("`{key}` occurs twice")
            }
            error => without_position(&error.to_string()),
        },
    })
}

/// Returns the first line of a message without the position at its end.
fn without_position(message: &str) -> String {
    let line = message.lines().next().unwrap_or(message).trim();
    let cut = [" at line ", " (line "].iter().filter_map(|mark| line.rfind(mark)).min();
    cut.and_then(|end| line.get(..end)).unwrap_or(line).to_owned()
}

impl NameList {
    /// Returns the names; a single word is one name.
    pub fn ids(&self) -> &[String] {
        match self {
            Self::Word(word) => std::slice::from_ref(word),
            Self::List(list) => list,
        }
    }
}

impl<T> OrderedMap<T> {
    /// Returns the value with this name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

impl<T> Default for OrderedMap<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OrderedMap<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct InOrder<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for InOrder<T> {
            type Value = OrderedMap<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries: Vec<(String, T)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, T>()? {
                    if entries.iter().any(|(known, _)| *known == name) {
                        return Err(A::Error::custom(format!("`{name}` occurs twice")));
                    }
                    entries.push((name, value));
                }
                Ok(OrderedMap(entries))
            }
        }
        from.deserialize_map(InOrder(std::marker::PhantomData))
    }
}

impl<'de> Deserialize<'de> for NameList {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct WordOrList;
        impl<'de> Visitor<'de> for WordOrList {
            type Value = NameList;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name or a list of names")
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Self::Value, E> {
                Ok(NameList::Word(word.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = list.next_element()? {
                    names.push(name);
                }
                Ok(NameList::List(names))
            }
        }
        from.deserialize_any(WordOrList)
    }
}

impl<'de> Deserialize<'de> for Orchestration {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct WordOrTable;
        impl<'de> Visitor<'de> for WordOrTable {
            type Value = Orchestration;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "sequential, concurrent, group-chat, handoff or magentic, or a map with `kind`",
                )
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Self::Value, E> {
                let word = serde::de::value::StrDeserializer::new(word);
                let table = OrchestrationDefinition {
                    kind: OrchestrationKind::deserialize(word)?,
                    participants: None,
                    chain_only_responses: false,
                    intermediate: false,
                    max_rounds: None,
                    max_stalls: None,
                    max_resets: None,
                    selector: None,
                    planner: None,
                    routes: OrderedMap::default(),
                };
                Ok(Orchestration(table))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                OrchestrationDefinition::deserialize(MapAccessDeserializer::new(map))
                    .map(Orchestration)
            }
        }
        from.deserialize_any(WordOrTable)
    }
}
