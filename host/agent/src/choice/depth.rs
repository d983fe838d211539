//! Nesting depth of auto-invoked calls (`CHOICE-13`).

tokio::task_local! {
    static DEPTH: usize;
}

/// Returns the number of auto-invoked calls that the running task is nested in. A task spawned
/// inside a call starts at 0.
#[must_use]
pub fn depth() -> usize {
    DEPTH.try_with(|depth| *depth).unwrap_or_default()
}

/// Runs an auto-invoked call with the depth increased by one.
pub fn nested<F: Future>(call: F) -> impl Future<Output = F::Output> {
    DEPTH.scope(depth().saturating_add(1), call)
}
