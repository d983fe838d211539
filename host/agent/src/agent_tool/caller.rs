//! Services of a caller, as the agent inside of its call gets them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use cofferdam_tool::CallContext;
use cofferdam_tool::ask::{AskError, Asker, LogLevel, LogSink, Question, QuestionKind};
use cofferdam_tool::invoke::{Progress, ProgressSink};
use data_encoding::HEXLOWER;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{Delta, MessageContent, Update};

/// Longest name of a question, in characters.
const QUESTION_CHARS_MAX: usize = 64;

/// Reports what an agent does as progress of the call that it is inside of. The unit is reports,
/// because each tool of the agent counts in a unit of its own.
pub(super) struct CallReports {
    call_id: String,
    progress: Option<Arc<dyn ProgressSink>>,
    log: Option<Arc<dyn LogSink>>,
    reports: AtomicU32,
}

impl CallReports {
    pub(super) fn of(call: &CallContext) -> Arc<Self> {
        Arc::new(Self {
            call_id: call.call_id.clone(),
            progress: call.progress.clone(),
            log: call.log.clone(),
            reports: AtomicU32::new(0),
        })
    }

    /// Reports the calls that begin with an update.
    pub(super) fn update(&self, update: &Update) {
        for delta in &update.deltas {
            let name = match delta {
                Delta::Call { call, .. } => &call.name,
                Delta::Content(MessageContent::FunctionCall(call)) => &call.name,
                _ => continue,
            };
            // Later pieces of a call have no name.
            if !name.is_empty() {
                self.activity(format!("calls `{name}`"));
            }
        }
    }

    fn activity(&self, message: String) {
        let Some(progress) = &self.progress else { return };
        let reports = self.reports.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let done = f64::from(reports);
        progress.report(&self.call_id, Progress { done, total: None, message: Some(message) });
    }
}

impl ProgressSink for CallReports {
    fn report(&self, _: &str, progress: Progress) {
        if let Some(message) = progress.message {
            self.activity(message);
        }
    }
}

impl LogSink for CallReports {
    fn log(&self, _: &str, level: LogLevel, message: &str) {
        if let Some(log) = &self.log {
            log.log(&self.call_id, level, message);
        }
    }
}

/// Asks questions of an agent's tools in the name of the call that it is inside of. Two of its
/// tools may give their questions the same name, so the names are numbered.
pub(super) struct CallAsker {
    asker: Arc<dyn Asker>,
    asked: AtomicU32,
}

impl CallAsker {
    pub(super) fn new(asker: Arc<dyn Asker>) -> Self {
        Self { asker, asked: AtomicU32::new(0) }
    }

    fn renamed(&self, question: Question) -> Question {
        let number = self.asked.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let name = format!("{number}-{}", question.name);
        if name.len() <= QUESTION_CHARS_MAX {
            return Question { name, ..question };
        }
        let digest = HEXLOWER.encode(&Sha256::digest(&question.name));
        let name = format!("{number}-{digest}").chars().take(QUESTION_CHARS_MAX).collect();
        Question { name, ..question }
    }
}

#[async_trait]
impl Asker for CallAsker {
    fn can_ask(&self, kind: QuestionKind) -> bool {
        self.asker.can_ask(kind)
    }

    async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Value>, AskError> {
        let questions = questions.into_iter().map(|question| self.renamed(question)).collect();
        self.asker.ask(questions).await
    }

    fn earlier_questions(&self) -> Option<Vec<String>> {
        let without_number = |name: String| Some(name.split_once('-')?.1.to_owned());
        let names = self.asker.earlier_questions()?;
        Some(names.into_iter().filter_map(without_number).collect())
    }
}
