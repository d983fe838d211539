//! What a workflow's file can say, and where in it something is wrong.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_saphyr::{Location, Spanned};

use crate::config::ConfigError;

/// Largest file that is read, in bytes. A person writes it.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// How much of it may be repeated by aliases, in events of the parser.
const REPEATED_EVENTS_MAX: usize = 10_000;

/// A workflow as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Written {
    pub(super) name: Option<String>,
    /// For people alone.
    #[serde(rename = "description")]
    _description: Option<String>,
    #[serde(default)]
    pub(super) agents: Ordered<AgentTable>,
    #[serde(default)]
    pub(super) people: Ordered<PersonTable>,
    pub(super) orchestration: Option<Spanned<Orchestration>>,
    pub(super) start: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) edges: Vec<Spanned<EdgeTable>>,
    pub(super) output_from: Option<Designation>,
    pub(super) intermediate_output_from: Option<Designation>,
    pub(super) max_iterations: Option<Spanned<u64>>,
}

/// An agent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct AgentTable {
    /// As `--model` has it; a script's file is relative to the workflow's.
    pub(super) model: Option<Spanned<String>>,
    /// A text, or `@FILE`, relative to the workflow's.
    pub(super) instructions: Option<Spanned<String>>,
    /// What the others are told of it.
    pub(super) description: Option<String>,
    /// The tools that it has, by name; `all` is all that the command line offers.
    pub(super) tools: Option<Spanned<Designation>>,
    pub(super) max_tool_rounds: Option<std::num::NonZeroU32>,
}

/// A question to a person, at a node of the graph.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PersonTable {
    /// What is asked; the message that has come is shown below it.
    pub(super) prompt: String,
    #[serde(default)]
    pub(super) passes: PersonPasses,
}

/// What is sent on when a person has answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PersonPasses {
    /// The answer.
    #[default]
    Answer,
    /// The message that has come, if the answer is yes; otherwise nothing.
    Message,
}

/// How the agents work together, where no edges say it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct OrchestrationTable {
    pub(super) kind: Kind,
    /// Who takes part, in order; all agents unless it is given.
    pub(super) participants: Option<Vec<String>>,
    #[serde(default)]
    pub(super) chain_only_responses: bool,
    /// Whether answers of participants are shown as intermediate.
    #[serde(default)]
    pub(super) intermediate: bool,
    pub(super) max_rounds: Option<u64>,
    pub(super) max_stalls: Option<u64>,
    pub(super) max_resets: Option<u64>,
    /// The agent that says who speaks next; everybody in turn unless it is given.
    pub(super) selector: Option<String>,
    /// The agent that plans.
    pub(super) planner: Option<String>,
    /// Who may hand off to whom.
    #[serde(default)]
    pub(super) routes: Ordered<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    Sequential,
    Concurrent,
    GroupChat,
    Handoff,
    Magentic,
}

/// `orchestration: sequential`, or a table with `kind`.
#[derive(Debug)]
pub(super) struct Orchestration(pub(super) OrchestrationTable);

/// Edges: exactly one of the forms that the documentation lists.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct EdgeTable {
    pub(super) chain: Option<Vec<String>>,
    pub(super) from: Option<Designation>,
    pub(super) to: Option<Designation>,
    pub(super) when: Option<When>,
    pub(super) switch: Option<Vec<Case>>,
    pub(super) select: Option<Vec<Case>>,
}

/// One way of several.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Case {
    pub(super) when: Option<When>,
    pub(super) to: Option<String>,
    pub(super) otherwise: Option<String>,
}

/// A condition on a text.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct When {
    pub(super) contains: Option<String>,
    pub(super) equals: Option<String>,
    pub(super) matches: Option<String>,
    pub(super) not: Option<Box<When>>,
    #[serde(default)]
    pub(super) ignore_case: bool,
}

/// One word, or a list of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Designation {
    Word(String),
    List(Vec<String>),
}

/// A map in the order in which it is written.
#[derive(Debug)]
pub(super) struct Ordered<T>(pub(super) Vec<(String, T)>);

