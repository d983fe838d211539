//! Questions of one call, and the three ways to deliver them to the client.
//!
//! A client of a session-based revision receives a request while the call waits. A client of the
//! stateless revision receives the questions as the result of its request and sends the request
//! again with the answers: the call then runs again from the beginning and finds them (its file
//! changes were rolled back, as for every call that does not succeed). The client of a task finds
//! the questions in the task and answers them there.

use data_encoding::HEXLOWER;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use cofferdam_tool::OutputSchema;
use cofferdam_tool::ask::{AskError, Asker, Question, QuestionKind};
use cofferdam_tool::prompt::{FirstAnswer, PromptAnswer};
use futures_util::future::try_join_all;
use parking_lot::Mutex;
use rmcp::model::{ClientCapabilities, ElicitationCapability, InputRequest, InputRequests};
use rmcp::task_manager::TaskContext;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::caller::Caller;
use super::operator_prompts::{BY_CLIENT, CallPrompts};
use super::rounds::{AnsweredQuestion, RoundState};
use super::sent_question::SentQuestion;

/// Maximum number of questions of one call. Each is stored by the client, by the server, or in the
/// state between them.
const QUESTIONS_MAX: usize = 64;
/// Maximum number of times that a question is repeated because its answer does not fit.
const REPEATS_MAX: u32 = 2;

/// Prefix of the names of the host's own questions. No tool can use it, because names of tool
/// questions cannot contain `.`.
pub(super) const HOST_PREFIX: &str = "cofferdam.";
/// Name of the question whether a call may run. An answer to a tool's question never counts as an
/// approval.
pub(super) const APPROVAL: &str = "cofferdam.approval";

/// Questions and answers of one call.
pub(super) struct Elicitation {
    caller: Arc<Caller>,
    way: QuestionDelivery,
    /// Task that the call has become, if any.
    task: OnceLock<TaskContext>,
    asked: AtomicUsize,
    ended: Mutex<Option<Suspension>>,
    has_ended: Notify,
    became_task: CancellationToken,
    /// Prompts for the operator, if the server has them.
    prompts: Option<CallPrompts>,
    /// True if the operator answered the question whether the call may run.
    is_approval_of_operator: AtomicBool,
}

/// Way of delivering questions to the client.
enum QuestionDelivery {
    /// Sends a request while the call waits.
    Request,
    /// Returns a result with the questions. The client repeats its request with the answers.
    Result {
        known: BTreeMap<String, AnsweredQuestion>,
        misfits: BTreeMap<String, u32>,
        /// Names of the questions of earlier rounds.
        earlier: Vec<String>,
    },
}

/// Reason why a call cannot continue within this request.
pub(super) enum Suspension {
    /// These questions have to be answered first.
    Asks { requests: InputRequests, state: Box<RoundState>, questions: Vec<(String, Question)> },
    /// The tool needs capabilities that the client has not declared.
    Lacks(Box<ClientCapabilities>),
}

impl Elicitation {
    /// Creates an elicitation for a client that accepts requests.
    pub(super) fn by_request(caller: Arc<Caller>, prompts: Option<CallPrompts>) -> Self {
        Self::new(QuestionDelivery::Request, caller, prompts)
    }

    /// Creates an elicitation for a client that receives questions as a result. `state` is what it
    /// received in the previous round, and `responses` its answers to that round.
    pub(super) fn by_result(
        caller: Arc<Caller>,
        prompts: Option<CallPrompts>,
        state: RoundState,
        responses: impl IntoIterator<Item = (String, Value)>,
    ) -> Self {
        let RoundState { answers: mut known, asked, misfits, prompts: ids } = state;
        let responses: BTreeMap<String, Value> = responses.into_iter().collect();
        let earlier = asked.keys().chain(known.keys()).cloned().collect();
        for (key, id) in ids {
            let collect =
                |prompts: &CallPrompts| prompts.collect(&id, responses.contains_key(&key));
            if let Some(answer) = prompts.as_ref().and_then(collect) {
                let (question, answer) = (asked.get(&key).cloned(), answer.into_elicitation());
                let answered = AnsweredQuestion { question, answer, is_of_operator: true };
                known.insert(key, answered);
            }
        }
        for (key, answer) in responses {
            // An answer that the previous round did not ask for may come from a client that knew
            // the question in advance. That is not allowed for questions of the host itself: they
            // must have been asked first.
            let question = match asked.get(&key) {
                Some(question) => Some(question.clone()),
                None if key.starts_with(HOST_PREFIX) => continue,
                None => None,
            };
            known.entry(key).or_insert_with(|| AnsweredQuestion::of_client(question, answer));
        }
        let is_of_operator = known.get(APPROVAL).is_some_and(|answered| answered.is_of_operator);
        let mut new =
            Self::new(QuestionDelivery::Result { known, misfits, earlier }, caller, prompts);
        new.is_approval_of_operator = AtomicBool::new(is_of_operator);
        new
    }

