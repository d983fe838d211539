//! Output selection of a workflow (`WF-9`, `WF-10`).

use std::collections::BTreeSet;

use super::error::InvalidWorkflow;

/// Executors whose yields are output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputFrom {
    /// All executors.
    All,
    /// These executors.
    List(Vec<String>),
    /// An unparsed word; only `all` is valid.
    Word(String),
}

/// Executors whose yields are intermediate output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum IntermediateFrom {
    /// All executors that are not selected for output.
    AllOther,
    /// These executors.
    List(Vec<String>),
    /// An unparsed word; only `all_other` is valid.
    Word(String),
}

/// Use of an executor's yields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum YieldUse {
    Output,
    Intermediate,
    Hidden,
}

/// Designated executors. If both fields are `None`, all yields are output.
#[derive(Debug, Clone, Default)]
pub(super) struct OutputExecutors {
    output: Option<BTreeSet<String>>,
    intermediate: Option<BTreeSet<String>>,
}

impl OutputExecutors {
    /// Resolves the designations for a workflow with these executors.
    pub(super) fn resolve(
        output: Option<OutputFrom>,
        intermediate: Option<IntermediateFrom>,
        ids: &[String],
    ) -> Result<Self, InvalidWorkflow> {
        if output.is_none() && intermediate.is_none() {
            return Ok(Self::default());
        }
        // Check both words before the lists: an unknown word is reported first.
        let output = output.map(|output| output.known(ids)).transpose()?;
        let intermediate = intermediate.map(IntermediateFrom::known).transpose()?;
        let chosen = output.clone().unwrap_or_default();
        let intermediate = match intermediate {
            Some(None) => Some(ids.iter().filter(|id| !chosen.contains(id)).cloned().collect()),
            Some(list) => list,
            None => None,
        };
        let shown = intermediate.clone().unwrap_or_default();
        if chosen.is_empty() && shown.is_empty() {
            return Err(InvalidWorkflow::EmptyDesignation);
        }
        check_repeated("output", &chosen)?;
        check_repeated("intermediate", &shown)?;
        let outputs: BTreeSet<_> = chosen.iter().cloned().collect();
        let intermediates: BTreeSet<_> = shown.iter().cloned().collect();
        let both: Vec<_> = outputs.intersection(&intermediates).cloned().collect();
        if !both.is_empty() {
            return Err(InvalidWorkflow::Overlap { ids: both });
        }
        check_known("Output", &chosen, ids)?;
        check_known("Intermediate", &shown, ids)?;
        Ok(Self { output: Some(outputs), intermediate: Some(intermediates) })
    }

    /// Returns the use of this executor's yields.
    pub(super) fn of(&self, executor: &str) -> YieldUse {
        let is_in =
            |set: &Option<BTreeSet<String>>| set.as_ref().is_some_and(|set| set.contains(executor));
        match (&self.output, &self.intermediate) {
            (None, None) => YieldUse::Output,
            _ if is_in(&self.output) => YieldUse::Output,
            _ if is_in(&self.intermediate) => YieldUse::Intermediate,
            _ => YieldUse::Hidden,
        }
    }

    /// Returns the ids for the digest of the structure; `None` for a missing designation.
    pub(super) fn listed(&self) -> [Option<Vec<&str>>; 2] {
        [listed(&self.output), listed(&self.intermediate)]
    }
}

fn listed(set: &Option<BTreeSet<String>>) -> Option<Vec<&str>> {
    set.as_ref().map(|set| set.iter().map(String::as_str).collect())
}

impl OutputFrom {
    /// Returns the designated ids, with repetitions.
    fn known(self, ids: &[String]) -> Result<Vec<String>, InvalidWorkflow> {
        match self {
            Self::List(list) => Ok(list),
            Self::All => Ok(ids.to_vec()),
            Self::Word(word) if word == "all" => Ok(ids.to_vec()),
            Self::Word(word) => Err(InvalidWorkflow::OutputWord { word }),
        }
    }
}

impl IntermediateFrom {
    /// Returns the designated ids, with repetitions; `None` for `all_other`.
    fn known(self) -> Result<Option<Vec<String>>, InvalidWorkflow> {
        match self {
            Self::List(list) => Ok(Some(list)),
            Self::AllOther => Ok(None),
            Self::Word(word) if word == "all_other" => Ok(None),
            Self::Word(word) => Err(InvalidWorkflow::IntermediateWord { word }),
        }
    }
}

fn check_repeated(kind: &'static str, list: &[String]) -> Result<(), InvalidWorkflow> {
    let mut seen = BTreeSet::new();
    let repeated: BTreeSet<_> = list.iter().filter(|id| !seen.insert(*id)).cloned().collect();
    if repeated.is_empty() {
        return Ok(());
    }
    Err(InvalidWorkflow::DuplicateDesignation { kind, ids: repeated.into_iter().collect() })
}

fn check_known(kind: &'static str, list: &[String], ids: &[String]) -> Result<(), InvalidWorkflow> {
    match list.iter().find(|id| !ids.contains(id)) {
        Some(id) => Err(InvalidWorkflow::UnknownDesignation { kind, id: id.clone() }),
        None => Ok(()),
    }
}

macro_rules! from_lists_and_words {
    ($($designation:ident),*) => {
        $(
            impl From<&str> for $designation {
                fn from(word: &str) -> Self {
                    Self::Word(word.to_owned())
                }
            }

            impl From<Vec<String>> for $designation {
                fn from(list: Vec<String>) -> Self {
                    Self::List(list)
                }
            }

            impl<const N: usize> From<[&str; N]> for $designation {
                fn from(list: [&str; N]) -> Self {
                    Self::List(list.into_iter().map(str::to_owned).collect())
                }
            }
        )*
    };
}

from_lists_and_words!(OutputFrom, IntermediateFrom);
