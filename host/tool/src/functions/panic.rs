//! Catches panics of functions, so that a bug in one of them ends its call and nothing else.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use super::FunctionEnd;
use crate::ToolError;

/// Runs a function to its end. A panic is an error of the type `Panic`.
pub(super) async fn catch<T>(
    function: impl Future<Output = Result<T, FunctionEnd>>,
) -> Result<T, FunctionEnd> {
    let mut function = pin!(function);
    poll_fn(|task| {
        // Nothing polls the future after a panic, so its state does not matter. State that it
        // shares with other calls is the concern of its author, as with threads.
        let polled = catch_unwind(AssertUnwindSafe(|| function.as_mut().poll(task)));
        polled.unwrap_or_else(|panic| Poll::Ready(Err(end_of(&*panic))))
    })
    .await
}

fn end_of(panic: &(dyn Any + Send)) -> FunctionEnd {
    let literal = panic.downcast_ref::<&str>().copied();
    let message = literal.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let detail = match message {
        Some(message) => format!("the function panicked: {message}"),
        None => "the function panicked with a value that is not a string".to_owned(),
    };
    FunctionEnd::Error(Box::new(ToolError::host("Panic").with_detail(detail)))
}