    fn new(way: QuestionDelivery, caller: Arc<Caller>, prompts: Option<CallPrompts>) -> Self {
        let (task, asked, ended) = (OnceLock::new(), AtomicUsize::new(0), Mutex::new(None));
        let (has_ended, became_task) = (Notify::new(), CancellationToken::new());
        let is_approval_of_operator = AtomicBool::new(false);
        Self {
            caller,
            way,
            task,
            asked,
            ended,
            has_ended,
            became_task,
            prompts,
            is_approval_of_operator,
        }
    }

    /// Returns whether the operator answered the question whether the call may run.
    pub(super) fn is_approval_of_operator(&self) -> bool {
        self.is_approval_of_operator.load(Ordering::Relaxed)
    }

    /// Returns whether the client can be asked.
    pub(super) fn client_can_ask(&self, kind: QuestionKind) -> bool {
        match kind {
            // A client that does not list elicitation modes supports form mode, the original one.
            QuestionKind::Elicitation => {
                self.caller.capabilities().elicitation.as_ref().is_some_and(|elicitation| {
                    elicitation.form.is_some() || elicitation.url.is_none()
                })
            }
            QuestionKind::Sampling => self.caller.capabilities().sampling.is_some(),
            QuestionKind::Roots => self.caller.capabilities().roots.is_some(),
        }
    }

    /// Opens prompts at the operator for questions that the client takes along, and stores their
    /// ids in the state that it takes along as well.
    pub(super) fn detach(&self, questions: &[(String, Question)], state: &mut RoundState) {
        if let Some(prompts) = &self.prompts {
            state.prompts = prompts.detach(questions);
        }
    }

    /// Returns the answer of the operator in the form of the client's.
    fn of_operator(&self, question: &Question, answer: PromptAnswer) -> Value {
        if question.name == APPROVAL {
            self.is_approval_of_operator.store(true, Ordering::Relaxed);
        }
        answer.into_elicitation()
    }

    /// Asks the client by a request, and the operator. The first answer counts.
    async fn ask_by_request(&self, question: &Question) -> Result<Value, AskError> {
        let open = self.prompts.as_ref().and_then(|prompts| prompts.open(question));
        let mut sent = SentQuestion::send(&self.caller, input_request(question)?).await?;
        let Some(mut open) = open else { return sent.answer().await };
        let received = tokio::select! {
            biased;
            answer = open.answer() => Err(answer),
            received = sent.answer() => Ok(received),
        };
        let answer = match received {
            Ok(received) => match open.withdraw(BY_CLIENT) {
                None => return received,
                Some(answer) => answer,
            },
            Err(answer) => {
                sent.withdraw(format!("{} in the inspector", answer.word())).await;
                answer
            }
        };
        Ok(self.of_operator(question, answer))
    }

    /// Asks the operator only, because the client cannot be asked.
    async fn ask_operator(&self, questions: &[(String, Question)]) -> Result<Vec<Value>, AskError> {
        let asked = questions.iter().cloned().map(|(_, question)| {
            repeated(question, move |question, _| async move {
                let open = self.prompts.as_ref().and_then(|prompts| prompts.open(&question));
                let Some(open) = open else {
                    let reason = "too many questions wait for the operator".to_owned();
                    return Err(AskError::Failed(reason));
                };
                let answer = open.answer_in_time().await;
                let expired = || AskError::Failed("there was no answer in time".to_owned());
                Ok(self.of_operator(&question, answer.ok_or_else(expired)?))
            })
        });
        try_join_all(asked).await
    }

    /// Delivers all further questions through the task.
    pub(super) fn attach_task(&self, task: TaskContext) {
        let _ = self.task.set(task);
        // Questions may have been asked since the call was last polled; they move to the task.
        self.became_task.cancel();
    }

    /// Waits until the call cannot continue.
    pub(super) async fn suspended(&self) -> Suspension {
        loop {
            let notified = self.has_ended.notified();
            if let Some(suspension) = self.ended.lock().take() {
                return suspension;
            }
            notified.await;
        }
    }