/// A workflow's file.
pub(super) struct WorkflowFile {
    pub(super) path: PathBuf,
    pub(super) written: Written,
}

impl WorkflowFile {
    /// Reads a file and checks its form.
    pub(super) fn read_ambient(path: &Path) -> Result<Self, ConfigError> {
        let wrong = |at, message: String| ConfigError { path: path.to_owned(), at, message };
        let text = cofferdam_files::read_named_text_ambient(path, FILE_BYTES_MAX);
        let text = text.map_err(|error| wrong(None, error.to_string()))?;
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_documents: 1 },
            alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: REPEATED_EVENTS_MAX },
            strict_booleans: true,
            with_snippet: false,
        };
        let written = serde_saphyr::from_str_with_options(&text, options)
            .map_err(|error| wrong(error.location().and_then(place), without_place(&error.to_string())))?;
        Ok(Self { path: path.to_owned(), written })
    }

    /// An error about what stands at a place.
    pub(super) fn error(&self, at: Location, message: impl Into<String>) -> ConfigError {
        ConfigError { path: self.path.clone(), at: place(at), message: message.into() }
    }

    /// An error about the file as a whole.
    pub(super) fn error_anywhere(&self, message: impl Into<String>) -> ConfigError {
        ConfigError { path: self.path.clone(), at: None, message: message.into() }
    }

    /// What the workflow is called: as it says, or as the file is.
    pub(super) fn name(&self) -> String {
        let stem = || self.path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        self.written.name.clone().or_else(stem).unwrap_or_else(|| "workflow".to_owned())
    }

    /// A path of the file, relative to the file.
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(path)
    }
}

/// Line and column, if they are known.
fn place(at: Location) -> Option<(usize, usize)> {
    let number = |number: u64| usize::try_from(number).ok().filter(|number| *number > 0);
    Some((number(at.line())?, number(at.column())?))
}

/// The message alone: the place stands before it already.
fn without_place(message: &str) -> String {
    let line = message.lines().next().unwrap_or(message).trim();
    let cut = [" at line ", " (line "].iter().filter_map(|mark| line.rfind(mark)).min();
    cut.and_then(|end| line.get(..end)).unwrap_or(line).to_owned()
}

impl Designation {
    /// The ids; a word is one.
    pub(super) fn ids(&self) -> &[String] {
        match self {
            Self::Word(word) => std::slice::from_ref(word),
            Self::List(list) => list,
        }
    }
}

impl<T> Ordered<T> {
    pub(super) fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct InOrder<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for InOrder<T> {
            type Value = Ordered<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries: Vec<(String, T)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, T>()? {
                    if entries.iter().any(|(known, _)| *known == name) {
                        return Err(A::Error::custom(format!("`{name}` is there twice")));
                    }
                    entries.push((name, value));
                }
                Ok(Ordered(entries))
            }
        }
        from.deserialize_map(InOrder(std::marker::PhantomData))
    }
}

impl<'de> Deserialize<'de> for Designation {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct WordOrList;
        impl<'de> Visitor<'de> for WordOrList {
            type Value = Designation;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name or a list of names")
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Self::Value, E> {
                Ok(Designation::Word(word.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = list.next_element()? {
                    names.push(name);
                }
                Ok(Designation::List(names))
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
                f.write_str("sequential, concurrent, group-chat, handoff or magentic, or a map with `kind`")
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Self::Value, E> {
                let word = serde::de::value::StrDeserializer::new(word);
                let table = OrchestrationTable {
                    kind: Kind::deserialize(word)?,
                    participants: None,
                    chain_only_responses: false,
                    intermediate: false,
                    max_rounds: None,
                    max_stalls: None,
                    max_resets: None,
                    selector: None,
                    planner: None,
                    routes: Ordered::default(),
                };
                Ok(Orchestration(table))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                OrchestrationTable::deserialize(MapAccessDeserializer::new(map)).map(Orchestration)
            }
        }
        from.deserialize_any(WordOrTable)
    }
}
