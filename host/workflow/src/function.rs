//! Functions as executors.

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_agent::BoxError;
use futures_util::FutureExt as _;

use super::executor::Executor;
use super::message::{MessageType, Payload, TypedMessage};
use super::snapshot::UserRequest;
use super::step::Step;

type StepFuture = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;
type AnswerHandler = Arc<dyn Fn(UserRequest, Payload, Step) -> StepFuture + Send + Sync>;

/// Executor that calls a function. A panic in it is an error of the executor. Its sent and yielded
/// types are declared with [`sending`](Self::sending) and [`yielding`](Self::yielding); the type
/// that it takes is that of the function's argument.
pub struct FunctionExecutor<T> {
    id: String,
    sends: Vec<MessageType>,
    yields: Vec<MessageType>,
    function: Arc<dyn Fn(T, Step) -> StepFuture + Send + Sync>,
    answered: Option<AnswerHandler>,
    argument: PhantomData<fn(T)>,
}

/// Creates an executor with this id from a function.
pub fn executor_fn<T, F, R>(id: impl Into<String>, function: F) -> FunctionExecutor<T>
where
    T: TypedMessage,
    F: Fn(T, Step) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    FunctionExecutor {
        id: id.into(),
        sends: Vec::new(),
        yields: Vec::new(),
        function: Arc::new(move |argument, step| Box::pin(function(argument, step))),
        answered: None,
        argument: PhantomData,
    }
}

impl<T: TypedMessage> FunctionExecutor<T> {
    /// Declares that the executor sends messages of this type.
    #[must_use]
    pub fn sending<M: TypedMessage>(mut self) -> Self {
        self.sends.push(M::message_type());
        self
    }

    /// Declares that the executor yields output of this type.
    #[must_use]
    pub fn yielding<M: TypedMessage>(mut self) -> Self {
        self.yields.push(M::message_type());
        self
    }

    /// Sets the handler of answers to requests of the executor.
    #[must_use]
    pub fn answered<F, R>(mut self, function: F) -> Self
    where
        F: Fn(UserRequest, Payload, Step) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.answered =
            Some(Arc::new(move |request, answer, step| Box::pin(function(request, answer, step))));
        self
    }
}

#[async_trait]
impl<T: TypedMessage> Executor for FunctionExecutor<T> {
    fn id(&self) -> &str {
        &self.id
    }

    fn kind(&self) -> &str {
        "function"
    }

    fn accepts(&self) -> Vec<MessageType> {
        vec![T::message_type()]
    }

    fn sends(&self) -> Vec<MessageType> {
        self.sends.clone()
    }

    fn yields(&self) -> Vec<MessageType> {
        self.yields.clone()
    }

    async fn handle(&self, message: Payload, step: &Step) -> Result<(), BoxError> {
        let argument = message.read::<T>()?;
        caught(async { (self.function)(argument, step.clone()).await }).await
    }

    async fn answered(
        &self,
        request: UserRequest,
        answer: Payload,
        step: &Step,
    ) -> Result<(), BoxError> {
        match &self.answered {
            Some(answered) => caught(async { answered(request, answer, step.clone()).await }).await,
            None => Err("the executor asks nothing".into()),
        }
    }
}

/// Runs a function to its end. A panic is an error.
async fn caught(function: impl Future<Output = Result<(), BoxError>>) -> Result<(), BoxError> {
    // State that the function shares with others is the concern of its author, as with threads.
    let ended = AssertUnwindSafe(function).catch_unwind().await;
    ended.unwrap_or_else(|panic| Err(message_of(&*panic).into()))
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let literal = panic.downcast_ref::<&str>().copied();
    match literal.or_else(|| panic.downcast_ref::<String>().map(String::as_str)) {
        Some(message) => format!("the function panicked: {message}"),
        None => "the function panicked with a value that is not a string".to_owned(),
    }
}