    /// Suspends the call: the task that waits on [`Self::suspended`] drops it.
    async fn suspend<T>(&self, suspension: Suspension) -> T {
        self.announce(suspension);
        std::future::pending().await
    }

    /// Like [`Self::suspend`], for questions, but returns if the call becomes a task meanwhile,
    /// because the questions can then be asked through the task.
    async fn suspend_unless_task(&self, asks: Suspension) {
        if self.task.get().is_none() {
            self.announce(asks);
        }
        self.became_task.cancelled().await;
    }

    fn announce(&self, suspension: Suspension) {
        *self.ended.lock() = Some(suspension);
        self.has_ended.notify_one();
    }

    /// Returns the key by which the client knows the question: its name, which is the same when the
    /// call runs again.
    fn key(&self, question: &Question) -> Result<String, AskError> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        if number > QUESTIONS_MAX {
            return Err(AskError::Failed(format!("a call can ask {QUESTIONS_MAX} questions")));
        }
        Ok(question.name.clone())
    }

    /// Returns the answers of a client that has repeated its request, or the questions that it
    /// still has to answer.
    fn recorded_answers(
        known: &BTreeMap<String, AnsweredQuestion>,
        misfits: &BTreeMap<String, u32>,
        questions: &[(String, Question)],
    ) -> Result<Result<Vec<Value>, Suspension>, AskError> {
        let digests: Vec<String> = questions.iter().map(|(_, question)| digest(question)).collect();
        let answer = |(key, question): &(String, Question), digest: &String| {
            let fits = |answered: &&AnsweredQuestion| {
                answered.question.as_ref().is_none_or(|asked| asked == digest)
            };
            let answered = known.get(key).filter(fits)?;
            Some(check(question, &answered.answer).map(|()| answered.answer.clone()))
        };
        let answers: Vec<Option<Result<Value, String>>> = questions
            .iter()
            .zip(&digests)
            .map(|(question, digest)| answer(question, digest))
            .collect();
        if answers.iter().all(|answer| matches!(answer, Some(Ok(_)))) {
            return Ok(Ok(answers.into_iter().flatten().flatten().collect()));
        }
        let mut state = RoundState {
            answers: known.clone(),
            misfits: misfits.clone(),
            ..RoundState::default()
        };
        let (mut requests, mut open) = (InputRequests::new(), Vec::new());
        for (((key, question), digest), answer) in questions.iter().zip(digests).zip(answers) {
            let question = match answer {
                Some(Ok(_)) => continue,
                Some(Err(problem)) => {
                    let count = state.misfits.entry(key.clone()).or_default();
                    *count += 1;
                    if *count > REPEATS_MAX {
                        return Err(AskError::Invalid(problem));
                    }
                    with_problem(question, &problem)
                }
                None => question.clone(),
            };
            state.answers.remove(key);
            requests.insert(key.clone(), input_request(&question)?);
            state.asked.insert(key.clone(), digest);
            open.push((key.clone(), question));
        }
        Ok(Err(Suspension::Asks { requests, state: Box::new(state), questions: open }))
    }

    async fn ask_in_task(&self, questions: &[(String, Question)]) -> Result<Vec<Value>, AskError> {
        let Some(task) = self.task.get() else {
            return Err(AskError::Failed("the question was not asked".to_owned()));
        };
        let asked = questions.iter().cloned().map(|(key, question)| {
            repeated(question, move |question, repeat| {
                // Names of tool questions contain no `.`, so the key cannot collide with one.
                let key = if repeat == 0 { key.clone() } else { format!("{key}.{repeat}") };
                async move {
                    let open = self.prompts.as_ref().and_then(|prompts| prompts.open(&question));
                    let answer = task.request_input(key, input_request(&question)?);
                    let answer = match open {
                        Some(open) => open.answer_or(answer, BY_CLIENT).await,
                        None => FirstAnswer::Elsewhere(answer.await),
                    };
                    let cancelled = || AskError::Failed("the task was cancelled".to_owned());
                    match answer {
                        FirstAnswer::Operator(answer) => Ok(self.of_operator(&question, answer)),
                        FirstAnswer::Elsewhere(answer) => answer.map_err(|_| cancelled()),
                    }
                }
            })
        });
        try_join_all(asked).await
    }
}

#[async_trait]
impl Asker for Elicitation {
    fn can_ask(&self, kind: QuestionKind) -> bool {
        let accepts = |prompts: &CallPrompts| prompts.accepts_answers();
        let is_form = kind == QuestionKind::Elicitation;
        self.client_can_ask(kind) || (is_form && self.prompts.as_ref().is_some_and(accepts))
    }

    fn earlier_questions(&self) -> Option<Vec<String>> {
        match &self.way {
            QuestionDelivery::Request => None,
            QuestionDelivery::Result { earlier, .. } => Some(earlier.clone()),
        }
    }

    async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Value>, AskError> {
        let lacking = questions.iter().find(|question| !self.client_can_ask(question.kind));
        let of_operator = self.prompts.as_ref().filter(|prompts| {
            lacking.is_some() && questions.iter().all(|question| prompts.answers(question))
        });
        if let (Some(question), None) = (lacking, of_operator) {
            if let QuestionDelivery::Result { .. } = self.way {
                return self.suspend(Suspension::Lacks(Box::new(capability(question.kind)))).await;
            }
            return Err(AskError::Unsupported(question.kind));
        }
        let questions: Vec<(String, Question)> = questions
            .into_iter()
            .map(|question| Ok((self.key(&question)?, question)))
            .collect::<Result<_, AskError>>()?;
        if of_operator.is_some() {
            return self.ask_operator(&questions).await;
        }
        match &self.way {
            QuestionDelivery::Request if self.task.get().is_none() => {
                let asked = questions.iter().cloned().map(|(_, question)| {
                    repeated(question, move |question, _| async move {
                        self.ask_by_request(&question).await
                    })
                });
                try_join_all(asked).await
            }
            QuestionDelivery::Request => self.ask_in_task(&questions).await,
            QuestionDelivery::Result { known, misfits, .. } => {
                match Self::recorded_answers(known, misfits, &questions)? {
                    Ok(answers) => Ok(answers),
                    Err(asks) => {
                        self.suspend_unless_task(asks).await;
                        self.ask_in_task(&questions).await
                    }
                }
            }
        }
    }
}

/// Asks until an answer fits, a limited number of times.
async fn repeated<F>(
    question: Question,
    ask: impl Fn(Question, u32) -> F,
) -> Result<Value, AskError>
where
    F: Future<Output = Result<Value, AskError>>,
{
    let mut asked = question.clone();
    let mut repeat = 0;
    loop {
        let answer = ask(asked, repeat).await?;
        let Err(problem) = check(&question, &answer) else { return Ok(answer) };
        repeat += 1;
        if repeat > REPEATS_MAX {
            return Err(AskError::Invalid(problem));
        }
        asked = with_problem(&question, &problem);
    }
}

/// Returns the question with a note that tells the user why the last answer was rejected.
fn with_problem(question: &Question, problem: &str) -> Question {
    let mut question = question.clone();
    if let Some(Value::String(message)) = question.parameters.get_mut("message") {
        message.push_str(&format!("\n\nThe last answer was not accepted: {problem}."));
    }
    question
}

fn input_request(question: &Question) -> Result<InputRequest, AskError> {
    let method = match question.kind {
        QuestionKind::Elicitation => "elicitation/create",
        QuestionKind::Sampling => "sampling/createMessage",
        QuestionKind::Roots => "roots/list",
    };
    let request = json!({"method": method, "params": question.parameters});
    serde_json::from_value(request).map_err(|_| {
        AskError::Failed(format!("the parameters of the question are not valid for `{method}`"))
    })
}

/// Checks a client's answer and describes what is wrong with it. A refusal is a valid answer.
fn check(question: &Question, answer: &Value) -> Result<(), String> {
    let invalid = |problem: &str| Err(problem.to_owned());
    let Some(members) = answer.as_object() else { return invalid("it is not an object") };
    match question.kind {
        QuestionKind::Roots if !members.get("roots").is_some_and(Value::is_array) => {
            invalid("`roots` is missing")
        }
        QuestionKind::Sampling if !members.contains_key("content") => {
            invalid("`content` is missing")
        }
        QuestionKind::Roots | QuestionKind::Sampling => Ok(()),
        QuestionKind::Elicitation => match members.get("action").and_then(Value::as_str) {
            Some("accept") => check_form(question, members.get("content")),
            Some("decline" | "cancel") => Ok(()),
            _ => invalid("`action` is not accept, decline or cancel"),
        },
    }
}

fn check_form(question: &Question, content: Option<&Value>) -> Result<(), String> {
    let Some(schema) = question.parameters.get("requestedSchema") else { return Ok(()) };
    // Some clients omit `content` when the user has filled in nothing.
    let empty = json!({});
    let content = content.unwrap_or(&empty);
    let Some(fields) = content.as_object() else {
        return Err("`content` is not an object".to_owned());
    };
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let missing: Vec<_> = required
        .filter_map(Value::as_str)
        .filter(|name| !fields.contains_key(*name))
        .map(|name| format!("`{name}`"))
        .collect();
    if !missing.is_empty() {
        let verb = if missing.len() == 1 { "is" } else { "are" };
        return Err(format!("{} {verb} missing", missing.join(", ")));
    }
    match OutputSchema::compile("form", &schema.to_string()) {
        Ok(schema) => schema.validate(content),
        // The sender of a schema that does not compile cannot have validated against it either.
        Err(_) => Ok(()),
    }
}

/// Number of hexadecimal digits in the digest of a question: 128 bits.
const DIGEST_DIGITS: usize = 32;

fn digest(question: &Question) -> String {
    let text = json!([question.kind.to_string(), question.parameters]).to_string();
    let mut digest = HEXLOWER.encode(&Sha256::digest(text.as_bytes()));
    digest.truncate(DIGEST_DIGITS);
    digest
}

fn capability(kind: QuestionKind) -> ClientCapabilities {
    let mut capabilities = ClientCapabilities::default();
    match kind {
        QuestionKind::Elicitation => {
            capabilities.elicitation = Some(ElicitationCapability::default())
        }
        QuestionKind::Sampling => capabilities.sampling = Some(Default::default()),
        QuestionKind::Roots => capabilities.roots = Some(Default::default()),
    }
    capabilities
}

/// Returns the elicitation as the asker of a call.
pub(super) fn asker(elicitation: &Arc<Elicitation>) -> Arc<dyn Asker> {
    Arc::clone(elicitation) as Arc<dyn Asker>
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> Question {
        let parameters = json!({"message": "Allow?", "requestedSchema": {
            "type": "object", "properties": {"allow": {"type": "boolean"}}, "required": ["allow"],
        }});
        let parameters = parameters.as_object().unwrap().clone();
        Question { name: "q".to_owned(), kind: QuestionKind::Elicitation, parameters }
    }

    #[tokio::test]
    async fn an_answer_that_does_not_fit_is_asked_again_twice() {
        let asked = Mutex::new(Vec::new());
        let unfit = repeated(form(), |question, repeat| {
            asked.lock().push(question.parameters["message"].as_str().unwrap().to_owned());
            async move { Ok(json!({"action": "accept", "content": {"repeat": repeat}})) }
        });
        assert_eq!(unfit.await, Err(AskError::Invalid("`allow` is missing".to_owned())));
        let asked = asked.into_inner();
        assert_eq!(asked.len(), 3);
        assert!(
            asked[0] == "Allow?" && asked[2].ends_with("not accepted: `allow` is missing."),
            "{asked:?}"
        );
        let second = repeated(form(), |_, repeat| async move {
            let allow = if repeat == 0 { json!("x") } else { json!(true) };
            Ok(json!({"action": "accept", "content": {"allow": allow}}))
        });
        assert_eq!(second.await.unwrap()["content"]["allow"], true);
        let declined = repeated(form(), |_, _| async { Ok(json!({"action": "decline"})) });
        assert_eq!(declined.await.unwrap()["action"], "decline");
    }

    #[test]
    fn rounds_end_when_no_answer_fits() {
        let questions = [("q".to_owned(), form())];
        let (mut known, mut misfits) = (BTreeMap::new(), BTreeMap::new());
        for round in 0..3 {
            let Ok(Err(Suspension::Asks { requests, state, .. })) =
                Elicitation::recorded_answers(&known, &misfits, &questions)
            else {
                panic!("round {round} does not ask")
            };
            let request = serde_json::to_value(&requests).unwrap().to_string();
            assert_eq!(request.contains("`allow` is missing"), round > 0, "{request}");
            misfits = state.misfits;
            let question = Some(state.asked["q"].clone());
            let answered = AnsweredQuestion::of_client(question, json!({"action": "accept"}));
            known.insert("q".to_owned(), answered);
        }
        let ended = Elicitation::recorded_answers(&known, &misfits, &questions);
        assert!(
            matches!(ended, Err(AskError::Invalid(problem)) if problem == "`allow` is missing")
        );
    }
}
